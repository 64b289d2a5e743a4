"""Competing attempts of a unit of an unload or an exec: the files of the committed one stay, those
of the other are removed; and their records in the ledger."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cassandra.cluster import Session
from cassandra.concurrent import execute_concurrent_with_args

from producer.commands.errors import errors_command
from producer.figures import rejects
from producer.figures.rejects import job_rejects, reject_lines
from producer.figures.statement_summary import statement_closing
from producer.plan.plan import Plan
from producer.run.job import create_job, hand_out
from ringhaul.cluster.schema import ColumnSchema, TableSchema
from ringhaul.formats.write import OutputFormat
from ringhaul.ledger.answers import Commit
from ringhaul.ledger.labels import QUEUE_LABEL
from ringhaul.ledger.ledger import new_token
from ringhaul.output.job import Output
from ringhaul.records.unit import LoadUnit
from ringhaul.scan.finish import job_parts, publish_manifest
from ringhaul.scan.job import ReadJob
from ringhaul.scan.ranges import FULL_RING, pack_ranges
from ringhaul.statements import job as statement_job
from ringhaul.statements.finish import publish_ask_manifest
from ringhaul.statements.job import SpanUnit, StatementJob
from ringhaul.statements.result import split_extra
from tasks.child.process import Child
from tasks.child.scan import run_read
from tasks.child.statements import run_statements
from tasks.child.unit import Attempt, Done, Runner, work
from tests.integration.load.conftest import make_table
from tests.loads import load_source, statement_values

JOB = "ul-000001"
ROWS = 500


@pytest.fixture
def folder(child: Child, cassandra_session: Session, keyspace: str, tmp_path: Path) -> Path:
    """The output folder of a job of one issued unit."""
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
    create_job(child.ledger, JOB, plan, {QUEUE_LABEL: "unread"})
    child.ledger.issue(JOB, 10)
    return out


def work_on(
    child: Child, token: str, then: Callable[[Attempt, Done], None], runner: Runner = run_read
) -> dict[str, Any]:
    """Run the unit, and call `then` between its last row and its commit."""

    def run(attempt: Attempt) -> Done:
        done = runner(attempt)
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
    assert files(folder) == sorted([*names, "_manifest.json"])


def test_the_files_of_a_late_attempt_are_removed(child: Child, folder: Path) -> None:
    """The attempt removes them: the writer of the manifest, which removes orphans, may be done."""
    token = new_token()

    def overtaken(attempt: Attempt, done: Done) -> None:
        assert len(files(folder)) == 3
        child.ledger.lost(JOB, 0, token)
        child.ledger.issue(JOB, 10)
        assert work_on(child, new_token(), nothing) == {"unit": 0, "rows": ROWS, "parts": 3}
        assert len(files(folder)) == 6

    work_on(child, token, overtaken)
    check_counted(child, folder)


def test_a_commit_with_a_lost_answer_keeps_its_files(child: Child, folder: Path) -> None:
    token = new_token()

    def committed(attempt: Attempt, done: Done) -> None:
        answer = child.ledger.commit(
            JOB, 0, 1, token, done.result, done.totals, done.latencies, done.extra
        )
        assert answer is Commit.COUNTED

    work_on(child, token, committed)
    check_counted(child, folder)


def test_an_attempt_from_before_a_resume_leaves_no_files(child: Child, folder: Path) -> None:
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


MARKER = TableSchema(
    keyspace="exec",
    table="values",
    columns=(ColumnSchema(name="id", cql_type="int"),),
    partition_key=(),
    clustering_key=(),
)


@pytest.fixture
def answers(child: Child, cassandra_session: Session, keyspace: str, tmp_path: Path) -> Path:
    """The output folder of an exec of one issued unit."""
    table = make_table(cassandra_session, keyspace, "id int PRIMARY KEY, v text")
    insert = cassandra_session.prepare(f"INSERT INTO {keyspace}.t (id, v) VALUES (?, 'x')")
    execute_concurrent_with_args(cassandra_session, insert, [(i,) for i in range(ROWS)])
    out = tmp_path / "out"
    job = StatementJob(
        kind="exec",
        cluster_name=cassandra_session.cluster.metadata.cluster_name,
        values=statement_values(MARKER),
        spans=(f"id:0..{ROWS - 1}",),
        statement=f"SELECT id, v FROM {keyspace}.t WHERE id = ?",
        result=tuple((name, table.types[name]) for name in ("id", "v")),
        consistency="ONE",
        output=Output(url=str(out), format=OutputFormat(), rows_max=200),
    )
    plan = Plan(job=job, units=[SpanUnit(0, ROWS).pack()], target="t", headline="")
    create_job(child.ledger, JOB, plan, {QUEUE_LABEL: "unread"})
    child.ledger.issue(JOB, 10)
    return out


def test_answers_of_a_late_attempt_are_removed(child: Child, answers: Path) -> None:
    token = new_token()

    def overtaken(attempt: Attempt, done: Done) -> None:
        assert len(files(answers)) == 3
        child.ledger.lost(JOB, 0, token)
        child.ledger.issue(JOB, 10)
        result = work_on(child, new_token(), nothing, run_statements)
        assert result == {"unit": 0, "answered": ROWS, "rows": ROWS}
        assert len(files(answers)) == 6

    work_on(child, token, overtaken, run_statements)
    (extra,) = [extra for _, extra in child.ledger.extras(JOB)]
    parts, _ = split_extra(extra)
    assert files(answers) == sorted(part.name for part in parts)
    publish_ask_manifest(child.ledger, child.ledger.status(JOB))
    assert files(answers) == sorted([*(part.name for part in parts), "_manifest.json"])


@pytest.fixture(params=["exec of ranges", "lookup of a file"])
def nearly_all(
    request: pytest.FixtureRequest,
    child: Child,
    cassandra_session: Session,
    keyspace: str,
    tmp_path: Path,
) -> StatementJob:
    """A job of 100 existing rows, or of 100 keys without a row, in units of 75 and 25."""
    table = make_table(cassandra_session, keyspace, "id int PRIMARY KEY, v text")
    name, values, facts = f"{keyspace}.t", statement_values(MARKER), dict[str, Any]()
    units = [SpanUnit(0, 75).pack(), SpanUnit(75, 100).pack()]
    if request.param == "exec of ranges":
        for i in range(100):
            cassandra_session.execute(f"INSERT INTO {name} (id, v) VALUES ({i}, 'x')")
        statement = f"INSERT INTO {name} (id, v) VALUES (?, 'y') IF NOT EXISTS"
        facts = {"kind": "exec", "statement": statement, "spans": ("id:0..99",)}
    else:
        path = tmp_path / "keys.csv"
        path.write_text("".join(f"{i:02}\n" for i in range(100)))
        values = statement_values(MARKER, load_source(["id"], path=str(path), size_bytes=300))
        units = [LoadUnit(0, 0, 225, 0, 1, 75).pack(), LoadUnit(0, 225, 75, 75, 76, 25).pack()]
        facts = {"kind": "lookup", "table": table, "key": ("id",), "columns": ("id", "v")}
    job = StatementJob(
        cluster_name=cassandra_session.cluster.metadata.cluster_name,
        values=values,
        consistency="ONE",
        **facts,
    )
    plan = Plan(job=job, units=[] if job.input else units, target="t", headline="")
    create_job(child.ledger, JOB, plan, {QUEUE_LABEL: "unread"})
    hand_out(child.ledger, JOB, units, 1)  # of files: as a feeder does
    child.ledger.issue(JOB, 10)
    return job


def test_a_job_lists_some_unapplied_rows_and_counts_the_rest(
    child: Child,
    nearly_all: StatementJob,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # Given a job that may list 40
    for module in (statement_job, rejects):
        monkeypatch.setattr(module, "LISTED_MAX", 40)
    # When its units are done
    for unit in range(2):
        work(child, JOB, unit, 1, new_token(), run_statements)
    # Then all are counted, and each unit lists its share: the first rows
    data = statement_closing(child.ledger, child.ledger.status(JOB)).data
    counted = "not_applied" if nearly_all.kind == "exec" else "missing"
    expected = {"answered": 100, "rejected": 0, counted: 100, "not_kept": 60}
    assert {name: data[name] for name in expected} == expected
    lines = [reject.line for reject in job_rejects(child.ledger, JOB)]
    assert [sum(line <= 75 for line in lines), sum(line > 75 for line in lines)] == [30, 10]
    # And `errors` mentions the others
    dropped = "60 more, not listed: the ledger keeps 40 "
    *_, more, others = reject_lines(child.ledger, JOB, 5)
    assert more.startswith("... 35 more (--limit") and others.startswith(f"... {dropped}")
    for option in [["--json"]] + [["--export", str(tmp_path / "keys")]] * (counted == "missing"):
        errors_command.main([JOB, *option], standalone_mode=False)
        out, err = capsys.readouterr()
        assert len(out.splitlines()) == 40 * (option == ["--json"])
        assert err.splitlines()[-1].startswith(dropped)
