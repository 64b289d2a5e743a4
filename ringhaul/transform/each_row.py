"""Transforms that are functions of one row: simple to write, and slow, as Python is per row."""

from __future__ import annotations

import datetime
import functools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, overload

import pyarrow as pa
import pyarrow.compute as pc

from ringhaul.transform.errors import reason_of, rethrow_interrupt

#: A row: values by the names of its columns.
Row = Mapping[str, Any]
RowFunction = Callable[[dict[str, Any]], "Row | Iterable[Row] | None"]
Columns = Sequence[str] | Mapping[str, pa.DataType]

#: Most rows from one record. If there are more, the function probably never ends.
RECORD_ROWS_MAX = 1_000_000
#: Seconds between ticks in a slow function's rows: the shortest lease is renewed every 0.25 s.
TICK_S = 0.2


class RowsOut(NamedTuple):
    """The output rows of a batch."""

    columns: dict[str, list[Any]]  #: Python values by column
    rows: list[int]  #: the row of the batch that each output row comes from
    errors: dict[int, str]  #: row of the batch -> why it has no output


class EachRow:
    """A transform made of a function of one row. Calling it calls the function, as a test would."""

    def __init__(self, function: RowFunction, columns: Columns | None) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        #: Names and, if declared, types of the columns; None: the columns found in its rows.
        self.columns: dict[str, pa.DataType | None] | None = None
        if isinstance(columns, Mapping):
            self.columns = dict(columns)
        elif columns is not None:
            self.columns = dict.fromkeys(columns)

    def __call__(self, row: dict[str, Any]) -> Row | Iterable[Row] | None:
        return self._function(row)

    def run(
        self,
        batch: Mapping[str, pa.Array | list[Any]],
        names: Sequence[str] | None,
        tick: Callable[[], None] = lambda: None,
    ) -> RowsOut:
        """Call the function for each row. `names`: the only columns that rows may have; None: any.

        `batch`: the columns, as Python values if they come from another function of rows. An
        exception of the function, or a result that is not a row, becomes an error of that row.
        `tick` is called between rows that take long; an exception from it ends the run.
        """
        found: list[Row] = []
        rows: list[int] = []
        values, errors = _python_rows(batch)
        allowed = None if names is None else frozenset(names)
        tick_due = time.monotonic() + TICK_S
        for number, value in enumerate(values):
            if value is None:
                continue
            if time.monotonic() >= tick_due:
                tick()
                tick_due = time.monotonic() + TICK_S
            try:
                result = _rows_of(self._function(value), allowed)
            except BaseException as error:
                rethrow_interrupt(error)
                errors[number] = reason_of(error)
                continue
            found += result
            rows += [number] * len(result)
        columns = names if names is not None else _names(found)
        return RowsOut({name: [row.get(name) for row in found] for name in columns}, rows, errors)


@overload
def each_row(function: RowFunction) -> EachRow: ...
@overload
def each_row(*, columns: Columns | None = None) -> Callable[[RowFunction], EachRow]: ...
def each_row(
    function: RowFunction | None = None, *, columns: Columns | None = None
) -> EachRow | Callable[[RowFunction], EachRow]:
    """Make a transform of a function that takes one row.

    The function takes a dict by column name and returns a dict, several of them (a list, or by
    `yield`), or None to leave the row out. `columns`: the names of all columns that it can return,
    or their Arrow types by name. Without them a load uses the columns of its first rows, and an
    unload the columns that it reads.
    """
    if function is not None:
        return EachRow(function, columns)
    return lambda function: EachRow(function, columns)


def _rows_of(result: Any, allowed: frozenset[str] | None) -> list[Row]:
    """Return the rows in a function's result. Raises `TypeError` or `ValueError` for a bad row."""
    if result is None:
        return []
    rows: list[Row] = []
    for row in (result,) if isinstance(result, Mapping) else result:
        if not isinstance(row, Mapping):
            raise TypeError(f"returned {type(row).__name__}, not a dict")
        if allowed is not None and not row.keys() <= allowed:
            unknown = next(name for name in row if name not in allowed)
            raise ValueError(
                f"gave a column {unknown!r}, which the first rows did not have: name all columns "
                "by @each_row(columns=[...])"
            )
        rows.append(row)
        if len(rows) > RECORD_ROWS_MAX:
            raise ValueError(f"gave more than {RECORD_ROWS_MAX:,} rows for one record")
    return rows


def _names(rows: Iterable[Row]) -> list[str]:
    """Return the columns of all rows, in order of first appearance."""
    names: dict[str, None] = {}
    for row in rows:
        if row.keys() - names.keys():
            names |= dict.fromkeys(map(str, row))
    return list(names)


def _python_rows(
    batch: Mapping[str, pa.Array | list[Any]],
) -> tuple[list[dict[str, Any] | None], dict[int, str]]:
    """Return each row as a dict; None where Python has no such value (a date before year 1)."""
    errors: dict[int, str] = {}
    columns = [
        column if isinstance(column, list) else _python_values(name, column, errors)
        for name, column in batch.items()
    ]
    rows: list[dict[str, Any] | None] = [
        dict(zip(batch, values, strict=True)) for values in zip(*columns, strict=True)
    ]
    for number in errors:
        rows[number] = None
    return rows, errors


def _python_values(name: str, column: pa.Array, errors: dict[int, str]) -> list[Any]:
    """Convert a column to Python values, which have microseconds. A finer timestamp is floored, as
    Python's are where finer than their column; a finer time of day becomes its text."""
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        floored = column.view(pa.int64()).fill_null(0).to_numpy() // 1000
        absent = column.is_null().to_numpy(zero_copy_only=False)
        micros = pa.timestamp("us", column.type.tz)
        column = pa.array(floored, pa.int64(), mask=absent).view(micros)
    # If pandas is installed, pyarrow cuts off nanoseconds of times without a word.
    if column.type == pa.time64("ns"):
        if not pc.any(pc.not_equal(_nanoseconds(column), 0)).as_py():
            return list(column.to_pylist())
        texts = column.cast(pa.string()).to_pylist()
        return list(map(_time, column.view(pa.int64()).to_pylist(), texts))
    if _holds_times(column.type):
        return [_python_value(name, value, errors) for value in enumerate(column)]
    try:
        return list(column.to_pylist())
    except (ValueError, OverflowError, UnicodeDecodeError):
        return [_python_value(name, value, errors) for value in enumerate(column)]


def _nanoseconds(times: pa.Array) -> pa.Array:
    """Return what Python's times lack of each time of day."""
    numbers = times.view(pa.int64())
    return pc.subtract(numbers, pc.multiply(pc.divide(numbers, 1000), 1000))


def _holds_times(kind: pa.DataType) -> bool:
    """Return whether a type has times of day in nanoseconds within it."""
    return any(
        kind.field(i).type == pa.time64("ns") or _holds_times(kind.field(i).type)
        for i in range(kind.num_fields)
    )


def _is_finer(value: Any) -> bool:
    """Return whether a scalar is, or holds, a time of day that Python's times cannot hold."""
    if not value.is_valid:
        return False
    if value.type == pa.time64("ns"):
        return bool(value.value % 1000)
    if pa.types.is_struct(value.type):
        return any(map(_is_finer, value.values()))
    if value.type.num_fields:  # a list, or a map as a list of its entries
        return any(map(_is_finer, value.values))
    return False


def _time(nanoseconds: int | None, text: str | None) -> datetime.time | str | None:
    if nanoseconds is None or text is None or nanoseconds % 1000:
        return text
    return datetime.time.fromisoformat(text[:-3])


def _python_value(name: str, value: tuple[int, Any], errors: dict[int, str]) -> Any:
    row, scalar = value
    try:
        if _is_finer(scalar):
            raise ValueError("a time of day has nanoseconds, which Python's times cannot hold")
        return scalar.as_py()
    except (ValueError, OverflowError, UnicodeDecodeError) as error:
        errors.setdefault(row, f"{name}: {reason_of(error)}")
        return None
