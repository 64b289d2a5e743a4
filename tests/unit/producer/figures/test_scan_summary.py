"""The end of a read: the closing table, and the summary as JSON."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from producer.figures.scan_summary import report_closing
from ringhaul.formats.write import OutputFormat
from ringhaul.ledger.states import JobState
from ringhaul.output.job import Output
from ringhaul.scan.job import ReadJob
from ringhaul.scan.result import ReadReport
from tests.loads import table_schema
from tests.unit.producer.statuses import status

REPORT = ReadReport(rows=5, rows_read=5, parts=2, bytes_written=40, rejected=1)


def job(**options: Any) -> ReadJob:
    return ReadJob(
        kind="unload",
        cluster_name="test",
        table=table_schema({"id": "int"}, ["id"]),
        sql="SELECT id FROM shop.orders",
        output=Output(url="/out/orders", format=OutputFormat()),
        **options,
    )


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (JobState.COMPLETE, "complete: 5 rows of shop.orders {}"),
        (JobState.PARTIAL, "complete with rejects: 5 rows {}, 1 of shop.orders rejected"),
    ],
)
def test_the_summary_says_where_the_rows_went(state: JobState, words: str) -> None:
    ended = status(state=state)
    text = report_closing(ended, job(), REPORT, 0).text
    assert words.format("are in /out/orders") in text and "2 files" in text
    assert report_closing(ended, job(), REPORT, 0).data["output"] == "/out/orders"
    # The spool folder of rows for standard output is gone.
    streamed = job(streams=True)
    text = report_closing(ended, streamed, REPORT, 0).text
    assert words.format("went to standard output") in text
    assert "/out/orders" not in text and "file" not in text
    assert report_closing(ended, streamed, REPORT, 0).data["output"] is None


def test_a_single_row_is_one_row() -> None:
    one = replace(REPORT, rows=1)
    text = report_closing(status(state=JobState.COMPLETE), job(), one, 0).text
    assert "complete: 1 row of shop.orders is in /out/orders" in text


def test_rejects_of_an_unfinished_unit_are_shown() -> None:
    report = ReadReport(rows=5, rejected=1, rejected_unfinished=7)
    ended = status(state=JobState.STOPPED)
    assert "; 8 rejected, " in report_closing(ended, job(), report, 0).text
    data = report_closing(ended, job(), report, 3).data
    assert (data["rejected"], data["rejected_unfinished"]) == (1, 7)


@pytest.mark.parametrize(
    "state", [JobState.STOPPED, JobState.QUARANTINED, JobState.CANCELLED, JobState.FAILED]
)
def test_a_read_to_standard_output_cannot_be_resumed(state: JobState) -> None:
    ended = status(state=state)
    assert "ringhaul resume ld-7f3a9c" in report_closing(ended, job(), REPORT, 0).text
    assert "ringhaul resume" not in report_closing(ended, job(streams=True), REPORT, 0).text
