"""What may happen between the plan of a new table and its first row."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cassandra.cluster import Session

from config.settings import load_settings
from producer.notes import Note
from producer.plan.new_table import Planned
from producer.request.load import LoadDraft, load_draft
from producer.run import create_table as module
from producer.run.create_table import create_table
from ringhaul.cluster.driver_view import DriverView
from ringhaul.errors import ClusterError, ClusterUnavailable
from ringhaul.records.job import LoadJob
from ringhaul.sources.find import find_sources
from ringhaul.sources.source import SourceFile
from tests.heads import plan_new_table, wanted_table
from tests.loads import load_job
from tests.options import parse_options


@pytest.fixture
def files(tmp_path: Path) -> list[SourceFile]:
    (tmp_path / "a.csv").write_text("id,v\n1,x\n")
    return list(find_sources([str(tmp_path)]))


@pytest.fixture
def options(keyspace: str) -> Any:
    return parse_options("load", "a.csv", "-t", f"{keyspace}.t", "--create-table", "--yes", "-q")


@pytest.fixture
def request_(options: Any) -> LoadDraft:
    return load_draft(options, load_settings())


def planned_job(planned: Planned) -> LoadJob:
    return load_job(planned.table.schema)


def test_the_job_gets_the_table_as_the_cluster_has_it(
    cassandra_session: Session, options: Any, request_: LoadDraft, files: list[SourceFile]
) -> None:
    planned = wanted_table(request_, files, DriverView(cassandra_session))
    assert isinstance(planned, Planned)
    settings = load_settings().settings
    job = create_table(planned, planned_job(planned), options, cassandra_session, settings)
    assert job.table == planned.table.schema
    found = wanted_table(request_, files, DriverView(cassandra_session))
    assert found == Note(f"{request_.keyspace}.t exists already, and matches the files")


def test_a_table_that_somebody_else_creates_meanwhile_is_not_taken_for_ours(
    cassandra_session: Session, options: Any, request_: LoadDraft, files: list[SourceFile]
) -> None:
    planned = wanted_table(request_, files, DriverView(cassandra_session))
    assert isinstance(planned, Planned)
    cassandra_session.execute(f"CREATE TABLE {request_.keyspace}.t (id text PRIMARY KEY)")
    with pytest.raises(ClusterError, match="somebody else has just created"):
        create_table(
            planned, planned_job(planned), options, cassandra_session, load_settings().settings
        )


def test_nodes_that_do_not_agree_end_the_command(
    cassandra_session: Session,
    options: Any,
    request_: LoadDraft,
    files: list[SourceFile],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Given nodes that have two schemas, as the driver sees them
    waited: list[float] = []

    def disagree(*, wait_time: float) -> bool:
        waited.append(wait_time)
        return False

    control = SimpleNamespace(wait_for_schema_agreement=disagree)
    session = SimpleNamespace(cluster=SimpleNamespace(control_connection=control))
    with pytest.raises(ClusterUnavailable, match="not all nodes know it"):
        module._wait_for_agreement(session)
    assert waited == [module.AGREEMENT_TIMEOUT_S]
    # and create_table asks before it returns
    monkeypatch.setattr(module, "_wait_for_agreement", lambda session: waited.append(0))
    planned = plan_new_table(request_, files)
    create_table(
        planned, planned_job(planned), options, cassandra_session, load_settings().settings
    )
    assert waited == [module.AGREEMENT_TIMEOUT_S, 0]
