"""All views of one job at one moment show the same figures."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console, ConsoleDimensions

from producer.figures.load_summary import summary_closing
from producer.figures.speed import recent_snapshot
from producer.report.job_rows import job_row
from producer.report.progress import JsonProgress, bar_lines, logfmt
from producer.report.top_view import View, as_document, as_screen
from producer.text import rate_text, time_text
from ringhaul.ledger.history import Sample
from ringhaul.ledger.job_status import Live
from ringhaul.ledger.states import JobState
from tests.unit.producer.figures.test_load_summary import summary
from tests.unit.producer.statuses import STARTED_MS, status


def test_a_running_job(capsys: pytest.CaptureFixture[str]) -> None:
    looked = status(
        25,
        labels={"kind": "load", "table": "shop.items", "bytes_total": "1000000"},
        totals={"rows": 7_000, "rejected": 37, "bytes": 200_000},
        live=Live(rows=100_180, rejected=3, bytes=80_000),
        done=2,
        pending=6,
        leased=4,
    )
    samples = [Sample(at_ms=STARTED_MS), Sample(at_ms=STARTED_MS + 10_000, rows=9_000, bytes=9_000)]
    snapshot = recent_snapshot(looked, samples, workers=4, hosts=1)
    view = View(jobs=[(looked, snapshot)], workers=[], units=[])

    # By number: `status --json`, `top --json`, the `status` message of `--json`
    JsonProgress().show(snapshot)
    (row, top, message) = (
        job_row(looked, snapshot),
        as_document(view)["jobs"][0],
        json.loads(capsys.readouterr().out),
    )
    for name in ("rows", "rejected", "rows_per_s", "eta_s"):
        assert row[name] == top[name] == message[name] == getattr(snapshot, name), name
    assert row["done"] == top["done"] == snapshot.share == 0.28
    assert top["bytes_per_s"] == message["bytes_per_s"]

    # As text: the bar, the log line, `top`
    out = io.StringIO()
    Console(width=160, file=out).print(as_screen(view, size=ConsoleDimensions(160, 40)))
    shown = out.getvalue().split()
    bar, pairs = " ".join(bar_lines(snapshot)), dict(p.split("=") for p in logfmt(snapshot).split())
    for text in ("28%", f"{107_180:,}", rate_text(snapshot.rows_per_s), time_text(snapshot.eta_s)):
        assert text in bar.split() and text in shown, text
    assert (pairs["pct"], pairs["rows"], pairs["rejected"]) == ("28.0", "107180", "40")
    assert pairs["rows_s"] == f"{snapshot.rows_per_s:.0f}"
    assert pairs["eta_s"] == f"{snapshot.eta_s:.0f}"
    assert "4 workers" in bar and pairs["workers"] == "4"


def test_an_ended_load() -> None:
    # Given a load of 4 s with 200 rows and 2 rejects
    ended = summary(
        JobState.PARTIAL, reasons={"cast id": 2}, totals={"rows": 200, "rejected": 2, "bytes": 4096}
    )
    snapshot = recent_snapshot(ended.status, [])
    closing = summary_closing(ended)
    # Then its summary and the lists of jobs have one speed and one state
    assert closing.data["rows_per_s"] == snapshot.rows_per_s == 50
    assert closing.data["rows"] == job_row(ended.status, snapshot)["rows"] == snapshot.rows
    assert closing.data["state"] == snapshot.state
    assert any(" 50 rows/s" in line for line in closing.figures)


def test_of_a_load_without_a_loaded_row_the_speed_is_0_everywhere() -> None:
    ended = status(
        9,
        state=JobState.PARTIAL,
        finished_ms=STARTED_MS + 4000,
        done=8,
        pending=0,
        totals={"rejected": 180, "bytes": 4096},
    )
    assert recent_snapshot(ended, []).rows_per_s == 0
