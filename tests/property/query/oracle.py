"""The same rows for us and for DuckDB."""

import datetime
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
from hypothesis import strategies as st

from tests.unit.query.tables import ORDERS, batch_of

#: Our type -> DuckDB's type. Decimals have at most three digits after the point.
COLUMNS = {
    "id": "BIGINT",
    "total": "BIGINT",
    "small": "TINYINT",
    "price": "DECIMAL(18, 3)",
    "weight": "DOUBLE",
    "region": "VARCHAR",
    "open": "BOOLEAN",
    "at": "TIMESTAMP",
}

integers = st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1)
prices = st.decimals(-(10**14), 10**14, places=3) | st.integers(-3, 3).map(Decimal)
weights = st.integers(-3, 3).map(float) | st.floats(-1e100, 1e100) | st.just(float("nan"))
regions = st.sampled_from(["", "a", "b", "ab", "a%b", "é", "😀", "Z"]) | st.text(
    st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=3
)
moments = st.integers(-(10**12), 10**12) | st.integers(-2, 2)


def price_text(value: Decimal) -> str:
    """The text as in Cassandra, where trailing zeros are part of the value."""
    return str(value)


def row() -> st.SearchStrategy[tuple[Any, ...]]:
    def maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        return st.none() | values

    return st.tuples(
        st.integers(0, 5),
        maybe(integers),
        maybe(st.integers(-128, 127)),
        maybe(prices),
        maybe(weights),
        maybe(regions),
        maybe(st.booleans()),
        maybe(moments),
    )


rows = st.lists(row(), max_size=30)


def our_batch(table: list[tuple[Any, ...]]) -> pa.RecordBatch:
    columns: dict[str, list[Any]] = {
        name: [values[place] for values in table] for place, name in enumerate(COLUMNS)
    }
    columns["price"] = [None if p is None else price_text(p) for p in columns["price"]]
    return batch_of(ORDERS, **columns)


def duck(table: list[tuple[Any, ...]]) -> duckdb.DuckDBPyConnection:
    """A connection with the rows as `shop.orders`, numbered by `n`."""
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("CREATE SCHEMA shop")
    declared = ", ".join(f'"{name}" {kind}' for name, kind in COLUMNS.items())
    connection.execute(f"CREATE TABLE shop.orders (n BIGINT, {declared})")
    for number, values in enumerate(table):
        at = values[-1]
        moment = None if at is None else moment_of(at)
        connection.execute(
            f"INSERT INTO shop.orders VALUES ({', '.join('?' * (len(COLUMNS) + 1))})",
            [number, *values[:-1], moment],
        )
    return connection


def moment_of(milliseconds: int) -> datetime.datetime:
    return datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=milliseconds)
