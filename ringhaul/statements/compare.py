"""Compare cells of a table with the cells of a source. Pure.

Cells are compared as bytes in wire format, without rounding or formatting, in one pass per column.
Only cells with different bytes are parsed, because the server normalises some values: it sorts and
deduplicates sets and the entries of maps, and stores an empty collection that is not frozen as no
value.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ringhaul.cql.cells import NULL_LENGTH, Cells, join_rows
from ringhaul.cql.column import SHOWN_CHARACTERS_MAX, quote
from ringhaul.cql.decode import PageDecoder
from ringhaul.cql.empties import marked_column
from ringhaul.cql.result_codes import KIND_ROWS, NO_METADATA
from ringhaul.cql.spell import text_of
from ringhaul.cql.types import CqlType

Mask = NDArray[np.bool_]
#: A value in a form in which equal values are equal.
Plain: TypeAlias = "bytes | tuple[Plain, ...] | None"

#: Bytes shown of values whose texts are equal.
_BYTES_SHOWN = 32
#: Common characters shown before the first difference of two values.
_COMMON_SHOWN = 20


class Shown(NamedTuple):
    """A cell for messages."""

    cell: bytes | None
    text: str | None


def differing(expected: Cells, actual: pa.BinaryArray, kind: CqlType, *, frozen: bool) -> Mask:
    """Return for each row whether its cell in the table (`actual`, an Arrow null for none) differs.

    A cell that is unset in `expected` is not compared. `frozen`: whether the column is frozen.
    """
    lengths = expected.lengths
    none: Mask = actual.is_null().to_numpy(zero_copy_only=False)
    equal: Mask = pc.equal(expected.values, actual).fill_null(False).to_numpy(zero_copy_only=False)
    found: Mask = np.where(lengths < 0, (lengths == NULL_LENGTH) & ~none, ~equal)
    if not _has_own_form(kind):
        return found
    for row in np.flatnonzero(found).tolist():
        cell = None if lengths[row] < 0 else expected.values[row].as_py()
        found[row] = plain(kind, cell, frozen=frozen) != plain(
            kind, actual[row].as_py(), frozen=frozen
        )
    return found


def shorter(expected: Cells, actual: pa.BinaryArray) -> Mask:
    """Return for each row whether its TTL in the table (`actual`, seconds, an Arrow null for none)
    cannot be what is left of the expected TTL: it is missing, or longer.

    A cell that is unset in `expected` is not compared; a null expects no TTL.
    """
    lengths = expected.lengths
    none: Mask = actual.is_null().to_numpy(zero_copy_only=False)
    wanted, left = _seconds(expected.values), _seconds(actual)
    return np.where(lengths < 0, (lengths == NULL_LENGTH) & ~none, none | (left > wanted)).astype(
        np.bool_
    )


def _seconds(cells: pa.BinaryArray) -> NDArray[np.int64]:
    """Return CQL ints as numbers, 0 for no value."""
    data = b"".join(cell or bytes(4) for cell in cells.to_pylist())
    return np.frombuffer(data, ">i4").astype(np.int64)


def plain(kind: CqlType, cell: bytes | None, *, frozen: bool = True) -> Plain:
    """Return a cell's value in a form in which values that are equal to the server are equal.

    Raises `struct.error` or ValueError for a malformed cell.
    """
    if cell is None:
        return None
    take = _TAKES.get(kind.name)
    if take is None:
        return cell
    value = take(kind, cell)
    return value if value or frozen else None


def _list(kind: CqlType, cell: bytes) -> tuple[Plain, ...]:
    (of,) = kind.of
    return tuple(plain(of, element) for element in _elements(cell, 1))


def _set(kind: CqlType, cell: bytes) -> tuple[Plain, ...]:
    return tuple(sorted(set(_list(kind, cell)), key=repr))


def _map(kind: CqlType, cell: bytes) -> tuple[Plain, ...]:
    parts = _elements(cell, 2)
    of_key, of_value = kind.of
    pairs = zip(parts[::2], parts[1::2], strict=True)
    entries = {plain(of_key, key): plain(of_value, value) for key, value in pairs}
    return tuple(sorted(entries.items(), key=repr))


def _fields(kind: CqlType, cell: bytes) -> tuple[Plain, ...]:
    """Return the fields of a tuple or a user-defined type, without nulls at the end.

    A cell may have more fields than its type had when the schema was read.
    """
    parts, at = [], 0
    while at < len(cell):
        part, at = _sized(cell, at)
        parts.append(part)
    known = [plain(of, part) for of, part in zip(kind.of, parts, strict=False)]
    fields = [*known, *parts[len(kind.of) :]]
    while fields and fields[-1] is None:
        fields.pop()
    return tuple(fields)


#: Types that contain other types, except vectors, which are compared byte by byte.
_TAKES: dict[str, Callable[[CqlType, bytes], tuple[Plain, ...]]] = {
    "list": _list,
    "set": _set,
    "map": _map,
    "tuple": _fields,
    "udt": _fields,
}


def _has_own_form(kind: CqlType) -> bool:
    return kind.name in _TAKES


def _elements(cell: bytes, each: int) -> list[bytes | None]:
    """Return the values in a collection: its count, then `each` values per element."""
    (count,) = struct.unpack_from(">i", cell)
    found, at = [], 4
    for _ in range(count * each):
        value, at = _sized(cell, at)
        found.append(value)
    return found


def _sized(cell: bytes, at: int) -> tuple[bytes | None, int]:
    """Return the value at `at`, after its length, and where it ends."""
    (length,) = struct.unpack_from(">i", cell, at)
    if length < 0:
        return None, at + 4
    if at + 4 + length > len(cell):
        raise ValueError(f"a value of {length} bytes at byte {at} of a cell of {len(cell)}")
    return cell[at + 4 : at + 4 + length], at + 4 + length


def shown_cells(kind: CqlType, cells: Cells) -> list[Shown]:
    """Return cells for messages."""
    missing = cells.lengths < 0
    raw = cells.values.to_pylist()
    return [
        Shown(None if missing[row] else raw[row], text)
        for row, text in enumerate(texts(kind, cells))
    ]


def texts(kind: CqlType, cells: Cells) -> list[str | None]:
    """Return values as text, as an unload writes them; None for no value."""
    head = struct.pack(">iiii", KIND_ROWS, NO_METADATA, 1, len(cells))
    page = head + b"".join(join_rows([cells]).to_pylist())
    batch = PageDecoder([""], [kind], marks=True).decode(page)
    found: list[str | None] = text_of(kind, marked_column(batch, "")).to_pylist()
    return found


def describe_difference(actual: Shown, expected: Shown) -> str:
    """Return text that says how two values differ, and where if they are long."""
    here, there = actual.text, expected.text
    if here == there:  # such as two kinds of NaN, or a whole number with leading zeros
        return f"the table has {_bytes(actual)}, the source {_bytes(expected)}"
    cut = 0
    if here is not None and there is not None:
        longest = max(len(here), len(there))
        if longest > SHOWN_CHARACTERS_MAX:
            pairs = zip(here, there, strict=False)
            common = next((i for i, (a, b) in enumerate(pairs) if a != b), longest)
            cut = max(0, min(common, len(here), len(there)) - _COMMON_SHOWN)
    where = f" from character {cut + 1} on" if cut else ""
    return f"the table has {_value(here, cut)}, the source {_value(there, cut)}{where}"


def _value(text: str | None, cut: int) -> str:
    return "no value" if text is None else quote(text[cut:])


def _bytes(cell: Shown) -> str:
    if cell.cell is None:
        return "no value"
    return f"{quote(cell.text or '')} (bytes 0x{cell.cell[:_BYTES_SHOWN].hex()})"
