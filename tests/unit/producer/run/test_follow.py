"""The report at the end of a job, and errors of the file that it is written to."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click
import pytest

from producer.commands.load import load_command
from producer.figures.outcome import Closing
from producer.report.reporter import Shown, print_closing
from producer.run.resume import refuse_over
from ringhaul.errors import OutputUnusable, UsageError
from ringhaul.ledger.states import RESUMABLE, JobState
from tests.options import parse_options
from tests.unit.producer.statuses import status

CLOSING = Closing(exit_code=0, figures=[], verdict=[" complete: 3 rows"], data={"rows": 3})


def summary_option(path: Path) -> Path:
    arguments = ["x.csv", "-t", "shop.orders", "--summary", str(path)]
    given: Path = load_command.make_context("load", arguments).params["summary"]
    return given


def test_a_summary_file_that_cannot_be_made_is_refused_with_the_options(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "gone", tmp_path / "file"):
        with pytest.raises(click.BadParameter) as refusal:
            summary_option(folder / "sum.json")
        assert refusal.value.format_message() == (
            f"Invalid value for '--summary': there is no folder {folder}"
        )
    for path in (tmp_path / "new.json", tmp_path / "file", Path("new.json"), Path("/dev/null")):
        assert summary_option(path) == path
    assert not (tmp_path / "new.json").exists()


def test_a_folder_without_write_permission_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: False)  # root may write anywhere
    with pytest.raises(click.BadParameter, match="is not writable"):
        summary_option(tmp_path / "sum.json")


@pytest.mark.parametrize("as_json", [False, True])
def test_the_end_is_reported_before_the_file_that_fails(
    capsys: pytest.CaptureFixture[str], as_json: bool
) -> None:
    shown = Shown(as_json=as_json, summary_file=Path("/dev/full"))
    with pytest.raises(OutputUnusable) as refusal:
        print_closing(CLOSING, shown)
    assert str(refusal.value) == (
        "/dev/full: the summary cannot be written: No space left on device"
    )
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == (
        ('{"rows": 3}\n', "") if as_json else ("", " complete: 3 rows\n")
    )


FAILED = Closing(
    exit_code=4,
    figures=[" total"],
    verdict=[" failed: the disk is on fire", " next     ringhaul resume ld-1"],
    data={"job": "ld-1"},
)


def test_a_quiet_command_reports_an_unsuccessful_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_closing(CLOSING, Shown(quiet=True))
    assert capsys.readouterr().err == ""
    print_closing(FAILED, Shown(quiet=True))
    assert capsys.readouterr().err.splitlines() == [
        "ld-1  failed: the disk is on fire",
        " next     ringhaul resume ld-1",
    ]
    # Programs find it in the summary
    print_closing(FAILED, Shown(quiet=True, as_json=True))
    assert capsys.readouterr() == ('{"job": "ld-1"}\n', "")


def test_requested_progress_is_shown_beside_json() -> None:
    def progress(*given: str) -> str:
        return Shown.from_options(
            parse_options("load", "x.csv", "-t", "shop.orders", *given)
        ).progress

    assert (progress(), progress("--json")) == ("auto", "json")
    assert progress("--json", "--progress", "none") == "none"
    assert progress("--progress", "json") == "json"


def test_the_summary_goes_to_its_file_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    print_closing(CLOSING, Shown(summary_file=tmp_path / "sum.json"))
    assert json.loads((tmp_path / "sum.json").read_text()) == {"rows": 3}
    assert capsys.readouterr().err == " complete: 3 rows\n"


def test_a_summary_file_is_never_seen_half_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, before = tmp_path / "sum.json", []
    path.write_text("{}")
    monkeypatch.setattr(os, "fsync", lambda descriptor: before.append(path.read_text()))
    print_closing(CLOSING, Shown(summary_file=path, quiet=True))
    assert before[0] == "{}"
    assert json.loads(path.read_text()) == {"rows": 3}
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("state", list(JobState))
def test_only_jobs_that_ended_for_good_are_not_resumed(state: JobState) -> None:
    job = status(state=state)
    if state is JobState.RUNNING or state in RESUMABLE:
        refuse_over(job)
        return
    with pytest.raises(UsageError) as refusal:
        refuse_over(job)
    assert str(refusal.value) == f"job {job.job} cannot be resumed: it is {state}"
