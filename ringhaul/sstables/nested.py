"""Values of frozen types that contain others: in the order of a node, and as bytes that compare.

Two values compare by their parts in turn, and then by the number of parts: elements of lists, sets
and vectors, keys and values of maps, fields of tuples and user-defined types, of which a null is
the smallest. As bytes that compare such a value is

    0x01 | for each part 0x01 if it is null, else 0x02, the part as bytes that compare, 0x00

with 0x00 in a part as 0x00 0xff. A value without bytes stays empty, and is the smallest.

A node sorts the elements of sets and the entries of maps that it gets, and drops duplicates: it
keeps the first of equal elements, and of equal keys the first key and the last value. It does so
inside lists, sets and maps, not inside tuples, user-defined types and vectors, and takes values of
clustering columns in descending order as they come.
Classes: `compareCustom` of `ListType`, `MapType`, `TupleType`, `VectorType`; `fromSerialized` of
`Lists`, `Sets` and `Maps`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numba import types
from numpy.typing import NDArray

from ringhaul.cql.cells import Cells
from ringhaul.cql.compiled import INT32S, INT64S, UINT8S, Int, inlined, kernel
from ringhaul.cql.join import fixed_in_vector
from ringhaul.cql.types import CqlType, parse_type
from ringhaul.sstables.columns import plain
from ringhaul.sstables.comparable import DECIMAL_BYTES_MAX, comparable, has_order, structure
from ringhaul.sstables.marshal import fixed_width
from ringhaul.sstables.order import arrange

#: Data and offsets of values, see `comparable`.
Values = tuple[NDArray[np.uint8], NDArray[np.int32]]
#: How the parts of a value are laid out: after an i32 count; to its end; in one width; with vints.
_COUNTED, _FIELDS, _WIDE, _VINTS = range(4)
_NULL = -1


class _Parts(NamedTuple):
    """The parts of all values, in their order."""

    owners: NDArray[np.int64]  #: the value of each part
    which: NDArray[np.int64]  #: the place of its type in `CqlType.of`
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]  #: -1: null

    def chosen(self, places: NDArray[np.int64]) -> _Parts:
        """Return the parts at these places, in this order."""
        return _Parts(*(one[places] for one in self))


def comparable_values(text: str, data: NDArray[np.uint8], offsets: NDArray[np.int32]) -> Values:
    """Return values of a type as bytes that compare: see `comparable`. `text`: see `structure`."""
    return _comparable(parse_type(text), data, offsets)


def in_order(
    path_type: str, paths: pa.BinaryArray, owners: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Return elements by owner and path, and for each place 0 if it repeats the path before it.

    `path_type`: see `comparable_values`. `owners`: ascending.
    """
    total = len(owners)
    data, ends = comparable_values(path_type, *plain(paths))
    order, begins = np.arange(total), np.zeros(total, np.uint8)
    none = np.zeros(0, np.uint8)
    arrange(
        order, owners, none, np.zeros(total + 1, np.int32), data, ends.reshape(1, -1),
        np.zeros(1, np.int64), np.zeros(1, np.uint8), begins, np.zeros(2, np.int64),
    )  # fmt: skip
    return order, begins


def in_stored_order(text: str, cells: Cells) -> Cells:
    """Return values with sets and maps as a node stores them. `text`: see `structure`."""
    data, offsets = plain(cells.values)
    found_data, found_offsets = _stored(parse_type(text), data, offsets)
    if found_data is data:
        return cells
    lengths = np.diff(found_offsets).astype(">i4")
    missing = cells.lengths < 0
    lengths[missing] = cells.lengths[missing]
    return Cells(None, lengths, _binary(found_data, found_offsets))


def too_long(text: str, cells: Cells) -> NDArray[np.bool_]:
    """Return which values hold a decimal that takes too long to sort."""
    found = np.zeros(len(cells), np.bool_)
    if "decimal" in text and len(cells) and int(cells.lengths.max()) > DECIMAL_BYTES_MAX:
        found[_long_decimals(parse_type(text), *plain(cells.values))] = True
    return found


def _long_decimals(
    kind: CqlType, data: NDArray[np.uint8], offsets: NDArray[np.int32]
) -> NDArray[np.int64]:
    if kind.scalar:
        is_long = (np.diff(offsets) > DECIMAL_BYTES_MAX) & (kind.name == "decimal")
        return np.flatnonzero(is_long)
    parts = _split(kind, data, offsets)
    found = []
    for place, of in enumerate(kind.of):
        chosen = _of_type(parts, place)
        inner = _long_decimals(of, *_gathered(data, parts, chosen))
        found.append(parts.owners[chosen[inner]])
    return np.concatenate(found)


def _comparable(kind: CqlType, data: NDArray[np.uint8], offsets: NDArray[np.int32]) -> Values:
    if kind.scalar:
        return comparable(kind.name, data, offsets)
    parts = _split(kind, data, offsets)
    pool, found = _replaced(kind, data, parts, {place: True for place in range(len(kind.of))})
    given = np.diff(offsets) > 0
    out = np.empty(int(given.sum() + (2 * np.maximum(found.sizes, 0) + 2).sum()), np.uint8)
    ends = np.zeros(len(offsets), np.int32)
    size = put_comparable(pool, found.owners, found.starts, found.sizes, given, out, ends)
    return out[:size], ends


def _stored(kind: CqlType, data: NDArray[np.uint8], offsets: NDArray[np.int32]) -> Values:
    """Return values as a node stores them: the arguments themselves if nothing changes."""
    if not has_order(kind):
        return data, offsets
    parts = _split(kind, data, offsets)
    inner = {place: False for place, of in enumerate(kind.of) if has_order(of)}
    pool, parts = _replaced(kind, data, parts, inner)
    changed = len(pool) > len(data)
    if kind.name != "list":
        keys = np.flatnonzero(parts.which == 0)
        paths = gathered(pool, parts.starts[keys], parts.sizes[keys])
        order, begins = in_order(structure(kind.of[0]), paths, parts.owners[keys])
        firsts, lasts = order[begins != 0], order[np.append(begins[1:] != 0, True)[: len(order)]]
        if not np.array_equal(firsts, np.arange(len(keys))):
            changed = True
            places = keys[firsts]
            if kind.name == "map":  # a value follows its key
                places = np.stack([keys[firsts], keys[lasts] + 1], axis=1).reshape(-1)
            parts = parts.chosen(places)
    if not changed:
        return data, offsets
    given = np.diff(offsets) > 0
    out = np.empty(int(4 * given.sum() + (parts.sizes + 4).sum()), np.uint8)
    ends = np.zeros(len(offsets), np.int32)
    put_counted(pool, parts.owners, parts.starts, parts.sizes, len(kind.of), given, out, ends)
    return out, ends


def _replaced(
    kind: CqlType, data: NDArray[np.uint8], parts: _Parts, places: dict[int, bool]
) -> tuple[NDArray[np.uint8], _Parts]:
    """Return `data` with converted parts after it, and where each part is now.

    `places`: index in `kind.of` of a type whose parts are converted -> whether to bytes that
    compare, or to what a node stores. If no part changes, returns `data` itself.
    """
    pieces, base = [data], len(data)
    starts, sizes = parts.starts.copy(), parts.sizes.copy()
    for place, compares in places.items():
        chosen = _of_type(parts, place)
        before = _gathered(data, parts, chosen)
        found, ends = (_comparable if compares else _stored)(kind.of[place], *before)
        if found is before[0] and not compares:
            continue
        starts[chosen], sizes[chosen] = base + ends[:-1].astype(np.int64), np.diff(ends)
        pieces.append(found)
        base += len(found)
    pool = np.concatenate(pieces) if len(pieces) > 1 else data
    return pool, parts._replace(starts=starts, sizes=sizes)


def _of_type(parts: _Parts, place: int) -> NDArray[np.int64]:
    return np.flatnonzero((parts.which == place) & (parts.sizes >= 0))


def _gathered(data: NDArray[np.uint8], parts: _Parts, chosen: NDArray[np.int64]) -> Values:
    return plain(gathered(data, parts.starts[chosen], parts.sizes[chosen]))


def gathered(
    data: NDArray[np.uint8], starts: NDArray[np.int64], sizes: NDArray[np.int64]
) -> pa.BinaryArray:
    """Return pieces of `data` as values."""
    offsets = np.zeros(len(starts) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    out = np.empty(int(offsets[-1]), np.uint8)
    gather(data, starts, offsets, out)
    return pa.BinaryArray.from_buffers(
        pa.binary(),
        len(starts),
        [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(out)],
    )


def _split(kind: CqlType, data: NDArray[np.uint8], offsets: NDArray[np.int32]) -> _Parts:
    form, each = _COUNTED, len(kind.of)
    if kind.name == "tuple":
        form = _FIELDS
    elif kind.name == "vector":
        form, each = _VINTS, kind.size
        if fixed_in_vector(kind.of[0]):
            form = _WIDE
    width = fixed_width(kind.of[0]) if form == _WIDE else 0
    none = np.zeros(0, np.int64)
    count = split_parts(data, offsets, form, each, width, none, none, none, none)
    parts = _Parts(*(np.zeros(count, np.int64) for _ in _Parts._fields))
    split_parts(data, offsets, form, each, width, *parts)
    return parts


def _binary(data: NDArray[np.uint8], offsets: NDArray[np.int32]) -> pa.BinaryArray:
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.BinaryArray.from_buffers(pa.binary(), len(offsets) - 1, buffers)


@inlined
def _number(data: Int, at: Int) -> Int:
    """Return an i32."""
    found = (
        np.int64(data[at]) << 24
        | np.int64(data[at + 1]) << 16
        | np.int64(data[at + 2]) << 8
        | np.int64(data[at + 3])
    )
    return found - 2**32 if found >= 2**31 else found


@inlined
def _put_number(out: Int, at: Int, value: Int) -> Int:
    for k in range(4):
        out[at + k] = np.uint8(value >> (24 - 8 * k) & 0xFF)
    return at + 4


@kernel(types.void(UINT8S, INT64S, INT64S, UINT8S))
def gather(data: Int, starts: Int, offsets: Int, out: Int) -> None:
    """Copy piece i from `starts[i]` to `offsets[i]`, up to `offsets[i + 1]`."""
    for i in range(len(starts)):
        for k in range(offsets[i + 1] - offsets[i]):
            out[offsets[i] + k] = data[starts[i] + k]


@kernel(
    types.int64(
        UINT8S, INT32S, types.int64, types.int64, types.int64, INT64S, INT64S, INT64S, INT64S
    )
)
def split_parts(
    data: Int, offsets: Int, form: Int, each: Int, width: Int,
    owners: Int, which: Int, starts: Int, sizes: Int,
) -> Int:  # fmt: skip
    """Set where each part of each value is, unless the arrays are empty; return the parts' number.

    `form`: how parts are laid out. `each`: parts of an element or entry, or of a vector. `width`:
    bytes of a part, for vectors that store no lengths.
    """
    n = 0
    store = len(owners) > 0
    for row in range(len(offsets) - 1):
        at: Int = np.int64(offsets[row])
        end: Int = np.int64(offsets[row + 1])
        if at == end:
            continue
        left: Int = np.int64(each)
        if form == 0:
            left = each * _number(data, at)
            at += 4
        elif form == 1:
            left = end - at  # at least one byte a field
        place = 0
        while place < left and at < end:
            size: Int = np.int64(width)
            if form <= 1:
                size = _number(data, at)
                at += 4
            elif form == 3:
                first = np.int64(data[at])
                extra = 0
                while extra < 8 and first & (0x80 >> extra):
                    extra += 1
                size = first & (0xFF >> extra) if extra < 8 else 0
                for k in range(extra):
                    size = size << 8 | np.int64(data[at + 1 + k])
                at += 1 + extra
            if store:
                owners[n] = row
                which[n] = place if form == 1 else (place % each if form == 0 else 0)
                starts[n], sizes[n] = at, max(size, -1)
            at += max(size, 0)
            n += 1
            place += 1
    return n


@kernel(types.int64(UINT8S, INT64S, INT64S, INT64S, types.boolean[::1], UINT8S, INT32S))
def put_comparable(
    pool: Int, owners: Int, starts: Int, sizes: Int, given: Int, out: Int, ends: Int
) -> Int:
    """Write values as bytes that compare; return their bytes. `given`: whether a value has bytes.

    `out` has room for a byte for each value with bytes, and for each part two and twice its bytes.
    """
    at = n = np.int64(0)
    for row in range(len(given)):
        if given[row]:
            out[at] = 1
            at += 1
        while n < len(owners) and owners[n] == row:
            out[at] = 1 if sizes[n] < 0 else 2
            at += 1
            for k in range(max(sizes[n], 0)):
                byte = pool[starts[n] + k]
                out[at] = byte
                at += 1
                if byte == 0:
                    out[at] = 0xFF
                    at += 1
            if sizes[n] >= 0:
                out[at] = 0
                at += 1
            n += 1
        ends[row + 1] = at
    return at


@kernel(types.void(UINT8S, INT64S, INT64S, INT64S, types.int64, types.boolean[::1], UINT8S, INT32S))
def put_counted(
    pool: Int, owners: Int, starts: Int, sizes: Int, each: Int, given: Int, out: Int, ends: Int
) -> None:
    """Write lists, sets or maps of the wire, of `each` parts an element; none has a null."""
    at = n = np.int64(0)
    for row in range(len(given)):
        last = n
        while last < len(owners) and owners[last] == row:
            last += 1
        if given[row]:
            at = _put_number(out, at, (last - n) // each)
        while n < last:
            at = _put_number(out, at, sizes[n])
            for k in range(sizes[n]):
                out[at + k] = pool[starts[n] + k]
            at += sizes[n]
            n += 1
        ends[row + 1] = at
