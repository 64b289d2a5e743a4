"""The result of a count or a query from the partial results of its units, and its types."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pyarrow as pa

from ringhaul.ledger.reading import Reader
from ringhaul.query.aggregate import Aggregation
from ringhaul.scan.fold import fold_job, result_types
from ringhaul.scan.job import ReadJob
from ringhaul.scan.spill import spill
from tests.unit.query.tables import ORDERS, batch_of


class _Extras:
    """A ledger with these partial results."""

    def __init__(self, *extras: bytes) -> None:
        self._extras = extras

    def extras(self, job_id: str) -> Iterator[tuple[int, bytes]]:
        return iter(enumerate(self._extras))


def job(kind: str, sql: str, **more: Any) -> ReadJob:
    return ReadJob(kind=kind, cluster_name="c", table=ORDERS, sql=sql, **more)


def folded(of: ReadJob, *batches: pa.RecordBatch) -> pa.Table:
    extras = []
    for batch in batches:
        partial = Aggregation(of.select, exact_keys=of.exact_keys).partial()
        partial.update(batch)
        extras.append(spill(partial.pack(), 1 << 20, "", "n"))
    return fold_job(cast(Reader, _Extras(*extras)), "j", of)


def test_partition_keys_of_equal_value_are_listed_separately() -> None:
    top = job("count", "SELECT price, huge, count(*) AS n FROM shop.orders GROUP BY 1, 2")
    found = folded(
        top,
        batch_of(ORDERS, price=["1.5", "1.50", "1.5"], huge=["7", "7", "7"]),
        batch_of(ORDERS, price=["1.50"], huge=["7"]),
    )
    assert sorted(found.to_pydict()["price"]) == ["1.5", "1.50"], "as stored"
    assert found.to_pydict()["n"] == [2, 2]
    assert [kind.name for kind in result_types(top)] == ["text", "varint", "bigint"]
    assert found.column("huge").type == pa.int64()


def test_groups_of_a_query_are_by_value() -> None:
    query = job("query", "SELECT price, count(*) AS n FROM shop.orders GROUP BY 1")
    found = folded(query, batch_of(ORDERS, price=["1.5", "1.50"]))
    assert found.to_pydict()["n"] == [2]
    assert [kind.name for kind in result_types(query)] == ["decimal", "bigint"]


def test_the_types_of_a_count_by_range_and_host_are_those_of_its_columns() -> None:
    counts = pa.array([3, 4], pa.int64()).to_numpy().tobytes()
    for by_host in (False, True):
        of = job("count", "", ring=((-5, "a"), (9, "b")), by_host=by_host)
        found = fold_job(cast(Reader, _Extras(counts)), "j", of)
        assert found.schema.types == [kind.arrow() for kind in result_types(of)]
