"""Encode the fields of rows into the columns that a statement binds, times and TTLs among them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ringhaul.breadcrumb import TRAIL
from ringhaul.cluster.schema import appends
from ringhaul.cql.cells import NULL_LENGTH, UNSET_LENGTH, Cells
from ringhaul.cql.empties import EMPTIABLE, rows_with_empty_elements
from ringhaul.cql.nested import encode_column
from ringhaul.cql.text_format import TextFormat
from ringhaul.cql.typed import refusal
from ringhaul.records.blanks import without_blanks, without_empties
from ringhaul.records.column_times import TABLE_TTL, Group, grouped
from ringhaul.records.field_readers import Fault, Mask
from ringhaul.records.job import Input, LoadSource
from ringhaul.records.row_fields import (
    WRITETIME,
    ColumnEncoder,
    cell_integers,
    marker_encoder,
    ttls_or,
    write_times_or,
)
from ringhaul.records.wildcard import EVERY


class Written(NamedTuple):
    """The values to bind to the statement for some rows."""

    rows: Mask  #: which of all rows
    bound: list[Cells]
    appending: bool  #: whether a list gets elements, which a repeated write would double


def _repeated(cell: Cells, count: int) -> Cells:
    """Return the same cell for this many rows."""
    if cell.fixed_values is not None:
        return Cells.fixed(np.repeat(cell.fixed_values, count))
    rows = pa.array(np.zeros(count, np.int32))
    return Cells(None, np.repeat(cell.lengths, count), cell.values.take(rows))


class TableColumns:
    """The loaded columns, in the order in which they are bound, followed by the fields that say
    how a row is written (`row_fields.py`), and a column of it (`column_times.py`). The last columns
    may be constants, which no field fills. After the columns come the arguments of functions."""

    def __init__(self, job: Input, source: LoadSource) -> None:
        columns, arguments = source.columns, source.arguments
        self.names = [*columns, *(argument.label for argument in arguments)]
        self.kinds = [job.table.parsed_type(column) for column in columns]
        self.kinds += [argument.type for argument in arguments]
        missing = UNSET_LENGTH if job.nulls == "unset" else NULL_LENGTH
        key = job.table.primary_key
        self._null_lengths = [NULL_LENGTH if c in key else missing for c in columns]
        self._null_lengths += [NULL_LENGTH] * len(arguments)  # a function takes nothing unset
        #: Lists whose elements may be empty.
        self._spelt_out = [
            kind.name == "list" and kind.of[0].name in EMPTIABLE for kind in self.kinds
        ]
        self._text = job.text
        self._markers = [job.meanings.get(name) for name in self.names]
        self._row_fields = source.row_fields
        self._marks = [*self._row_fields, *((name, m) for name, m, _ in source.column_fields)]
        #: Field with times of a column whose elements have their own -> what to give instead.
        self._hints = {
            name: f"; {column} is not frozen, and all its elements get one: "
            + (f"unload maxwritetime({column})" if meant is WRITETIME else "leave the field out")
            for name, meant, column in source.column_fields
            if job.table.is_multi_cell(column)
        }
        self._labels = [meant.label for _, meant in self._row_fields]
        self._labels += [f"{meant.label} of {name}" for _, meant, name in source.column_fields]
        #: Place of a column -> place of the cells with its write times or TTLs.
        self._time_at, self._ttl_at = self._places_of(source)
        #: Column, or * for rows -> the write time or TTL that all rows have.
        self._fixed_times, self._fixed_ttls = dict(source.fixed_times), dict(source.fixed_ttls)
        self._splits_rows, self._ttl_bound = source.splits_rows, source.ttl_bound
        self._key = {at for at, name in enumerate(self.names) if name in key}
        self._lists = [at for at, name in enumerate(columns) if appends(job.table.type_of(name))]
        self._constants = [self._constant(job, column, text) for column, text in source.constants]
        self._constants_at = len(source.mapping)
        self._ttl_s = job.times.ttl_s
        wanted = source.wanted(job)
        self._read_at = [] if job.transforms else [wanted.index(name) for name in source.loaded]

    def _places_of(self, source: LoadSource) -> tuple[dict[int, int], dict[int, int]]:
        first = len(self.names) + len(source.row_fields)
        found: tuple[dict[int, int], dict[int, int]] = ({}, {})
        for at, (_, meant, column) in enumerate(source.column_fields, start=first):
            found[meant is not WRITETIME][self.names.index(column)] = at
        return found

    def _constant(self, job: Input, column: str, text: str) -> Cells:
        kind = job.table.parsed_type(column)
        values = pa.array([text.encode()], pa.binary())
        return encode_column(kind, values, TextFormat(), null_length=NULL_LENGTH).cells

    def of_read(self, columns: list[Any]) -> list[Any]:
        """Return the values at each place, from `Parsed.columns`: a field may be at two places."""
        return self.with_constants([columns[at] for at in self._read_at])

    def with_constants(self, values: list[Any]) -> list[Any]:
        """Return the values at each place, from the values of fields; None for constants."""
        if not self._constants:
            return values
        at = self._constants_at
        return values[:at] + [None] * len(self._constants) + values[at:]

    def label(self, place: int) -> str:
        """Return the purpose of the values at `place`, as text for messages."""
        columns_count = len(self.names)
        if place < columns_count:
            return self.names[place]
        return self._labels[place - columns_count]

    def refusal(self, place: int, arrow: pa.DataType) -> str | None:
        """Return why values of an Arrow type cannot be loaded at `place`; None: they can."""
        columns_count = len(self.names)
        if place < columns_count:
            return refusal(self.kinds[place], arrow)
        return self._marks[place - columns_count][1].refusal(arrow)

    def encode(
        self,
        encode: ColumnEncoder,
        place: int,
        values: Any,
        records: npt.NDArray[np.int64],
        faults: dict[int, Fault],
    ) -> Cells:
        """Encode the values at `place`; a fault goes to `faults`, unless its record has one."""
        columns_count = len(self.names)
        TRAIL.column(self.label(place))
        constant, hint = place - self._constants_at, ""
        if 0 <= constant < len(self._constants):
            return _repeated(self._constants[constant], len(records))
        if place < columns_count:
            name, kind = self.names[place], self.kinds[place]
            missing = self._null_lengths[place]
            marker = self._markers[place]
            if marker is not None:
                encode = marker_encoder(marker, encode)
            values = without_empties(kind, values)
            column = encode(kind, values, self._text, null_length=missing)
            if column.faults and (given := without_blanks(kind, values, column.faults)) is not None:
                column = encode(kind, given, self._text, null_length=missing)
            if self._spelt_out[place]:
                self._refuse_empties(place, column.cells, records, faults)
        else:
            name, meant = self._marks[place - columns_count]
            hint = self._hints.get(name, "")
            values = without_empties(meant.kind, values)
            column = meant.encode(encode, values, self._text)
            given = without_blanks(meant.kind, values, column.faults)
            if given is not None:
                column = meant.encode(encode, given, self._text)
        for row, fault in column.faults.items():
            faults.setdefault(int(records[row]), ("cast", name, fault.words(name) + hint))
        return column.cells

    def _refuse_empties(
        self, place: int, lists: Cells, records: npt.NDArray[np.int64], faults: dict[int, Fault]
    ) -> None:
        """Reject lists with empty elements.

        Bound as a list, such a value causes an error of the server, or a null in a frozen list. A
        literal in CQL keeps it.
        """
        name, (of,) = self.names[place], self.kinds[place].of
        for row in rows_with_empty_elements(of, lists):
            reason = (
                f"cast list: an empty value of type {of}, which the server takes in a list "
                "only as a literal: INSERT the row with cqlsh"
            )
            faults.setdefault(int(records[row]), ("cast", name, reason))

    def statements(
        self, cells: list[Cells], timestamps: npt.NDArray[np.int64]
    ) -> Iterator[Written]:
        """Yield what to bind for the rows of `cells`, each row at least once: see `bound`."""
        appending = bool(self._lists)
        if not self._splits_rows:
            every = np.ones(len(timestamps), np.bool_)
            yield Written(every, self.bound(cells, timestamps), appending)
            return
        columns_count = len(self.names)
        times_us, ttls_s = timestamps, np.full(len(timestamps), self._ttl_s or TABLE_TTL, np.int64)
        for (_, meant), own in zip(self._row_fields, cells[columns_count:], strict=False):
            given = own.lengths >= 0
            if meant is WRITETIME:
                times_us = np.where(given, cell_integers(own), times_us)
            else:
                ttls_s = np.where(given, cell_integers(own), ttls_s)
        if EVERY in self._fixed_times:
            times_us = np.full_like(times_us, self._fixed_times[EVERY])
        if EVERY in self._fixed_ttls:
            ttls_s = np.full_like(ttls_s, self._fixed_ttls[EVERY])
        for group in grouped(
            cells[:columns_count],
            key=self._key,
            times_us=times_us,
            ttls_s=ttls_s,
            own_times={place: cells[at] for place, at in self._time_at.items()}
            | self._fixed_cells(self._fixed_times, len(times_us)),
            own_ttls={place: cells[at] for place, at in self._ttl_at.items()}
            | self._fixed_cells(self._fixed_ttls, len(times_us)),
        ):
            yield from self._of_group(group)

    def _fixed_cells(self, values: Mapping[str, int], rows_count: int) -> dict[int, Cells]:
        """Return place of a column -> cells with its number in every row."""
        return {
            self.names.index(column): Cells.fixed(np.full(rows_count, value, ">i8"))
            for column, value in values.items()
            if column != EVERY
        }

    def _of_group(self, group: Group) -> Iterator[Written]:
        """Yield the rows of a group, rows with a list apart: only they need later times."""
        bound = [*group.columns, Cells.fixed(group.times_us.astype(">i8"))]
        if self._ttl_bound:
            ttls = group.ttls_s
            given = ttls != TABLE_TTL
            bound.append(Cells.fixed(ttls.astype(">i4"), given, UNSET_LENGTH))
            if given.all():
                bound[-1] = Cells.fixed(ttls.astype(">i4"))
        lists = np.zeros(len(group.times_us), np.bool_)
        for place in self._lists:
            lists |= group.columns[place].lengths >= 0
        for chosen, appending in ((~lists, False), (lists, True)):
            if chosen.all():
                yield Written(group.rows, bound, appending)
            elif chosen.any():
                rows = group.rows.copy()
                rows[group.rows] = chosen
                yield Written(rows, [column.filter(chosen) for column in bound], appending)

    def bound(self, cells: list[Cells], timestamps: npt.NDArray[np.int64]) -> list[Cells]:
        """Return the cells to bind, from the cells of all places: the columns, the timestamp, and
        the TTL if rows have their own. `timestamps`: microseconds, for rows without their own."""
        columns_count = len(self.names)
        if EVERY in self._fixed_times:
            timestamps = np.full_like(timestamps, self._fixed_times[EVERY])
        bound = [*cells[:columns_count], Cells.fixed(timestamps.astype(">i8"))]
        for (_, meant), own in zip(self._row_fields, cells[columns_count:], strict=True):
            if meant is WRITETIME:
                bound[columns_count] = write_times_or(own, timestamps)
            else:
                bound.append(ttls_or(own, self._ttl_s))
        if EVERY in self._fixed_ttls:
            bound.append(Cells.fixed(np.full(len(timestamps), self._fixed_ttls[EVERY], ">i4")))
        return bound
