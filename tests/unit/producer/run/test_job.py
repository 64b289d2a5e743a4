"""Checks while a reading job is planned, also by a dry run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from cassandra.cluster import Session
from cassandra.cqltypes import Int32Type
from cassandra.protocol import ColumnMetadata

from producer.plan.plan import Plan
from producer.request.settings import settle
from producer.run.job import plan_and_run
from producer.run.statements import run_exec
from producer.services.start import Services
from ringhaul.cluster.driver_view import DriverView
from ringhaul.errors import UsageError
from tests.options import parse_options
from tests.unit.cluster.sessions import by_dc, session

ROWS = by_dc(dc1="3")
FAR, NEAR = ("dc2", "dc1", "dc1"), ("dc1", "dc1", "dc2")


def services(of: Session) -> Services:
    """Services of a command with embedded workers and an open session."""
    opening = SimpleNamespace(view=lambda: DriverView(of), close=lambda: None)
    loaded = settle({}, config_file=None)
    return cast(
        Services,
        SimpleNamespace(
            job_id="ul-1",
            loaded=loaded,
            settings=loaded.settings,
            opening=opening,
            worker=None,
        ),
    )


def test_a_dry_run_warns_like_the_job(capsys: pytest.CaptureFixture[str]) -> None:
    job = cast(Any, SimpleNamespace(table=None))
    plan = Plan(job=job, target="shop.t", headline="unload", keyspace="shop", text="would unload")
    options = parse_options("unload", "-t", "shop.t", "-o", "-", "--dry-run")
    with pytest.raises(UsageError, match="needs replicas in the local data centre dc2"):
        plan_and_run(options, services(session("LOCAL_QUORUM", ROWS, *FAR)), lambda _: plan)
    assert capsys.readouterr().out == ""
    assert (
        plan_and_run(options, services(session("LOCAL_QUORUM", ROWS, *NEAR)), lambda _: plan) == 0
    )
    assert capsys.readouterr().out == "would unload\n"


def exec_of(statement: str, *given: str, dcs: tuple[str, ...], answers: tuple[str, ...]) -> int:
    """An `exec` over a marker that is a part of the partition key of `shop.t`."""
    found = cast(Any, session("LOCAL_QUORUM", ROWS, *dcs))
    found.cluster.metadata.cluster_name = "test"
    found.prepare = lambda text: SimpleNamespace(
        column_metadata=[ColumnMetadata("shop", "t", "id", Int32Type)],
        result_metadata=[("shop", "t", name, Int32Type) for name in answers],
    )
    options = parse_options("exec", statement, "--range", "id:1..9", *given)
    return run_exec(options, services(found))


def test_a_statement_with_a_part_of_the_key_is_checked_by_its_keyspace() -> None:
    """The replicas of its rows are unknown, but all are in the keyspace's data centres."""
    with pytest.raises(UsageError, match="needs replicas in the local data centre dc2"):
        exec_of("DELETE FROM shop.t WHERE id = ? AND b = 1", dcs=FAR, answers=())


def test_an_exec_that_writes_to_standard_output_cannot_be_detached() -> None:
    detach = ("--on-interrupt", "detach")
    with pytest.raises(UsageError, match="--on-interrupt detach: this command writes standard"):
        exec_of("SELECT v FROM shop.t WHERE id = ?", *detach, dcs=NEAR, answers=("v", "w"))
