"""What a worker process keeps from unit to unit: statements, jobs, the schema."""

from __future__ import annotations

import json
from dataclasses import replace

from cassandra.cluster import Session

from ringhaul.destination.delivered import Streaming
from ringhaul.ledger.ledger import new_token
from ringhaul.load.statement import Statements
from ringhaul.sstables.layout import Layout
from ringhaul.streaming.ring import read_table_id
from tasks.child.process import Child
from tasks.child.stream_target import stream_target
from tests.integration.tasks.child.messages import JOB, work
from tests.integration.tasks.conftest import MakeJob
from tests.services import fresh_keyspace

LAYOUT = Layout(
    partition_key_class="org.apache.cassandra.db.marshal.Int32Type",
    clustering=(),
    columns=(),
    written_s=1_700_000_000,
)


def test_a_statement_is_prepared_once_and_a_job_is_read_once(
    child: Child, make_job: MakeJob
) -> None:
    make_job(JOB, ["1,a", "2,b", "3,c"], unit_bytes=1)
    parsed = child.job(JOB)
    work(child, JOB, 0, 1, new_token())
    (statement,) = child._prepared.values()
    for unit in (1, 2):
        work(child, JOB, unit, 1, new_token())
    assert list(child._prepared.values()) == [statement]
    assert child.job(JOB) is parsed
    assert json.loads(child.ledger.job_spec(JOB)) == parsed.to_json()


def test_the_most_recent_jobs_stay_parsed(child: Child, make_job: MakeJob) -> None:
    # Given a child that works on one job between others
    for number in range(8):
        make_job(f"ld-{number:06}", [f"{number},a"])
    kept = child.job("ld-000000")
    for number in range(1, 8):
        child.job(f"ld-{number:06}")
        assert child.job("ld-000000") is kept
    assert len(child._jobs) == 4


def test_a_keyspace_newer_than_the_session_is_known_before_rows_are_routed(
    child: Child, cassandra_session: Session
) -> None:
    # Given a connected worker process
    child.session()
    with fresh_keyspace(cassandra_session) as made:
        cassandra_session.execute(f"CREATE TABLE {made}.t (id int PRIMARY KEY)")
        # When it gets rows of a newer keyspace
        target = child.target(Statements(f'INSERT INTO "{made}"."t" ("id") VALUES (?)'), made)
        # Then it knows their replicas
        assert made in target.session.cluster.metadata.keyspaces


def test_a_keyspace_newer_than_the_session_is_known_before_sstables_are_streamed(
    child: Child, cassandra_session: Session, make_job: MakeJob
) -> None:
    # Given a connected worker process, and a job for a keyspace that it has not heard of
    session = child.session()
    with fresh_keyspace(cassandra_session) as keyspace:
        cassandra_session.execute(f"CREATE TABLE {keyspace}.t (id int PRIMARY KEY, v text)")
        session.cluster.metadata.keyspaces.pop(keyspace, None)
        make_job(JOB, ["1,a"])
        job = child.job(JOB)
        assert job.table is not None
        streaming = Streaming(
            table_id=read_table_id(cassandra_session, keyspace, "t"), layout=LAYOUT
        )
        table = replace(job.table, keyspace=keyspace, table="t")

        # When SSTables for it are planned, then their owners and how many must take them are known
        target = stream_target(child, replace(job, table=table), streaming, JOB)

    assert str(target.table) == streaming.table_id
    assert target.needed == {None: 1}
