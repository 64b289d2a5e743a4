"""Rows whose columns have their own write times and TTLs: each value is written once, with both."""

from __future__ import annotations

import struct

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ringhaul.cql.cells import NULL_LENGTH, UNSET_LENGTH, Cells
from ringhaul.records.column_times import TABLE_TTL, grouped

OPTIONAL = st.none() | st.integers(0, 3)
ROWS = st.integers(1, 4).flatmap(
    lambda columns: st.lists(
        st.lists(st.tuples(OPTIONAL, OPTIONAL, OPTIONAL), min_size=columns, max_size=columns),
        min_size=1,
        max_size=5,
    )
)


def cells(values: list[int | None], width: str, missing: int = NULL_LENGTH) -> Cells:
    given = np.array([value is not None for value in values])
    numbers = np.array([value for value in values if value is not None], width)
    if given.all():
        return Cells.fixed(numbers)
    return Cells.fixed(numbers).spread(given, missing)


def values_of(column: Cells) -> list[int | None]:
    texts = column.values.to_pylist()
    return [
        None if length < 0 else struct.unpack(">i", text)[0]
        for length, text in zip(column.lengths.tolist(), texts, strict=True)
    ]


@settings(max_examples=200, deadline=None)
@given(ROWS, st.booleans(), st.booleans())
def test_each_value_is_in_one_group_with_its_time_and_ttl(
    rows: list[list[tuple[int | None, int | None, int | None]]], timed: bool, tombstones: bool
) -> None:
    # Given rows of (value, write time, TTL) by column, and a key
    columns_count = len(rows[0])
    missing = NULL_LENGTH if tombstones else UNSET_LENGTH
    key = cells(list(range(len(rows))), ">i4")
    columns = [cells([row[i][0] for row in rows], ">i4", missing) for i in range(columns_count)]
    times = {i + 1: cells([row[i][1] for row in rows], ">i8") for i in range(columns_count)}
    ttls = {i + 1: cells([row[i][2] for row in rows], ">i4") for i in range(columns_count)}
    # When they are grouped
    row_us = np.arange(len(rows)) + 100
    found: dict[tuple[int, int], tuple[int, int]] = {}
    seen, deleted = set(), set()
    for group in grouped(
        [key, *columns],
        key={0},
        times_us=row_us,
        ttls_s=np.full(len(rows), TABLE_TTL, np.int64),
        own_times=times if timed else {},
        own_ttls=ttls,
    ):
        numbers = np.flatnonzero(group.rows).tolist()
        assert values_of(group.columns[0]) == numbers  # the key is in every statement
        assert len(group.times_us) == len(group.ttls_s) == len(numbers)
        seen |= set(numbers)
        for i, column in enumerate(group.columns[1:]):
            for at, value in enumerate(values_of(column)):
                row = numbers[at]
                if value is not None:
                    assert (row, i) not in found
                    found[row, i] = (int(group.times_us[at]), int(group.ttls_s[at]))
                    assert value == rows[row][i][0]
                elif column.lengths[at] == NULL_LENGTH:
                    deleted.add((row, i))
    # Then each value has its time (or its row's) and its TTL (or lives for ever)
    expected = {
        (row, i): (
            int(row_us[row]) if time is None or not timed else time,
            0 if ttl is None else ttl,
        )
        for row, values in enumerate(rows)
        for i, (value, time, ttl) in enumerate(values)
        if value is not None
    }
    assert found == expected
    # And each row is written, even without a value; nulls are deleted where that is wanted
    assert seen == set(range(len(rows)))
    nulls = {(r, i) for r, values in enumerate(rows) for i, v in enumerate(values) if v[0] is None}
    assert deleted == (nulls if tombstones else set())


def test_a_row_whose_columns_agree_is_one_statement() -> None:
    key, a, b = (cells([1, 2], ">i4") for _ in range(3))
    same = cells([7, 7], ">i8")
    groups = list(
        grouped(
            [key, a, b],
            key={0},
            times_us=np.array([1, 2]),
            ttls_s=np.array([TABLE_TTL, TABLE_TTL]),
            own_times={1: same, 2: same},
            own_ttls={},
        )
    )
    assert len(groups) == 1
    assert groups[0].times_us.tolist() == [7, 7]
    assert groups[0].ttls_s.tolist() == [TABLE_TTL, TABLE_TTL]
