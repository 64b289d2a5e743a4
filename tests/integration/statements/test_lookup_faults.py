"""Lists of keys that a server refuses: each row is returned once, each key reported once.

The server is scripted: it refuses keys and pages on demand.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from cassandra.cqltypes import ListType, LongType
from cassandra.protocol import ColumnMetadata
from cassandra.query import PreparedStatement

from ringhaul.cluster.prepared import Marked
from ringhaul.cql.types import parse_type
from ringhaul.records.rejects import unpack_rejects
from ringhaul.records.unit import LoadUnit
from ringhaul.statements.exec import Statement
from ringhaul.statements.idempotence import effect_of
from ringhaul.statements.job import StatementJob
from ringhaul.statements.lookup import LookupPlan
from ringhaul.statements.run import StatementHooks, StatementTarget, run_statement_unit
from tests.integration.load.pipeline_client import KEYSPACE, connected_client
from tests.integration.statements.client import Client
from tests.integration.statements.test_request_faults import INVALID, READ_FAILURE, answer_rows
from tests.loads import load_source, statement_values, table_schema
from tests.scripted_server import Answer, Execute, ScriptedServer, error, query_id

TABLE = table_schema({"id": "bigint", "v": "bigint"}, ["id"])
PLAN = LookupPlan.of(TABLE, columns=["v"])
MARKER = ColumnMetadata(KEYSPACE, "orders", "id", ListType.apply_parameters([LongType]))
STATEMENT = Statement(
    PreparedStatement([MARKER], query_id(PLAN.statement), None, PLAN.statement, None, 4, [], None),
    effect_of(PLAN.statement),
    Marked(("id",), (parse_type("list<bigint>"),)),
    Marked(PLAN.fetched, (parse_type("bigint"),) * 2),
    KEYSPACE,
)


@dataclass
class Table:
    """The server's table: the number of rows of each key, and the keys that it cannot read."""

    rows: dict[int, int]
    page_rows: int = 100
    bad: dict[int, int] = field(default_factory=dict)  #: key -> the error's code
    bad_pages: bool = False  #: no list's second page can be read
    requests: Counter[tuple[int, ...]] = field(default_factory=Counter)
    _pages: Counter[tuple[int, ...]] = field(default_factory=Counter)

    def answer(self, request: Execute) -> Answer:
        """Return the next page for these keys, in the order of the keys, as Cassandra does."""
        (count,) = struct.unpack_from(">i", request.value)
        keys = tuple(struct.unpack_from(">q", request.value, 8 + 12 * i)[0] for i in range(count))
        self.requests[keys] += 1
        first = self._pages[keys] * self.page_rows
        for key in keys:
            if key in self.bad:
                return error(request, self.bad[key], f"no {key}")
        if first and self.bad_pages and len(keys) > 1:
            return error(request, INVALID, "no such page")
        rows = [(key, key * 1000 + i) for key in sorted(keys) for i in range(self.rows.get(key, 0))]
        self._pages[keys] += 1
        more = first + self.page_rows < len(rows)
        page = rows[first : first + self.page_rows]
        return answer_rows(request, *page, state=b"more" if more else None)


@pytest.fixture
def client(server: ScriptedServer) -> Iterator[Client]:
    server.known.add(STATEMENT.prepared.query_id)
    with connected_client([server]) as connected:
        yield Client(connected.session, connected.plane)


def look_up(client: Client, keys: list[int], *, ordered: bool) -> list[tuple[int, int]]:
    texts = [str(key) for key in keys]
    found = client.lookup(TABLE, texts, columns=["v"], ordered=ordered, statement=STATEMENT)
    rows = [(number, row["v"]) for number, row in found]
    assert not ordered or [number for number, _ in rows] == sorted(number for number, _ in rows)
    return rows


@pytest.mark.parametrize("code", [INVALID, READ_FAILURE])
def test_one_bad_key_of_a_list_is_the_only_reject(
    server: ScriptedServer, client: Client, code: int
) -> None:
    # Given a list of keys, one of which occurs twice and cannot be read
    table = Table({key: 1 for key in range(20)}, bad={7: code})
    server.script = table.answer
    keys = [*range(20), 7, 30]
    # When they are looked up
    found = look_up(client, keys, ordered=True)
    # Then the others have their rows, and only that key is a reject, not its list
    assert found == [(key, key * 1000) for key in range(20) if key != 7]
    assert set(client.rejected) == {7, 20} and client.missing == [21]
    assert client.stats.rejected == 1


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("page_rows", [1, 4, 7, 1000])
@pytest.mark.parametrize("sizes", [[3] * 10, [0, 9, 0, 1, 2, 30, 0, 0, 4, 0], [0] * 9 + [12]])
def test_a_list_that_fails_after_its_first_page_returns_no_row_twice(
    server: ScriptedServer, client: Client, sizes: list[int], page_rows: int, ordered: bool
) -> None:
    # Given lists of keys with more rows than a page, whose second page cannot be read
    table = Table(dict(enumerate(sizes)), page_rows, bad_pages=True)
    server.script = table.answer
    keys = [3, 1, 4, 1, 5, 9, 2, 6, 8, 7, 0, 5]
    # When they are looked up
    found = look_up(client, keys, ordered=ordered)
    # Then each row comes once for each time that its key was given, and every key is reported
    expected = [(n, key * 1000 + i) for n, key in enumerate(keys) for i in range(sizes[key])]
    assert sorted(found) == expected
    assert sorted(client.missing) == [n for n, key in enumerate(keys) if not sizes[key]]
    assert not client.rejected and client.stats.rejected == 0
    assert client.stats.rows == len(expected)
    # And no key is counted twice: the input is released once all keys are answered
    assert client.stats.answered <= len(sizes)


def test_every_reported_key_is_counted(
    server: ScriptedServer, client: Client, tmp_path: Path
) -> None:
    # Given keys that are null, or that the server refuses, some of them repeated
    server.script = Table({1: 1, 2: 1}, bad={7: INVALID}).answer
    text = "id,n\n1,a\n,b\n7,c\n2,d\n7,e\n,f\n3,g\n"
    path = tmp_path / "keys.csv"
    path.write_text(text)
    stand_in = table_schema({"id": "bigint"}, [])
    source = load_source(["id", "n"], path=str(path), size_bytes=len(text), mapping=[("id", "id")])
    job = StatementJob(
        kind="lookup",
        cluster_name="test",
        values=statement_values(stand_in, source),
        table=TABLE,
        key=PLAN.key,
        columns=PLAN.columns,
        consistency="ONE",
    )
    target = StatementTarget(
        session=client.session,
        plane=client.plane,
        statement=STATEMENT,
        retries_max=5,
        request_timeout_s=10.0,
    )
    rejected_counts: list[int] = []
    hooks = StatementHooks(tick=lambda rows, rejected, size: rejected_counts.append(rejected))
    # When they are looked up
    unit = LoadUnit(0, 5, len(text) - 5, 0, 2, 7)
    outcome = run_statement_unit(unit.pack(), 0, "lk-1", job, target, hooks)
    # Then the counts equal those of the log
    rejects = list(unpack_rejects(outcome.log.blob()))
    assert Counter(reject.stage for reject in rejects) == {"read": 4, "missing": 1}
    assert (outcome.records, outcome.rejected, outcome.missing) == (7, 4, 1)
    assert max(rejected_counts) <= 4
