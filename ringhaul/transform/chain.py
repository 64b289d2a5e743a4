"""Run batches of records through the transforms of a job, in slices. Pure.

A function may change the number of rows and raise on some, yet each row must stay traceable to its
record: by the column `RECORD`, which every batch has and which filters and joins carry along, or by
position if the function returns as many rows as it was given. When a function raises on a batch, it
runs again on halves, until each record at fault is alone.

A function must treat each record independently: which records share a batch is arbitrary.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ringhaul.transform import RECORD
from ringhaul.transform.each_row import EachRow
from ringhaul.transform.errors import TransformError, reason_of, rethrow_interrupt
from ringhaul.transform.forms import in_form, unchanged

Function = Callable[[pa.RecordBatch], Any] | EachRow
Rows = NDArray[np.int64]

#: Target size of a slice's output: large enough that the cost of a call vanishes, small enough that
#: several fit into memory and that a lease is renewed in time.
SLICE_ROWS = 32 * 1024
SLICE_BYTES = 16 << 20
SLICE_S = 1.0
#: How many rows a record becomes is unknown: the first slice is small, the next slices grow.
FIRST_RECORDS = 64
GROWTH = 4


@dataclass(frozen=True)
class Transform:
    """A function and its name in the job's options, `module:function`."""

    name: str
    function: Function


class Piece(NamedTuple):
    """Output rows that all have the same columns and types."""

    columns: dict[str, Any]  #: Arrow arrays; lists of Python values if from a function of rows
    rows: Rows  #: the row of the input batch that each row comes from


class Applied(NamedTuple):
    """The result for the rows first..end-1 of a batch.

    A function left out the rows that have neither an error nor a row in a piece. Rows with an error
    may have rows in pieces, which must not be used.
    """

    first: int
    end: int
    pieces: list[Piece]
    errors: dict[int, str]


def declared_columns(transforms: Sequence[Transform]) -> list[str] | None:
    """Return the columns declared by the last transform; None if it declares none."""
    function = transforms[-1].function
    return list(function.columns or ()) or None if isinstance(function, EachRow) else None


class Chain:
    """The transforms of one unit, in order. Learns how much output the functions produce."""

    def __init__(self, transforms: Sequence[Transform], names: Sequence[str] | None = None) -> None:
        """`names`: the only columns that a last function of rows may return; None: any."""
        self._transforms, self._names = list(transforms), names
        self._slice_records = FIRST_RECORDS

    def run(
        self, batch: pa.RecordBatch, tick: Callable[[], None] = lambda: None
    ) -> Iterator[Applied]:
        """Run a batch slice by slice; `tick` is called between calls of functions, and
        between rows of a slow function.

        Raises `TransformError` for an invalid result, and whatever `tick` raises.
        """
        first = 0
        while first < batch.num_rows:
            end = min(first + self._slice_records, batch.num_rows)
            started = time.monotonic()
            pieces, errors = self.apply(batch.slice(first, end - first), tick)
            self._learn(end - first, pieces, time.monotonic() - started)
            yield Applied(
                first,
                end,
                [Piece(columns, rows + first) for columns, rows in pieces],
                {row + first: reason for row, reason in errors.items()},
            )
            tick()
            first = end

    def apply(
        self, batch: pa.RecordBatch, tick: Callable[[], None] = lambda: None
    ) -> tuple[list[Piece], dict[int, str]]:
        """Run a complete batch, which may have no rows; `tick` as for `run`."""
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        pieces = [Piece(columns, np.arange(batch.num_rows, dtype=np.int64))]
        errors: dict[int, str] = {}
        kinds = _kinds(pieces)
        for number, transform in enumerate(self._transforms):
            function = transform.function
            done: list[Piece] = []
            for piece in pieces:
                if not isinstance(function, EachRow):
                    piece = self._by_column(piece, number, kinds, errors)
                if batch.num_rows and not len(piece.rows):
                    continue  # no rows are left to call the function for
                if number:
                    tick()
                if isinstance(function, EachRow):
                    out = function.run(piece.columns, self._allowed(number), tick)
                    found = [Piece(dict(out.columns), np.array(out.rows, np.int64))]
                    bad = out.errors
                else:
                    found, bad = self._call(transform, piece, tick)
                done += [Piece(columns, piece.rows[rows]) for columns, rows in found]
                for row, reason in bad.items():
                    errors.setdefault(int(piece.rows[row]), f"{transform.name}: {reason}")
            pieces = _merged(done)
            said = function.columns if isinstance(function, EachRow) else None
            kinds |= {name: kind for name, kind in (said or {}).items() if kind is not None}
            kinds |= _kinds(pieces)
        return pieces, errors

    def _allowed(self, number: int) -> Sequence[str] | None:
        """Return the only columns that a function of rows may return; None: any."""
        if number == len(self._transforms) - 1:
            return self._names
        return declared_columns(self._transforms[: number + 1])

    def _by_column(
        self, piece: Piece, number: int, kinds: Mapping[str, pa.DataType], errors: dict[int, str]
    ) -> Piece:
        """Return the piece with Arrow columns only. The preceding function of rows declares a
        column's type; else the column keeps its type from before that function (`kinds`), or its
        values decide. Rows whose values do not fit a declared type go to `errors`."""
        before = self._transforms[number - 1]
        said = before.function.columns if number and isinstance(before.function, EachRow) else None
        columns: dict[str, pa.Array] = {}
        good = np.ones(len(piece.rows), np.bool_)
        for name, column in piece.columns.items():
            if isinstance(column, list) and (arrow := (said or {}).get(name)) is not None:
                column, bad = in_form(column, arrow)
                for row, reason in bad.items():
                    good[row] = False
                    message = f"{before.name}: column {name!r}: {reason}"
                    errors.setdefault(int(piece.rows[row]), message)
            elif isinstance(column, list):
                column = unchanged(column, kinds.get(name))
            columns[name] = column
        if not good.all():
            kept = pa.array(good)
            columns = {name: column.filter(kept) for name, column in columns.items()}
        return Piece(columns, piece.rows[good])

    def _call(
        self, transform: Transform, piece: Piece, tick: Callable[[], None]
    ) -> tuple[list[Piece], dict[int, str]]:
        """Call one function of columns on a batch, or on parts of it if it raises."""
        batch = pa.RecordBatch.from_arrays(list(piece.columns.values()), list(piece.columns))
        pieces: list[Piece] = []
        errors: dict[int, str] = {}
        todo = [(0, batch.num_rows)]
        while todo:
            first, end = todo.pop()
            part = _numbered(batch.slice(first, end - first))
            try:
                result = transform.function(part)
            except BaseException as error:
                rethrow_interrupt(error)
                if end - first <= 1:
                    if not batch.num_rows:
                        raise TransformError(
                            f"transform {transform.name} raises {reason_of(error)} on a batch "
                            "without rows, on which it is run to learn its columns"
                        ) from error
                    errors[first] = reason_of(error)
                else:
                    middle = (first + end) // 2
                    todo += [(middle, end), (first, middle)]
                tick()
                continue
            columns, rows = _taken_apart(transform.name, result, end - first)
            pieces.append(Piece(columns, rows + first))
            if todo:
                tick()
        return pieces, errors

    def _learn(self, records: int, pieces: Sequence[Piece], seconds: float) -> None:
        """Set how many records the next slice has."""
        rows = sum(len(piece.rows) for piece in pieces)
        share = max(rows / SLICE_ROWS, _bytes_count(pieces) / SLICE_BYTES, seconds / SLICE_S, 1e-9)
        most = max(self._slice_records, GROWTH * records)
        self._slice_records = max(1, min(int(records / share), most))


def _kinds(pieces: Sequence[Piece]) -> dict[str, pa.DataType]:
    """Return the types of the Arrow columns."""
    return {
        name: column.type
        for piece in pieces
        for name, column in piece.columns.items()
        if not isinstance(column, list)
    }


def _numbered(batch: pa.RecordBatch) -> pa.RecordBatch:
    numbers = pa.array(np.arange(batch.num_rows, dtype=np.int64))
    return pa.RecordBatch.from_arrays([*batch.columns, numbers], [*batch.schema.names, RECORD])


def _taken_apart(name: str, result: Any, records: int) -> tuple[dict[str, pa.Array], Rows]:
    """Return the columns of a function's result and, for each of its rows, the input row.

    Raises `TransformError` for an invalid result.
    """
    if not isinstance(result, pa.RecordBatch):
        raise TransformError(
            f"transform {name} returned {type(result).__name__}, not a "
            "pyarrow.RecordBatch; a function of one row is marked by @each_row"
        )
    for column, count in Counter(result.schema.names).items():
        if count > 1:
            raise TransformError(f"transform {name} gave {count} columns named {column!r}")
    columns = dict(zip(result.schema.names, result.columns, strict=True))
    numbers = columns.pop(RECORD, None)
    if numbers is not None:
        return columns, _checked_numbers(name, numbers, records)
    if result.num_rows != records:
        raise TransformError(
            f"transform {name} gave {result.num_rows:,} rows for {records:,} without the column "
            f"{RECORD}, which says which record each row comes from: keep it, as filter and take do"
        )
    return columns, np.arange(records, dtype=np.int64)


def _checked_numbers(name: str, numbers: pa.Array, records: int) -> Rows:
    if not pa.types.is_integer(numbers.type) or numbers.null_count:
        raise TransformError(
            f"transform {name} gave a column {RECORD} of {numbers.type} with "
            f"{numbers.null_count:,} nulls: it holds the number of each row's record"
        )
    rows: Rows = numbers.to_numpy(zero_copy_only=False).astype(np.int64)
    if len(rows) and (rows.min() < 0 or rows.max() >= records):
        outside = int(rows[(rows < 0) | (rows >= records)][0])
        raise TransformError(
            f"transform {name} gave {RECORD} {outside}: the batch has the records 0 to "
            f"{records - 1}"
        )
    return rows


def _merged(pieces: Sequence[Piece]) -> list[Piece]:
    """Join neighbouring pieces that have the same columns and types."""
    runs: list[list[Piece]] = []
    for piece in pieces:
        if runs and _form(runs[-1][0]) == _form(piece):
            runs[-1].append(piece)
        else:
            runs.append([piece])
    return [run[0] if len(run) == 1 else _joined(run) for run in runs]


def _form(piece: Piece) -> list[tuple[str, Any]]:
    return [
        (name, list if isinstance(column, list) else column.type)
        for name, column in piece.columns.items()
    ]


def _joined(run: Sequence[Piece]) -> Piece:
    columns: dict[str, Any] = {}
    for name, column in run[0].columns.items():
        parts = [piece.columns[name] for piece in run]
        if isinstance(column, list):
            columns[name] = [value for part in parts for value in part]
        else:
            columns[name] = pa.concat_arrays(parts)
    return Piece(columns, np.concatenate([piece.rows for piece in run]))


def _bytes_count(pieces: Sequence[Piece]) -> int:
    """Estimate the size in bytes; each Python value counts 64 bytes, like a small value."""
    return sum(
        64 * len(column) if isinstance(column, list) else int(column.nbytes)
        for piece in pieces
        for column in piece.columns.values()
    )
