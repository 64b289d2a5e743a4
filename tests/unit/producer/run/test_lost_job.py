"""What a command says of a job that Redis lost while it ran."""

from __future__ import annotations

from typing import Any

import pytest

from producer.run.lost_job import JobGone, lost_words, reporting_lost_job
from ringhaul.formats.write import OutputFormat
from ringhaul.ledger.kinds import JobKind
from ringhaul.ledger.reading import JobMissing
from ringhaul.output.job import Output
from ringhaul.scan.job import ReadJob
from ringhaul.statements.job import StatementJob
from tasks.kinds import Job
from tests.loads import load_job, statement_values, table_schema

TABLE = table_schema({"id": "int"}, ["id"])
OUT = Output(url="/out", format=OutputFormat())


def read_of(kind: JobKind, **options: Any) -> ReadJob:
    sql = "SELECT id FROM shop.orders"
    return ReadJob(kind=kind, cluster_name="c", table=TABLE, sql=sql, **options)


def statement_of(kind: JobKind, **options: Any) -> StatementJob:
    return StatementJob(kind=kind, cluster_name="c", values=statement_values(TABLE), **options)


NOTHING = "Nothing was written to a table: run the command again."
FILES = (
    "Nothing was written to a table. Files of the job may be in /out, which has no manifest: "
    "remove them, and run the command again."
)


@pytest.mark.parametrize(
    ("job", "advice"),
    [
        (load_job(TABLE, kind=JobKind.VERIFY), NOTHING),
        (read_of(JobKind.COUNT), NOTHING),
        (read_of(JobKind.UNLOAD, output=OUT), FILES),
        (read_of(JobKind.UNLOAD, output=OUT, streams=True), NOTHING),
        (statement_of(JobKind.LOOKUP, output=OUT), FILES),
        (statement_of(JobKind.LOOKUP, output=OUT, streams=True), NOTHING),
        (
            statement_of(JobKind.EXEC, output=OUT),
            "Its statement may have run for any of the values. Run the command again only if the "
            "statement may run twice for the same values.",
        ),
        (
            load_job(TABLE, base_us=1_700_000_000_000_000),
            "Rows of the job may be in shop.orders, with write times from 1700000000000000 "
            "(2023-11-14T22:13:20+00:00) on. To load again, run the same command with --timestamp "
            "1700000000000000: records of unchanged files get the same write times, and rows that "
            "are already there do not change.",
        ),
    ],
)
def test_each_kind_says_what_it_may_have_left(job: Job, advice: str) -> None:
    assert lost_words("xx-1", job) == (
        "job xx-1 is gone from Redis, which was flushed, restarted without its data, or evicted "
        f"keys (`ringhaul doctor` looks at its settings). {advice}"
    )


def test_another_job_that_is_missing_is_not_the_command_s() -> None:
    job = read_of(JobKind.COUNT)
    with pytest.raises(JobMissing), reporting_lost_job("ct-1", job):
        raise JobMissing("ct-2")
    with pytest.raises(JobGone, match="job ct-1 is gone"), reporting_lost_job("ct-1", job):
        raise JobMissing("ct-1")
