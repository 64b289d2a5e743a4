"""Two attempts of one unit of an unload: the files of the one that counts stay, the other's go."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cassandra.cluster import Session
from cassandra.concurrent import execute_concurrent_with_args

from producer.run_read import Plan, create_job
from ringhaul.formats.write import OutputFormat
from ringhaul.ledger.ledger import Commit, new_token
from ringhaul.read.finish import job_parts, publish_manifest
from ringhaul.read.job import Output, ReadJob
from ringhaul.read.ranges import FULL_RING, pack_ranges
from tasks.child import Child
from tasks.reading import run_read
from tasks.work import Attempt, Done, work
from tests.integration.load.conftest import make_table

JOB = "ul-000001"
ROWS = 500


@pytest.fixture
def folder(child: Child, cassandra_session: Session, keyspace: str, tmp_path: Path) -> Path:
    """Of the files of a job of one unit, which is issued."""
    table = make_table(cassandra_session, keyspace, "id int PRIMARY KEY, v text")
    insert = cassandra_session.prepare(f"INSERT INTO {keyspace}.t (id, v) VALUES (?, 'x')")
    execute_concurrent_with_args(cassandra_session, insert, [(i,) for i in range(ROWS)])
    out = tmp_path / "out"
    job = ReadJob(
        kind="unload",
        cluster_name=cassandra_session.cluster.metadata.cluster_name,
        table=table,
        sql=f"SELECT id, v FROM {keyspace}.t",
        consistency="ONE",
        output=Output(url=str(out), format=OutputFormat(), rows_max=200),
    )
    plan = Plan(job=job, units=[pack_ranges([FULL_RING])], target="t", headline="")
    create_job(child.ledger, JOB, plan, "nobody-reads-this")
    child.ledger.issue(JOB, 10)
    return out


def work_on(child: Child, token: str, then: Callable[[Attempt, Done], None]) -> dict[str, Any]:
    """Work on the unit; `then` is called between its last row and its commit."""

    def run(attempt: Attempt) -> Done:
        done = run_read(attempt)
        then(attempt, done)
        return done

    return work(child, JOB, 0, 1, token, run)


def nothing(attempt: Attempt, done: Done) -> None:
    pass


def files(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def check_counted(child: Child, folder: Path) -> None:
    names = [part.name for part in job_parts(child.ledger, JOB)]
    assert files(folder) == sorted(names) and len(names) == 3
    assert child.ledger.status(JOB).totals["rows"] == ROWS
    assert publish_manifest(child.ledger, JOB).rows == ROWS
    assert files(folder) == sorted([*names, "manifest.json"])


def test_the_files_of_an_attempt_that_came_too_late_are_removed(child: Child, folder: Path) -> None:
    """By itself: the manifest, whose writer removes orphans, may have been written before."""
    token = new_token()

    def overtaken(attempt: Attempt, done: Done) -> None:
        assert len(files(folder)) == 3
        child.ledger.lost(JOB, 0, token)
        child.ledger.issue(JOB, 10)
        assert work_on(child, new_token(), nothing) == {"unit": 0, "rows": ROWS, "parts": 3}
        assert len(files(folder)) == 6

    work_on(child, token, overtaken)
    check_counted(child, folder)


def test_a_commit_whose_answer_was_lost_keeps_its_files(child: Child, folder: Path) -> None:
    token = new_token()

    def committed(attempt: Attempt, done: Done) -> None:
        answer = child.ledger.commit(
            JOB, 0, 1, token, done.result, done.totals, done.latencies, done.extra
        )
        assert answer is Commit.COUNTED

    work_on(child, token, committed)
    check_counted(child, folder)


def test_an_attempt_of_before_a_resume_leaves_no_files(child: Child, folder: Path) -> None:
    token = new_token()

    def cancelled(attempt: Attempt, done: Done) -> None:
        child.ledger.cancel(JOB)
        child.ledger.lost(JOB, 0, token)
        assert child.ledger.resume(JOB) == 2

    work_on(child, token, cancelled)
    assert files(folder) == []
    child.ledger.issue(JOB, 10)
    assert work(child, JOB, 0, 2, new_token(), run_read)["rows"] == ROWS
    check_counted(child, folder)
