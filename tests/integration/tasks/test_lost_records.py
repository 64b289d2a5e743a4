"""A record that killed earlier attempts of its unit: the next attempt rejects it and does the rest.

The tests write the losses of the earlier attempts into the ledger. How they get there, and a whole
command, is in `acceptance/test_stalled_records.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from cassandra.cluster import Session

from producer.figures.quarantined_units import given_up_lines
from producer.figures.rejects import job_rejects
from producer.plan.plan import Plan
from producer.run.job import create_job, hand_out
from ringhaul.breadcrumb import CRUMB_BYTES, TRAIL, Loss, read_crumb
from ringhaul.cluster.schema import ColumnSchema, TableSchema
from ringhaul.ledger.answers import Claimed, Lease
from ringhaul.ledger.labels import QUEUE_LABEL
from ringhaul.ledger.ledger import new_token
from ringhaul.ledger.states import JobState
from ringhaul.records.unit import LoadUnit
from ringhaul.statements.job import StatementJob
from tasks.child.load import run_load
from tasks.child.process import Child
from tasks.child.statements import run_statements
from tasks.child.unit import Attempt, Done, UnitStopped, work
from tasks.child.verify import run_verify
from tests.integration.load.conftest import make_table
from tests.integration.tasks.conftest import MakeJob
from tests.loads import load_source, statement_values

JOB = "ld-000002"
LEASE_MS = 60_000
ROWS, CULPRIT = 100, 41
KEYS = TableSchema(
    keyspace="ask",
    table="values",
    columns=(ColumnSchema(name="id", cql_type="int"),),
    partition_key=(),
    clustering_key=(),
)


def lose(child: Child, loss: Loss) -> None:
    """Start an attempt of unit 0 whose process dies."""
    token = new_token()
    assert isinstance(child.ledger.claim(JOB, 0, 1, token, LEASE_MS), Claimed)
    child.ledger.lost(JOB, 0, token, loss=loss, epoch=1)
    child.ledger.issue(JOB, 10)


def narrow_down(child: Child, path: str) -> None:
    """Lose two attempts: one with the culprit among all records, and one with only the culprit."""
    lose(child, Loss("convert", path, "id", 1, 0, ROWS, 0))
    lose(child, Loss("convert", path, "id", CULPRIT + 1, CULPRIT, CULPRIT + 1, 0))


def check_left_out(child: Child) -> None:
    status = child.ledger.status(JOB)
    assert status.state is JobState.PARTIAL
    assert (status.totals["rows"], status.totals["rejected"]) == (ROWS - 1, 1)
    (reject,) = [one for one in job_rejects(child.ledger, JOB) if one.stage != "missing"]
    assert (reject.line, reject.stage, reject.column) == (CULPRIT + 1, "convert", "id")
    assert "this record killed its process" in reject.reason


@pytest.fixture(params=["lookup", "exec", "exec once"])
def statement_job(
    request: pytest.FixtureRequest,
    child: Child,
    cassandra_session: Session,
    keyspace: str,
    tmp_path: Path,
) -> StatementJob:
    """A job of 100 keys of a file in one issued unit."""
    table = make_table(cassandra_session, keyspace, "id int PRIMARY KEY, v text")
    path = tmp_path / "keys.csv"
    path.write_text("".join(f"{i:02}\n" for i in range(ROWS)))
    source = load_source(["id"], path=str(path), size_bytes=3 * ROWS)
    job = StatementJob(
        kind=request.param.split()[0],
        cluster_name=cassandra_session.cluster.metadata.cluster_name,
        values=statement_values(KEYS, source),
        table=table if request.param == "lookup" else None,
        key=("id",),
        columns=("id", "v"),
        statement=f"INSERT INTO {keyspace}.t (id, v) VALUES (?, 'x')",
        repeatable=request.param != "exec once",
        consistency="ONE",
    )
    plan = Plan(job=job, target="t", headline="")
    create_job(child.ledger, JOB, plan, {QUEUE_LABEL: "unread"})
    hand_out(child.ledger, JOB, [LoadUnit(0, 0, 3 * ROWS, 0, 1, ROWS).pack()], 1)
    child.ledger.issue(JOB, 10)
    return job


@pytest.mark.parametrize("statement_job", ["lookup", "exec"], indirect=True)
def test_a_key_that_killed_its_process_is_a_reject(
    child: Child, statement_job: StatementJob
) -> None:
    narrow_down(child, statement_job.values.sources[0].file.path)
    result = work(child, JOB, 0, 1, new_token(), run_statements)
    assert result["answered"] == ROWS - 1
    check_left_out(child)


@pytest.mark.parametrize("statement_job", ["exec once"], indirect=True)
def test_a_lost_unit_that_must_not_run_twice_reports_its_records(
    child: Child, statement_job: StatementJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a process that is killed with its last requests in flight
    memory, token = bytearray(CRUMB_BYTES), new_token()
    monkeypatch.setattr(TRAIL, "_memory", memory)

    def killed(attempt: Attempt) -> Done:
        run_statements(attempt)
        loss = Loss(**{"column": "", "stalled_s": 0} | read_crumb(memory).where)
        assert child.ledger.lost(JOB, 0, token, loss=loss, epoch=1) is Lease.OK
        raise UnitStopped("killed")

    work(child, JOB, 0, 1, token, killed)
    # Then its unit is given up, and the job reports which records may have run
    status = child.ledger.status(JOB)
    path = statement_job.values.sources[0].file.path
    assert given_up_lines(child.ledger, status)[0] == (
        f" unit 0: its process was killed while at stage ask of lines 1 to about 100 of {path}"
    )


def test_a_record_that_killed_a_verifying_process_is_a_reject(
    child: Child, make_job: MakeJob, tmp_path: Path
) -> None:
    records = [f"{i},v" for i in range(ROWS)]
    make_job("ld-000001", records, unit_bytes=1 << 20)
    work(child, "ld-000001", 0, 1, new_token(), run_load)
    make_job(JOB, records, unit_bytes=1 << 20)
    narrow_down(child, str(tmp_path / f"{JOB}.csv"))
    work(child, JOB, 0, 1, new_token(), run_verify)
    check_left_out(child)
