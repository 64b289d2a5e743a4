"""A worker's pool process, run inside the test's process with a real Redis and a real node."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from cassandra.cluster import Session

from producer.local.stack import Endpoints
from producer.run.feed import Feeder
from ringhaul.ledger.limits import ErrorLimit
from ringhaul.records.job import LoadJob
from tasks.child.process import Child, WrongCluster
from tests.integration.conftest import Settle
from tests.integration.load.conftest import make_table
from tests.loads import load_job, load_source


@pytest.fixture
def child(endpoints: Endpoints, tmp_path: Path, settle: Settle) -> Iterator[Child]:
    """A child with a session and an empty ledger. Messages go to a queue without a reader."""
    found = Child(
        settle(
            CLUSTER_CONTACT_POINTS=",".join(endpoints.contact_points),
            CLUSTER_PORT=endpoints.port,
            CLUSTER_CONSISTENCY="ONE",
            STATE_DIR=tmp_path / "state",
            WORKER_SESSION_JITTER_S=0,
        )
    )
    yield found
    found.close()
    found.ledger.caller.client.close()


class Connected(Child):
    """A child whose units need no Cassandra."""

    cluster_name = "production"

    def begin_unit(self) -> None:
        pass

    def check_cluster(self, cluster_name: str) -> None:
        if cluster_name != self.cluster_name:
            raise WrongCluster(f"the job is for cluster {cluster_name!r}")


@pytest.fixture
def connected(tmp_path: Path, settle: Settle) -> Iterator[Connected]:
    """A child with an empty ledger and no session. Messages go to queues without readers."""
    found = Connected(settle(STATE_DIR=tmp_path / "state"))
    yield found
    found.ledger.caller.client.close()


MakeJob = Callable[..., LoadJob]


@pytest.fixture
def make_job(child: Child, cassandra_session: Session, keyspace: str, tmp_path: Path) -> MakeJob:
    """`make_job(job_id, records)` creates a file and a job for table `keyspace.t`, and issues all
    units. The first call creates the table."""
    tables: list[Any] = []

    def make(
        job_id: str,
        records: Sequence[str],
        *,
        max_errors: str = "1000",
        definition: str = "id int PRIMARY KEY, v text",
        **options: Any,
    ) -> LoadJob:
        if not tables:
            tables.append(make_table(cassandra_session, keyspace, definition))
        path = tmp_path / f"{job_id}.csv"
        path.write_text("".join(f"{record}\n" for record in records))
        source = load_source(tables[0].column_names, path=str(path), size_bytes=path.stat().st_size)
        defaults = {
            "cluster_name": cassandra_session.cluster.metadata.cluster_name,
            "consistency": "ONE",
            "unit_bytes": 100,
        }
        job = load_job(tables[0], source, **(defaults | options))
        child.ledger.create(
            job_id, {}, json.dumps(job.to_json()), error_limit=ErrorLimit.parse(max_errors)
        )
        feeder = Feeder(child.ledger, job_id, 1, job)
        feeder.start()
        feeder.join(30)
        assert feeder.finished and feeder.error is None
        child.ledger.issue(job_id, 1000)
        return job

    return make
