"""One unit of a verification on a real node: each record is the same, or reported."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from cassandra.cluster import Session

from ringhaul.cluster.schema import TableSchema
from ringhaul.errors import ClusterError, TooManyRejects
from ringhaul.load.write import RequestBounds
from ringhaul.load.write.pipeline import BLOCKS_KEPT_MAX
from ringhaul.records.account import UnitHooks, UnitOutcome
from ringhaul.records.rejects import unpack_rejects
from ringhaul.records.unit import LoadUnit
from ringhaul.statements import verify as verify_module
from ringhaul.statements.requests import QUEUED_ROWS_MAX
from ringhaul.statements.verify import VerifyPlan, run_verify_unit
from tests.integration.load.conftest import connected_target, make_table
from tests.integration.load.conftest import worker_session as worker_session
from tests.loads import load_job, load_source, rejects_of
from tests.throttles import Limited

ROWS = 5000
FIELDS = ("id", "c", "n", "v", "tags")


def verify(
    session: Session,
    table: TableSchema,
    path: Path,
    fields: Sequence[str] = FIELDS,
    hooks: UnitHooks | None = None,
    bounds: RequestBounds | None = None,
    **options: Any,
) -> UnitOutcome:
    """Compare all of a plain file without a header as one unit."""
    size_bytes = path.stat().st_size
    source = load_source(fields, path=str(path), size_bytes=size_bytes)
    job = load_job(
        table, source, **({"consistency": "ONE", "nulls": "tombstone", "kind": "verify"} | options)
    )
    prepared = session.prepare(VerifyPlan.of(table, source).statement)
    with connected_target(session, prepared, table.keyspace) as target:
        return run_verify_unit(
            LoadUnit(0, 0, size_bytes, 0, 1, -1),
            job,
            target,
            bounds or RequestBounds(request_timeout_s=30),
            hooks or UnitHooks(tick=lambda rows, rejected, input_bytes: None),
        )


def record(i: int) -> str:
    return f'{i // 7},{i},{i * i if i % 5 else ""},v{i},"[""b"",""a{i}""]"'


@pytest.fixture
def orders(worker_session: Session, keyspace: str, tmp_path: Path) -> Iterator[TableSchema]:
    """A table that the driver filled, and `in.csv` with the same rows."""
    table = make_table(
        worker_session,
        keyspace,
        "id int, c int, n bigint, v text, tags set<text>, PRIMARY KEY (id, c)",
    )
    insert = worker_session.prepare(
        f"INSERT INTO {keyspace}.t (id, c, n, v, tags) VALUES (?, ?, ?, ?, ?)"
    )
    for i in range(0, ROWS, 500):
        futures = [
            worker_session.execute_async(
                insert, (j // 7, j, j * j if j % 5 else None, f"v{j}", {"b", f"a{j}"})
            )
            for j in range(i, i + 500)
        ]
        for future in futures:
            future.result()
    (tmp_path / "in.csv").write_text("".join(f"{record(i)}\n" for i in range(ROWS)))
    yield table


def test_equal_rows_are_the_same(
    worker_session: Session, orders: TableSchema, tmp_path: Path
) -> None:
    ticks: list[tuple[int, int, int]] = []
    outcome = verify(
        worker_session,
        orders,
        tmp_path / "in.csv",
        hooks=UnitHooks(tick=lambda *counts: ticks.append(counts)),
        block_bytes=4096,
    )
    assert (outcome.records, outcome.written, outcome.rejected) == (ROWS, ROWS, 0)
    assert outcome.input_bytes == (tmp_path / "in.csv").stat().st_size
    assert sum(outcome.latencies.values()) == ROWS
    # And its reported progress only grew
    assert ticks == sorted(ticks)
    assert ticks[-1][0] > ROWS // 2


def test_each_different_row_is_reported_with_its_stored_value(
    worker_session: Session, orders: TableSchema, tmp_path: Path
) -> None:
    # Given a table in which some rows were changed
    name = f"{orders.keyspace}.t"
    for change in (
        f"UPDATE {name} SET n = 1 WHERE id = 0 AND c = 1",  # unchanged
        f"UPDATE {name} SET v = 'other', n = 5 WHERE id = 0 AND c = 5",
        f"DELETE n FROM {name} WHERE id = 1 AND c = 8",
        f"DELETE FROM {name} WHERE id = 2 AND c = 15",
        f"DELETE FROM {name} WHERE id = 3",
        f"UPDATE {name} SET tags = tags + {{'c'}} WHERE id = 100 AND c = 700",
        f"DELETE tags FROM {name} WHERE id = 100 AND c = 701",
    ):
        worker_session.execute(change)
    # When the file is compared
    outcome = verify(worker_session, orders, tmp_path / "in.csv", block_bytes=4096)
    # Then exactly these are reported, with the stored values
    assert [(r.line - 1, r.stage, r.column, r.reason) for r in rejects_of(outcome)] == [
        (5, "differs", "n", 'the table has "5", the source no value; so does v'),
        (8, "differs", "n", 'the table has no value, the source "64"'),
        (15, "missing", None, "no row has this key"),
        *((i, "missing", None, "no row has this key") for i in range(21, 28)),
        (
            *(700, "differs", "tags"),
            'the table has "["a700","b","c"]", the source "["b","a700"]"',
        ),
        (701, "differs", "tags", 'the table has no value, the source "["b","a701"]"'),
    ]
    assert [r.data for r in rejects_of(outcome)] == [
        record(r.line - 1).encode() for r in rejects_of(outcome)
    ]
    assert (outcome.records, outcome.written, outcome.rejected) == (ROWS, ROWS - 12, 12)


def test_an_empty_field_may_skip_its_column(
    worker_session: Session, orders: TableSchema, tmp_path: Path
) -> None:
    worker_session.execute(f"UPDATE {orders.keyspace}.t SET n = 3 WHERE id = 0 AND c = 5")
    path = tmp_path / "in.csv"
    assert verify(worker_session, orders, path).rejected == 1
    assert verify(worker_session, orders, path, nulls="unset").rejected == 0


def test_records_that_cannot_be_read_are_reported_too(
    worker_session: Session, orders: TableSchema, tmp_path: Path
) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(f'{record(1)}\nx,2,3,v,"[]"\n,2,3,v,"[]"\n{record(2)}\n')
    outcome = verify(worker_session, orders, path)
    assert [(r.line, r.stage, r.column) for r in rejects_of(outcome)] == [
        (2, "cast", "id"),
        (3, "key", "id"),
    ]
    assert (outcome.records, outcome.written) == (4, 2)


def test_a_file_with_only_keys_checks_that_the_rows_exist(
    worker_session: Session, orders: TableSchema, tmp_path: Path
) -> None:
    path = tmp_path / "keys.csv"
    path.write_text("0,1\n0,2\n0,99\n")
    outcome = verify(worker_session, orders, path, ["id", "c"])
    assert [(r.line, r.stage) for r in rejects_of(outcome)] == [(3, "missing")]
    assert outcome.written == 2


def test_too_many_differences_end_the_unit(
    worker_session: Session, orders: TableSchema, tmp_path: Path
) -> None:
    # Given more records than are requested at once, none of which is in the table
    path = tmp_path / "none.csv"
    records_count = 3 * QUEUED_ROWS_MAX
    path.write_text("".join(f"{-i},0\n" for i in range(1, records_count + 1)))
    hooks = UnitHooks(tick=lambda rows, rejected, input_bytes: None, rejects_max=100)
    with pytest.raises(TooManyRejects) as raised:
        verify(worker_session, orders, path, ["id", "c"], hooks=hooks, block_bytes=4096)
    assert raised.value.rows == 0
    assert 100 < raised.value.rejected < records_count


def test_a_rate_limit_counts_rows(
    worker_session: Session, orders: TableSchema, tmp_path: Path
) -> None:
    limited = Limited(rows_at_once=64)
    path = tmp_path / "some.csv"
    path.write_text("".join(f"{record(i)}\n" for i in range(1000)))
    hooks = UnitHooks(tick=lambda rows, rejected, input_bytes: None, throttle=limited)
    outcome = verify(worker_session, orders, path, hooks=hooks)
    assert outcome.written == 1000
    assert limited.rows == 1000
    assert max(rows for rows, _ in limited.paid) <= 64


def test_a_dropped_table_is_reported(
    worker_session: Session, orders: TableSchema, tmp_path: Path
) -> None:
    path = tmp_path / "in.csv"
    source = load_source(FIELDS, path=str(path), size_bytes=path.stat().st_size)
    statement = VerifyPlan.of(orders, source).statement
    assert statement == (
        f'SELECT "n", "v", "tags" FROM "{orders.keyspace}"."t" WHERE "id" = ? AND "c" = ?'
    )
    prepared = worker_session.prepare(statement)
    worker_session.execute(f"DROP TABLE {orders.keyspace}.t", timeout=60)
    job = load_job(orders, source, kind="verify", consistency="ONE")
    with (
        connected_target(worker_session, prepared, orders.keyspace) as target,
        pytest.raises(ClusterError, match="the cluster does not run the statement: "),
    ):
        run_verify_unit(
            LoadUnit(0, 0, path.stat().st_size, 0, 1, -1),
            job,
            target,
            RequestBounds(request_timeout_s=10, retries_max=1),
            UnitHooks(tick=lambda rows, rejected, input_bytes: None),
        )


def test_blocks_are_released_once_their_rows_are_compared(
    worker_session: Session,
    orders: TableSchema,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Given records so long that a thousand of them are many blocks
    path = tmp_path / "long.csv"
    path.write_text("".join(f'{i // 7},{i},,{"x" * 2000},"[]"\n' for i in range(1000)))
    kept: list[int] = []
    take = verify_module._Verification._take

    def watched(self: Any, answers: Any) -> None:
        kept.append(len(self._reading))
        take(self, answers)

    monkeypatch.setattr(verify_module._Verification, "_take", watched)
    outcome = verify(worker_session, orders, path, block_bytes=8192)
    # Then all of them are reported, with a few blocks in memory at a time
    assert (outcome.records, outcome.rejected) == (1000, 1000)
    assert max(kept) <= BLOCKS_KEPT_MAX + 1
    assert [r.line for r in unpack_rejects(outcome.rejects_blob)] == list(range(1, 1001))
