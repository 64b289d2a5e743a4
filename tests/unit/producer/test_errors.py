"""Every error ends in one line on stderr and the exit code of the table."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from config.errors import ConfigError
from producer.errors import run_command
from producer.startup import ERROR_FILE_VARIABLE, STEP_VARIABLE
from ringhaul.errors import (
    ClusterError,
    ClusterUnavailable,
    LedgerUnavailable,
    SetupUnusable,
    SourceChanged,
    SourceMissing,
    UsageError,
)


def raising(error: BaseException) -> Callable[[], object]:
    def command() -> object:
        raise error

    return command


@pytest.mark.parametrize(("answer", "code"), [(None, 0), (0, 0), (1, 1), (7, 7)])
def test_a_command_gives_its_exit_code(answer: int | None, code: int) -> None:
    assert run_command(lambda: answer) == code


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("bad --ttl"), 2),
        (SourceMissing("a.csv: no such file"), 2),
        (ConfigError("no setting cluster.prot"), 2),
        (SourceChanged("a.csv changed"), 4),
        (ClusterError("wrong password"), 4),
        (ClusterUnavailable("no node answers"), 4),
        (LedgerUnavailable("Redis is away"), 4),
    ],
)
def test_our_errors_are_printed_in_one_line(
    error: Exception, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(raising(error)) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == f"error: {error}\n"


def test_an_error_is_left_for_the_client(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "error.json"
    monkeypatch.setenv(ERROR_FILE_VARIABLE, str(file))
    assert run_command(raising(SourceMissing("a.csv: no such file"))) == 2
    assert json.loads(file.read_text()) == {
        "errors": ["SourceMissing", "UsageError", "Terminal", "RinghaulError"],
        "message": "a.csv: no such file",
    }
    assert run_command(raising(click.UsageError("No such option"))) == 2
    assert json.loads(file.read_text())["errors"][0] == "UsageError"


def test_errors_that_the_input_did_not_cause_are_retried_in_a_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    errors = (ConfigError("no such setting"), SetupUnusable("b does not see it"), UsageError("x"))
    assert [run_command(raising(error)) for error in errors] == [2, 2, 2]
    monkeypatch.setenv(STEP_VARIABLE, "1")
    assert [run_command(raising(error)) for error in errors] == [4, 4, 2]


def test_passwords_in_messages_are_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    run_command(raising(ClusterError("cannot reach redis://me:hush@host:6379/0")))
    assert capsys.readouterr().err == "error: cannot reach redis://me:***@host:6379/0\n"


def test_a_defect_is_reported_with_its_traceback_and_without_passwords(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_command(raising(ZeroDivisionError("at redis://:hush@host"))) == 5
    stderr = capsys.readouterr().err
    assert "Traceback" in stderr
    assert "ZeroDivisionError" in stderr
    assert "hush" not in stderr
    assert stderr.splitlines()[-1] == (
        "error: this is a defect in ringhaul; please report it with the lines above"
    )


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (KeyboardInterrupt(), 130),
        (click.Abort(), 130),
        (click.UsageError("no such option"), 2),
        (click.exceptions.Exit(7), 7),
    ],
)
def test_exits_of_click_keep_their_codes(
    error: BaseException, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(raising(error)) == code
    assert "Traceback" not in capsys.readouterr().err


def test_a_full_disk_under_standard_output_is_not_a_defect() -> None:
    script = (
        "from producer.errors import run_command; from producer.startup import leave; "
        "leave(run_command(lambda: [print('a line') for _ in range(10_000)]))"
    )
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-c", script],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
    message = "error: output cannot be written: [Errno 28] No space left on device\n"
    assert (done.returncode, done.stderr) == (4, message)
