"""Progress: its text, its stream, and how often it is written."""

from __future__ import annotations

import json
import time

import pytest

from producer.figures.snapshot import Snapshot
from producer.figures.speed import recent_snapshot
from producer.report import progress
from producer.report.progress import (
    BarProgress,
    JsonProgress,
    LineProgress,
    NoProgress,
    bar_lines,
    logfmt,
    open_progress,
)
from ringhaul.ledger.history import Sample
from ringhaul.ledger.job_status import Live
from tests.unit.producer.statuses import STARTED_MS, status


def snapshot(*, p50_ms: float | None = None, **facts: object) -> Snapshot:
    before = [Sample(at_ms=STARTED_MS + 5_000), Sample(at_ms=STARTED_MS + 10_000)]
    figures = {"totals": {"rows": 7_000, "rejected": 37, "bytes": 600_000, "retries": 4}}
    labels = {"bytes_total": "1000000"}
    return recent_snapshot(
        status(
            15,
            labels=labels,
            **(figures | {"done": 5, "pending": 3, "live": Live(rows=300)} | facts),
        ),
        before,
        workers=6,
        hosts=3,
        p50_ms=p50_ms,
        p99_ms=None if p50_ms is None else 38.0,
    )


def test_the_bar_shows_share_rate_and_remaining_time() -> None:
    first, second = bar_lines(snapshot(p50_ms=1.25))
    assert first == (" ━━━━━━━━━━━━━━━━━━────────────  60%  5/8 units   0:15  ETA 0:03   6 workers")
    assert second == (
        " 7,300 rows   37 rejected   1,460 rows/s   117.2 KiB/s   p50 1.2 ms  p99 38 ms   4 retries"
    )


def test_the_bar_counts_one_row_and_one_retry() -> None:
    one = snapshot(totals={"rows": 1, "rejected": 0, "bytes": 9, "retries": 1}, live=Live())
    second = bar_lines(one)[1]
    assert second.startswith(" 1 row   ") and second.endswith("   1 retry")


def test_the_bar_shows_that_units_are_still_being_split() -> None:
    assert "5/8+ units" in bar_lines(snapshot(sealed=False))[0]
    assert "p50 -  p99 -" in bar_lines(snapshot())[1]


def test_a_stalled_job_shows_the_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stuck = snapshot(
        last_error='no "[replica]"', error_ms=STARTED_MS + 3_000, error_done=5, failing=1, fails=1
    )
    retrying = '1 unit, failed 1 time, last 0:12 ago: no "[replica]"'
    assert bar_lines(stuck)[2:] == (f" retrying {retrying}",)
    assert logfmt(stuck).endswith(f" retrying={json.dumps(retrying)}")
    assert len(bar_lines(snapshot())) == 2
    monkeypatch.setenv("FORCE_COLOR", "1")  # or there is no bar: stderr is not a terminal
    with BarProgress() as shown:
        shown.show(stuck)
    # Text in brackets is not taken for markup
    assert "[replica]" in capsys.readouterr().err


def test_a_log_line_is_logfmt_and_leaves_out_what_is_not_known() -> None:
    pairs = dict(pair.split("=") for pair in logfmt(snapshot(p50_ms=1.25)).split(" "))
    stamp = pairs.pop("ts")
    assert (stamp[4], stamp[10], stamp[-1]) == ("-", "T", "Z")
    assert pairs == {
        "job": "ld-7f3a9c",
        "state": "RUNNING",
        "pct": "60.0",
        "units": "5/8",
        "rows": "7300",
        "rejected": "37",
        "rows_s": "1460",
        "bytes_s": "120000",
        "p50_ms": "1.25",
        "p99_ms": "38.0",
        "retries": "4",
        "eta_s": "3",
        "workers": "6",
    }
    unknown = logfmt(recent_snapshot(status(0), []))
    assert "p50_ms" not in unknown
    assert "eta_s" not in unknown


def test_a_log_line_is_written_every_half_minute(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    lines = LineProgress()
    # When the job is polled every second for 95 s
    for _ in range(95):
        clock[0] += 1
        lines.show(snapshot())
    # Then there are three lines, on stderr: stdout is for data
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 3
    assert all("job=ld-7f3a9c state=RUNNING" in line for line in captured.err.splitlines())


def test_json_is_one_message_a_second_on_stdout(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    messages = JsonProgress()
    for _ in range(9):
        messages.show(snapshot())
        clock[0] += 0.25
    captured = capsys.readouterr()
    assert captured.err == ""
    found = [json.loads(line) for line in captured.out.splitlines()]
    assert [message["message_type"] for message in found] == ["status"] * 3
    assert (found[0]["job"], found[0]["rows"], found[0]["rejected"]) == ("ld-7f3a9c", 7300, 37)


@pytest.mark.parametrize(
    ("kind", "quiet", "shown"),
    [
        ("auto", True, NoProgress),
        ("bar", True, NoProgress),
        ("none", False, NoProgress),
        ("json", False, JsonProgress),
        ("plain", False, LineProgress),
        ("auto", False, LineProgress),  # the tests' stderr is not a terminal
        ("bar", False, progress.BarProgress),
    ],
)
def test_the_kind_of_progress(kind: str, quiet: bool, shown: type) -> None:
    with open_progress(kind, quiet=quiet) as found:
        assert type(found) is shown


def test_a_note_stays_with_every_kind_of_progress(capsys: pytest.CaptureFixture[str]) -> None:
    for kind in ("none", "plain", "json", "bar"):
        with open_progress(kind, quiet=False) as shown:
            shown.note("Redis is [back]")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("Redis is [back]") == 4
