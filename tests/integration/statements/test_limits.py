"""Units of lookup and exec stay within their job's limits: rows of values, bytes, requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from cassandra.cluster import Session

from ringhaul.dataplane.pool import ConnectionPool
from ringhaul.dataplane.window import Window
from ringhaul.statements.exec import Statement
from ringhaul.statements.job import SpanUnit, StatementJob
from ringhaul.statements.lookup import LookupPlan
from ringhaul.statements.run import (
    StatementHooks,
    StatementOutcome,
    StatementTarget,
    run_statement_unit,
)
from tests.integration.statements.client import Client, reading_client, table_of
from tests.loads import statement_values, table_schema
from tests.throttles import Limited

ROWS = 3000


@pytest.fixture
def client(cassandra_session: Session) -> Iterator[Client]:
    with reading_client(cassandra_session) as only:
        yield only


@dataclass
class StatementRun:
    """A lookup or an exec over the numbers 0..ROWS-1."""

    job: StatementJob
    statement: Statement

    def run(self, session: Session, plane: ConnectionPool, throttle: Limited) -> StatementOutcome:
        target = StatementTarget(
            session=session,
            plane=plane,
            statement=self.statement,
            retries_max=5,
            request_timeout_s=20.0,
        )
        hooks = StatementHooks(tick=lambda rows, rejected, size: None, throttle=throttle)
        return run_statement_unit(SpanUnit(0, ROWS).pack(), 0, "ex-1", self.job, target, hooks)


@pytest.fixture(params=["lookup", "exec"])
def statement_run(request: pytest.FixtureRequest, client: Client, keyspace: str) -> StatementRun:
    client.session.execute(f"CREATE TABLE {keyspace}.t (id int PRIMARY KEY, v text)")
    insert = f"INSERT INTO {keyspace}.t (id, v) VALUES (?, 'some text')"
    facts: dict[str, Any] = {
        "kind": request.param,
        "cluster_name": "test",
        "values": statement_values(table_schema({"id": "int"}, [])),
        "spans": (f"id:0..{ROWS - 1}",),
        "consistency": "ONE",
    }
    if request.param == "exec":
        statement = Statement.prepare(client.session, insert)
        return StatementRun(StatementJob(statement=insert, **facts), statement)
    client.exec(insert, [str(i) for i in range(ROWS)])
    table = table_of(client.session, keyspace, "t")
    plan = LookupPlan.of(table)
    statement = Statement.prepare(client.session, plan.statement)
    return StatementRun(
        StatementJob(table=table, key=plan.key, columns=plan.columns, **facts), statement
    )


def test_every_row_and_every_byte_is_paid_for(client: Client, statement_run: StatementRun) -> None:
    throttle = Limited(rows_at_once=200)
    outcome = statement_run.run(client.session, client.plane, throttle)
    assert (outcome.records, outcome.rejected, outcome.missing) == (ROWS, 0, 0)
    assert throttle.rows == pytest.approx(ROWS, rel=0.02)
    assert throttle.bytes == outcome.stats.bytes
    assert outcome.stats.request_bytes > 0 and outcome.stats.answer_bytes > 0
    assert max(rows for rows, _ in throttle.paid) <= 200


@pytest.mark.parametrize("requests", [1, 5])
def test_requests_in_flight_stay_within_the_unit_s_limit(
    client: Client, statement_run: StatementRun, requests: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    sent: Callable[..., Any] = Window.sent

    def spied(window: Window[Any], *given: Any) -> Any:
        streams = sent(window, *given)
        seen.append(window.requests)  # the cluster has one node
        return streams

    monkeypatch.setattr(Window, "sent", spied)
    throttle = Limited(requests_max=requests, paced=False)
    outcome = statement_run.run(client.session, client.plane, throttle)
    assert (outcome.records, outcome.missing) == (ROWS, 0)
    assert max(seen) == requests
