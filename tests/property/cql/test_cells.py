"""Cells, rows and routing keys against `struct` and the driver."""

import struct
from typing import Any

import numpy as np
import pyarrow as pa
from cassandra.query import SimpleStatement
from hypothesis import given
from hypothesis import strategies as st

from ringhaul.cql.cells import (
    Cells,
    bigint_cells,
    join_rows,
    routing_keys,
)
from tests.property.cql.columns import wire

Column = list[bytes | None]


@st.composite
def tables(draw: st.DrawFn, *, nulls: bool = True) -> list[tuple[Cells, Column]]:
    """A few columns of one length: their cells, and the values they were made from."""
    rows_count = draw(st.integers(0, 6))
    table = []
    for _ in range(draw(st.integers(1, 5))):
        width = draw(st.sampled_from([None, 1, 4, 16]))
        size = {"min_size": width, "max_size": width} if width else {"max_size": 5}
        values = draw(st.lists(st.binary(**size), min_size=rows_count, max_size=rows_count))
        flags = st.booleans() if nulls else st.just(True)
        valid = np.array(draw(st.lists(flags, min_size=rows_count, max_size=rows_count)), bool)
        null_length = draw(st.sampled_from([-1, -2]))
        table.append(_column(values, valid, null_length, width))
    return table


def _column(
    values: list[bytes], valid: Any, null_length: int, width: int | None
) -> tuple[Cells, Column]:
    mask = None if valid.all() else valid
    if width:
        raw = np.frombuffer(b"".join(values), np.uint8).reshape(-1, width)
        cells = Cells.fixed(raw, mask, null_length)
    else:
        cells = Cells.variable(pa.array(values, pa.binary()), mask, null_length)
    assert all(n in (null_length,) or n >= 0 for n in cells.lengths.tolist())
    return cells, [v if ok else None for v, ok in zip(values, valid.tolist(), strict=True)]


def packed(cells: Cells, row: int, value: bytes | None) -> bytes:
    if value is None:
        return struct.pack(">i", int(cells.lengths[row]))
    return struct.pack(">i", len(value)) + value


@given(tables())
def test_cells_hold_the_values(table: list[tuple[Cells, Column]]) -> None:
    for cells, column in table:
        assert len(cells) == len(column)
        assert cells.lengths.dtype == np.dtype(">i4")
        assert wire(cells) == column


@given(tables())
def test_joined_rows_are_length_and_bytes_of_each_value(table: list[tuple[Cells, Column]]) -> None:
    rows = join_rows([cells for cells, _ in table])

    assert rows.to_pylist() == [
        b"".join(packed(cells, row, column[row]) for cells, column in table)
        for row in range(len(table[0][1]))
    ]


@given(tables(), st.data())
def test_filtering_keeps_the_rows_of_the_mask(
    table: list[tuple[Cells, Column]], data: st.DataObject
) -> None:
    rows_count = len(table[0][1])
    mask = data.draw(st.lists(st.booleans(), min_size=rows_count, max_size=rows_count))

    kept = [cells.filter(np.array(mask, bool)) for cells, _ in table]

    for (_, column), cells in zip(table, kept, strict=True):
        assert wire(cells) == [v for v, keep in zip(column, mask, strict=True) if keep]
    whole = join_rows([cells for cells, _ in table]).to_pylist()
    assert join_rows(kept).to_pylist() == [r for r, keep in zip(whole, mask, strict=True) if keep]


@given(tables(nulls=False))
def test_routing_keys_are_the_drivers(table: list[tuple[Cells, Column]]) -> None:
    keys = routing_keys([cells for cells, _ in table])

    expected = []
    for row in range(len(table[0][1])):
        parts = [column[row] for _, column in table]
        statement = SimpleStatement("")
        statement.routing_key = parts  # its setter packs the parts of a composite key
        expected.append(statement.routing_key)
    assert keys.to_pylist() == expected


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_bigint_cells(values: list[int]) -> None:
    assert wire(bigint_cells(np.array(values, np.int64))) == [struct.pack(">q", v) for v in values]
