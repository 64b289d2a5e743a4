"""Transforms of an unload: which columns come out, and rows in exactly these. Pure.

The files of an unload all have the same columns, so what functions give is known before a row is
read: they are asked for it with a batch without rows. A function of rows says it by `columns=`; one
that does not gives the columns that it gets.
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

#: A column of the output.
Result = tuple[str, CqlType]

#: Kept as text that their own types spell: a function may have put anything in its place.
_SPELT = ("ascii", "varchar", "inet", "decimal", "varint")
_TEXT = CqlType("text")
#: Arrow types besides the form of a CQL type, and what is written of them.
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
    """What became of a batch of rows."""

    rows: list[pa.RecordBatch]  #: with the columns of the output
    dropped: int  #: rows that a function left out
    errors: dict[int, str]  #: row -> why it became nothing


def planned_results(
    names: Sequence[str], types: Sequence[CqlType], transforms: Sequence[Transform]
) -> tuple[Result, ...]:
    """The columns that come out where columns of these names and types go in.

    Raises `UsageError` for a type that cannot be written, `TransformError` for a function that
    gives no result for a batch without rows.
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
    """The type that a column is written as: its own if it is of one that went in, else by what
    Arrow says of it."""
    before = known.get(name)
    if before is not None and before.arrow() == arrow:
        return _as_text(before)
    kind = kind_of(arrow)
    if kind is None:
        raise UsageError(
            f"transform {transform.name} gives column {name!r} as {arrow}, which has no form in "
            "files: give text"
        )
    return kind


def kind_of(arrow: pa.DataType) -> CqlType | None:
    """What an Arrow type is written as; None: nothing is."""
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
    """The type with text in place of what is spelt as text."""
    if kind.name in _SPELT:
        return _TEXT
    return CqlType(kind.name, tuple(map(_as_text, kind.of)), kind.fields, kind.size)


class Reshaper:
    """Puts rows through transforms into the columns of the output. Belongs to one unit."""

    def __init__(self, transforms: Sequence[Transform], results: Sequence[Result]) -> None:
        self._names = [name for name, _ in results]
        self._types = [kind.arrow() for _, kind in results]
        self._chain = Chain(transforms, self._names)
        self._name = transforms[-1].name

    def run(self, batch: pa.RecordBatch, tick: Callable[[], None] = lambda: None) -> Reshaped:
        """Raises `TransformError` for a result that is none, or has other columns than planned.

        `tick` is called between calls of functions; what it raises ends the run.
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
        """The piece's columns in the form of the output; values that have none go to `errors`."""
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
