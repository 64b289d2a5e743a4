"""Whether cells of a table are those of a source. Pure.

Cells are compared as the bytes that they are on the wire: nothing is rounded or spelt anew, and a
column costs one pass. Only where bytes differ a value is taken apart, as the server keeps some
values in a form of its own: sets and the entries of maps in their order and each once, and a
collection that is not frozen and has nothing in it as no value.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ringhaul.cql.cells import NULL_LENGTH, Cells, join_rows
from ringhaul.cql.column import SHOWN_CHARACTERS_MAX, shown
from ringhaul.cql.types import CqlType
from ringhaul.read.replies import FLAG_NO_METADATA, KIND_ROWS

Mask = NDArray[np.bool_]
#: A value in a form in which equal ones are equal.
Plain: TypeAlias = "bytes | tuple[Plain, ...] | None"

#: Characters that two values have in common and that are shown in front of where they differ.
_COMMON_SHOWN = 20


def differing(expected: Cells, actual: pa.BinaryArray, kind: CqlType, *, frozen: bool) -> Mask:
    """Of each row, whether its cell in the table (`actual`, an Arrow null for none) is another.

    A cell that is unset in `expected` says nothing of the table's. `frozen`: the column is.
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


def plain(kind: CqlType, cell: bytes | None, *, frozen: bool = True) -> Plain:
    """A cell's value in a form in which those that are the same to the server are equal.

    Raises `struct.error` or ValueError for what is no cell of this type.
    """
    if cell is None:
        return None
    take = _TAKES.get(kind.name)
    if take is None:
        return cell
    value = take(kind, cell)
    empty = not value or (kind.name == "udt" and not any(part is not None for part in value))
    return None if empty and not frozen else value


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
    """A tuple's, or those of a user-defined type: what is not there at the end is null."""
    parts, at = [], 0
    while at < len(cell):
        part, at = _sized(cell, at)
        parts.append(part)
    parts += [None] * (len(kind.of) - len(parts))
    return tuple(plain(of, part) for of, part in zip(kind.of, parts, strict=True))


#: Types with others in them, but for vectors, which are what they are to the last byte.
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
    """What stands in a collection: its count, and `each` values for each of them."""
    (count,) = struct.unpack_from(">i", cell)
    found, at = [], 4
    for _ in range(count * each):
        value, at = _sized(cell, at)
        found.append(value)
    return found


def _sized(cell: bytes, at: int) -> tuple[bytes | None, int]:
    """The value at `at`, behind its length, and where it ends."""
    (length,) = struct.unpack_from(">i", cell, at)
    if length < 0:
        return None, at + 4
    if at + 4 + length > len(cell):
        raise ValueError(f"a value of {length} bytes at byte {at} of a cell of {len(cell)}")
    return cell[at + 4 : at + 4 + length], at + 4 + length


def texts(kind: CqlType, cells: Cells) -> list[str | None]:
    """Values as text, as an unload writes them; None: there is no value."""
    # numba: only where something differs
    from ringhaul.cql.decode import PageDecoder
    from ringhaul.cql.spell import text_of

    head = struct.pack(">iiii", KIND_ROWS, FLAG_NO_METADATA, 1, len(cells))
    page = head + b"".join(join_rows([cells]).to_pylist())
    found: list[str | None] = text_of(
        kind, PageDecoder([""], [kind]).decode(page).column(0)
    ).to_pylist()
    return found


def told(actual: str | None, expected: str | None) -> str:
    """In words, that two values differ, and where if they are long."""
    cut = 0
    if actual is not None and expected is not None:
        longest = max(len(actual), len(expected))
        if longest > SHOWN_CHARACTERS_MAX:
            pairs = zip(actual, expected, strict=False)
            common = next((i for i, (a, b) in enumerate(pairs) if a != b), longest)
            cut = max(0, min(common, len(actual), len(expected)) - _COMMON_SHOWN)
    where = f" from character {cut + 1} on" if cut else ""
    return f"the table has {_value(actual, cut)}, the source {_value(expected, cut)}{where}"


def _value(text: str | None, cut: int) -> str:
    return "no value" if text is None else shown(text[cut:])
