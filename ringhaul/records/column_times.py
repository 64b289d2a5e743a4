"""Rows whose columns have their own write times and TTLs, as several statements. Pure.

An INSERT writes all its columns at one time, for one time to live. So a row becomes one statement
for each different pair of both among its columns, with the other columns unset.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ringhaul.cql.cells import NULL_LENGTH, UNSET_LENGTH, Cells
from ringhaul.records.row_fields import cell_integers

Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
#: Stands for the table's default TTL.
TABLE_TTL = -1


class Group(NamedTuple):
    """Some rows, with the columns that are written together."""

    rows: Mask  #: which of all rows
    columns: list[Cells]  #: columns of these rows
    times_us: Integers
    ttls_s: Integers  #: `TABLE_TTL` where the table decides


def grouped(
    columns: Sequence[Cells],
    *,
    key: Collection[int],
    times_us: Integers,
    ttls_s: Integers,
    own_times: Mapping[int, Cells],
    own_ttls: Mapping[int, Cells],
) -> Iterator[Group]:
    """Yield the rows as groups of columns, each value in one group.

    `key`: places of the columns in every statement. `times_us`, `ttls_s`: by row, for columns
    without their own. `own_times`, `own_ttls`: by place of a column; a null time is the row's, and
    a value with a null TTL does not expire. A row without any value is in the first group.
    """
    places = [place for place in range(len(columns)) if place not in key]
    rows_count = len(times_us)
    if not places:
        yield Group(np.ones(rows_count, np.bool_), list(columns), times_us, ttls_s)
        return
    lengths = np.stack([columns[place].lengths for place in places], axis=1)
    times = _matrix(places, own_times, times_us, times_us)
    ttls = _matrix(places, own_ttls, ttls_s, np.zeros(rows_count, np.int64))
    pending, deleted = lengths >= 0, lengths == NULL_LENGTH
    active = np.ones(rows_count, np.bool_)
    every = np.arange(rows_count)
    while active.any():
        first = pending.argmax(axis=1)
        has = pending[every, first]
        group_us = np.where(has, times[every, first], times_us)
        group_s = np.where(has, ttls[every, first], ttls_s)
        same = pending & (times == group_us[:, None]) & (ttls == group_s[:, None])
        written = same | deleted
        found = list(columns)
        for at, place in enumerate(places):
            found[place] = _only(columns[place], written[:, at])
        if not active.all():
            found = [cells.filter(active) for cells in found]
        yield Group(active, found, group_us[active], group_s[active])
        pending &= ~same
        deleted = np.zeros_like(deleted)
        active = np.asarray(pending.any(axis=1), np.bool_)


def _only(cells: Cells, written: Mask) -> Cells:
    """Return the cells of the rows `written`, and unset cells for other rows."""
    if written.all():
        return cells
    return cells.filter(written).spread(written, UNSET_LENGTH)


def _matrix(
    places: Sequence[int], own: Mapping[int, Cells], usual: Integers, missing: Integers
) -> Integers:
    """Return a number for each row and place: its own, `missing` for a null, or else `usual`."""
    found = np.empty((len(usual), len(places)), np.int64)
    for at, place in enumerate(places):
        cells = own.get(place)
        found[:, at] = (
            usual if cells is None else np.where(cells.lengths < 0, missing, cell_integers(cells))
        )
    return found
