"""A table with a column of every scalar type, and rows of it, for tests of queries."""

from typing import Any

import pyarrow as pa

from ringhaul.cluster.schema import ColumnSchema, TableSchema
from ringhaul.query.aggregate import Aggregation
from ringhaul.query.select import parse_select
from ringhaul.query.where import parse_where


def table_of(columns: dict[str, str], partition_key: tuple[str, ...] = ("id",)) -> TableSchema:
    """shop.orders with `columns`: name -> CQL type."""
    return TableSchema(
        keyspace="shop",
        table="orders",
        columns=tuple(ColumnSchema(name=n, cql_type=t) for n, t in columns.items()),
        partition_key=partition_key,
        clustering_key=("at",) if "at" in columns else (),
        user_types=(("place", (("street", "text"), ("number", "int"))),),
    )


ORDERS = table_of(
    {
        "id": "int",
        "at": "timestamp",
        "region": "text",
        "Case": "text",
        "total": "bigint",
        "small": "tinyint",
        "price": "decimal",
        "huge": "varint",
        "weight": "double",
        "ratio": "float",
        "open": "boolean",
        "day": "date",
        "clock": "time",
        "took": "duration",
        "uid": "uuid",
        "tid": "timeuuid",
        "address": "inet",
        "data": "blob",
        "code": "ascii",
        "tags": "list<text>",
        "home": "frozen<place>",
    }
)


def batch_of(table: TableSchema, **columns: list[Any]) -> pa.RecordBatch:
    """A batch of some columns of `table`, in their Arrow types."""
    types = table.types
    return pa.RecordBatch.from_arrays(
        [pa.array(values, types[name].arrow()) for name, values in columns.items()], list(columns)
    )


def kept(condition: str, column: str = "id", **columns: list[Any]) -> list[Any]:
    """The values of `column` in the rows of ORDERS that meet `condition`."""
    count = len(next(iter(columns.values())))
    columns.setdefault("id", list(range(count)))
    found: list[Any] = (
        parse_where(condition, ORDERS)
        .filter(batch_of(ORDERS, **columns))
        .column(column)
        .to_pylist()
    )
    return found


def answer(sql: str, *batches: pa.RecordBatch, table: TableSchema = ORDERS) -> list[dict[str, Any]]:
    """The rows of an aggregation over `batches`, with one partial result per batch."""
    aggregation = Aggregation(parse_select(sql, lambda *_: table))
    whole = aggregation.partial()
    for batch in batches:
        part = aggregation.partial()
        part.update(batch)
        whole.merge(aggregation.unpack(part.pack()))
    rows: list[dict[str, Any]] = whole.finish().to_pylist()
    return rows
