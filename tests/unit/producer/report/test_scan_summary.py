"""How a read ended: the closing table, and the summary for programs."""

from __future__ import annotations

from typing import Any

import pytest

from producer.report.scan_summary import report_closing
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
def test_it_is_told_where_the_rows_went(state: JobState, words: str) -> None:
    ended = status(state=state)
    told = report_closing(ended, job(), REPORT, 0).text
    assert words.format("are in /out/orders") in told and "2 files" in told
    assert report_closing(ended, job(), REPORT, 0).data["output"] == "/out/orders"
    # The spool folder of what went to standard output is gone.
    streamed = job(streams=True)
    told = report_closing(ended, streamed, REPORT, 0).text
    assert words.format("went to standard output") in told
    assert "/out/orders" not in told and "file" not in told
    assert report_closing(ended, streamed, REPORT, 0).data["output"] is None


def test_rejects_of_a_unit_that_is_not_done_are_told() -> None:
    report = ReadReport(rows=5, rejected=1, rejected_unfinished=7)
    ended = status(state=JobState.STOPPED)
    assert "; 8 rejected, " in report_closing(ended, job(), report, 0).text
    data = report_closing(ended, job(), report, 3).data
    assert (data["rejected"], data["rejected_unfinished"]) == (1, 7)


@pytest.mark.parametrize(
    "state", [JobState.STOPPED, JobState.QUARANTINED, JobState.CANCELLED, JobState.FAILED]
)
def test_what_went_to_standard_output_cannot_be_resumed(state: JobState) -> None:
    ended = status(state=state)
    assert "ringhaul resume ld-7f3a9c" in report_closing(ended, job(), REPORT, 0).text
    assert "ringhaul resume" not in report_closing(ended, job(streams=True), REPORT, 0).text
