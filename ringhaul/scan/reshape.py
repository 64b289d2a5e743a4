"""Transforms of an unload: plan the output columns, and bring rows into exactly these. Pure.

All files of an unload have the same columns, so the columns that functions return have to be known
before the first row is read: each is called once with an empty batch. A function of single rows
declares them by `columns=`; if it does not, its output has the columns of its input.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ringhaul.cql.types import SCALARS, CqlType
from ringhaul.errors import UsageError
from ringhaul.transform.chain import Chain, Piece, Transform
from ringhaul.transform.each_row import EachRow
from ringhaul.transform.errors import TransformError
from ringhaul.transform.forms import in_form

#: Name and type of an output column.
Result = tuple[str, CqlType]

#: Types written as text: a function may have replaced the value by any other text.
_SPELT = ("ascii", "varchar", "inet", "decimal", "varint")
_TEXT = CqlType("text")
#: Arrow types that no CQL type has, and the CQL types they are written as.
_WIDENED = {
    pa.uint8(): "smallint",
    pa.uint16(): "int",
    pa.uint32(): "bigint",
    pa.float16(): "float",
    pa.large_string(): "text",
    pa.string_view(): "text",
    pa.large_binary(): "blob",
    pa.binary_view(): "blob",
    pa.date64(): "date",
    pa.null(): "text",
}


class Reshaped(NamedTuple):
    """The result of transforming a batch of rows."""

    rows: list[pa.RecordBatch]  #: batches with the output columns
    dropped: int  #: rows that a function left out
    errors: dict[int, str]  #: row -> why it failed


def planned_results(
    names: Sequence[str], types: Sequence[CqlType], transforms: Sequence[Transform]
) -> tuple[Result, ...]:
    """Return the output columns for input columns of these names and types.

    Raises `UsageError` for a type that cannot be written, `TransformError` if a function returns no
    result for an empty batch.
    """
    known = dict(zip(names, types, strict=True))
    for transform in transforms:
        known = _after(transform, known)
        if not known:
            raise UsageError(f"transform {transform.name} gives no column")
    return tuple(known.items())


def _after(transform: Transform, known: dict[str, CqlType]) -> dict[str, CqlType]:
    function = transform.function
    if isinstance(function, EachRow):
        if function.columns is None:
            return {name: _as_text(kind) for name, kind in known.items()}
        return {
            name: _as_text(known.get(name, _TEXT)) if arrow is None else _written(
                transform, name, arrow, known
            )
            for name, arrow in function.columns.items()
        }  # fmt: skip
    empty = pa.schema([(name, kind.arrow()) for name, kind in known.items()]).empty_table()
    batch = pa.RecordBatch.from_arrays(
        [column.combine_chunks() for column in empty.columns], list(known)
    )
    pieces, _ = Chain([transform]).apply(batch)
    return {
        name: _written(transform, name, column.type, known)
        for piece in pieces
        for name, column in piece.columns.items()
    }


def _written(
    transform: Transform, name: str, arrow: pa.DataType, known: dict[str, CqlType]
) -> CqlType:
    """Return the type that a column is written as.

    An unchanged Arrow type keeps the input column's type; any other Arrow type determines it.
    """
    before = known.get(name)
    if before is not None and before.arrow() == arrow:
        return _as_text(before)
    kind = kind_of(arrow)
    if kind is None:
        raise UsageError(
            f"transform {transform.name} gives column {name!r} as {arrow}, which cannot be "
            "written to files: return text"
        )
    return kind


def kind_of(arrow: pa.DataType) -> CqlType | None:
    """Return the CQL type that an Arrow type is written as; None if it cannot be written."""
    if pa.types.is_dictionary(arrow):
        return kind_of(arrow.value_type)
    if pa.types.is_timestamp(arrow):
        return CqlType("timestamp")
    if pa.types.is_time(arrow):
        return CqlType("time")
    if pa.types.is_decimal(arrow) or arrow == pa.uint64():
        return _TEXT
    if pa.types.is_fixed_size_binary(arrow):
        return CqlType("blob")
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow):
        inner = kind_of(arrow.value_type)
        return None if inner is None else CqlType("list", (inner,))
    if pa.types.is_map(arrow):
        key, item = kind_of(arrow.key_type), kind_of(arrow.item_type)
        return None if key is None or item is None else CqlType("map", (key, item))
    if arrow in _WIDENED:
        return CqlType(_WIDENED[arrow])
    for name in ("text", "blob", *SCALARS):
        if SCALARS[name] == arrow and name not in _SPELT:
            return CqlType(name)
    return None


def _as_text(kind: CqlType) -> CqlType:
    """Return the type with text in place of every type that is spelt as text."""
    if kind.name in _SPELT:
        return _TEXT
    return CqlType(kind.name, tuple(map(_as_text, kind.of)), kind.fields, kind.size)


class Reshaper:
    """Puts rows through transforms into the output columns. Belongs to one unit."""

    def __init__(self, transforms: Sequence[Transform], results: Sequence[Result]) -> None:
        self._names = [name for name, _ in results]
        self._types = [kind.arrow() for _, kind in results]
        self._chain = Chain(transforms, self._names)
        self._name = transforms[-1].name

    def run(self, batch: pa.RecordBatch, tick: Callable[[], None] = lambda: None) -> Reshaped:
        """Transform a batch.

        Raises `TransformError` for a result of the wrong kind or with other columns than planned.
        `tick` is called between calls of functions; if it raises, the run ends.
        """
        rows: list[pa.RecordBatch] = []
        errors: dict[int, str] = {}
        dropped = 0
        for applied in self._chain.run(batch, tick):
            of_slice = dict(applied.errors)
            given = np.zeros(batch.num_rows, np.bool_)
            pieces = [piece for piece in applied.pieces if len(piece.rows)]
            written = [self._columns(piece, of_slice) for piece in pieces]
            at_fault = np.zeros(batch.num_rows, np.bool_)
            at_fault[list(of_slice)] = True
            for piece, columns in zip(pieces, written, strict=True):
                given[piece.rows] = True
                out = pa.RecordBatch.from_arrays(columns, self._names)
                bad = at_fault[piece.rows]
                rows.append(out.filter(pa.array(~bad)) if bad.any() else out)
            untouched = ~(given | at_fault)[applied.first : applied.end]
            dropped += int(np.count_nonzero(untouched))
            errors |= of_slice
        return Reshaped([out for out in rows if out.num_rows], dropped, errors)

    def _columns(self, piece: Piece, errors: dict[int, str]) -> list[pa.Array]:
        """Return the piece's columns as output; values that cannot be written go to `errors`."""
        if set(piece.columns) != set(self._names):
            raise TransformError(
                f"transform {self._name} gave the columns {', '.join(piece.columns)}, and "
                f"{', '.join(self._names)} for a batch without rows"
            )
        columns = []
        for name, arrow in zip(self._names, self._types, strict=True):
            column, bad = in_form(piece.columns[name], arrow)
            columns.append(column)
            for row, reason in bad.items():
                errors.setdefault(int(piece.rows[row]), f"{self._name}: column {name!r}: {reason}")
        return columns
