"""Collections that are not frozen: their elements as cells, in the order of a node.

A value of the wire is `i32 count | elements`, each an element of a set or list, or a key and a
value of a map, with an i32 length before each. In an SSTable each element is a cell with a *path*:
the element of a set, the key of a map, a timeuuid of a list. A field of a user-defined type has its
number (u16); such a value of the wire has no count, and a length of -1 for a null. Here it becomes
`i32 length, path | [i32 length, value]` for each cell, sorted by path, each path once.
Classes: `SetType`, `MapType`, `ListType`, `UserType`, `CollectionType.CellPathSerializer`,
`Lists.Appender`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import types
from numpy.typing import NDArray

from ringhaul.cql.cells import UNSET_LENGTH, Cells, fixed_binary
from ringhaul.cql.compiled import INT32S, INT64S, UINT8S, Int, inlined, kernel
from ringhaul.sstables.columns import plain
from ringhaul.sstables.layout import Column
from ringhaul.sstables.nested import gathered, in_order

#: Time between 1582-10-15 and the epoch, in units of 100 ns.
_UUID_EPOCH = 0x01B21DD213814000
#: The last 8 bytes of paths of lists: variant and clock sequence, and a node id that no network
#: card has.
_NODE = b"\x80\x00\x01rhaul"


def as_cells(column: Column, cells: Cells, written_s: int) -> tuple[Cells, int]:
    """Return the values of a column as cells, and the number of cells.

    `written_s`: the time in paths of lists, so that rows that are built again have equal paths. A
    null has no cells: like an empty collection it only deletes what was there.
    """
    data, offsets = plain(cells.values)
    if column.cells == "udt":
        return _fields(data, offsets, cells.lengths)
    lengths = cells.lengths.astype(np.int64)
    counts = np.zeros(len(lengths), np.int64)
    count_elements(data, offsets, counts)
    total = int(counts.sum())
    owners = np.repeat(np.arange(len(lengths)), counts)
    starts, path_sizes, sizes = (np.zeros(total, np.int64) for _ in range(3))
    split_elements(data, offsets, 2 if column.cells == "map" else 1, starts, path_sizes, sizes)
    if column.cells == "list":
        found = _with_paths(gathered(data, starts, sizes), counts, written_s)
    else:
        paths = gathered(data, starts + 4, path_sizes)
        order, begins = in_order(column.path_type, paths, owners)
        kept = order[np.append(begins[1:] != 0, True)[:total]]  # the last cell of each path
        owners = owners[kept]
        found = gathered(data, starts[kept], sizes[kept])
    found_data, found_offsets = plain(found)
    ends = np.searchsorted(owners, np.arange(len(lengths) + 1))
    row_offsets = found_offsets[ends]
    new_lengths = np.diff(row_offsets).astype(">i4")
    new_lengths[lengths == UNSET_LENGTH] = UNSET_LENGTH
    values = pa.BinaryArray.from_buffers(
        pa.binary(),
        len(lengths),
        [None, pa.py_buffer(row_offsets.astype(np.int32)), pa.py_buffer(found_data)],
    )
    return Cells(None, new_lengths, values), len(owners)


def _fields(
    data: NDArray[np.uint8], offsets: NDArray[np.int32], lengths: NDArray[np.int32]
) -> tuple[Cells, int]:
    """Return the fields of user-defined types as cells."""
    # A field takes at least 4 bytes, and 6 more as a cell.
    out = np.empty(len(data) // 4 * 6 + len(data), np.uint8)
    ends = np.zeros(len(offsets), np.int32)
    count = put_fields(data, offsets, out, ends)
    new_lengths = np.diff(ends).astype(">i4")
    new_lengths[lengths == UNSET_LENGTH] = UNSET_LENGTH
    values = pa.BinaryArray.from_buffers(
        pa.binary(), len(lengths), [None, pa.py_buffer(ends), pa.py_buffer(out)]
    )
    return Cells(None, new_lengths, values), int(count)


def _with_paths(
    elements: pa.BinaryArray, counts: NDArray[np.int64], written_s: int
) -> pa.BinaryArray:
    """Return the elements of lists, each with a timeuuid before it that grows within its list."""
    firsts = np.cumsum(counts) - counts
    places = np.arange(len(elements)) - np.repeat(firsts, counts)
    times = written_s * 10_000_000 + _UUID_EPOCH + places
    paths = np.zeros(
        len(elements),
        [("size", ">i4"), ("low", ">u4"), ("mid", ">u2"), ("high", ">u2"), ("node", "V8")],
    )
    paths["size"] = 16
    paths["low"] = times & 0xFFFFFFFF
    paths["mid"] = times >> 32 & 0xFFFF
    paths["high"] = times >> 48 | 0x1000
    paths["node"] = np.void(_NODE)
    return pc.binary_join_element_wise(fixed_binary(paths), elements, pa.scalar(b"", pa.binary()))


@inlined
def _number(data: Int, at: Int) -> Int:
    """Return an i32."""
    return (
        np.int64(data[at]) << 24
        | np.int64(data[at + 1]) << 16
        | np.int64(data[at + 2]) << 8
        | np.int64(data[at + 3])
    )


@kernel(types.void(UINT8S, INT32S, INT64S))
def count_elements(data: Int, offsets: Int, counts: Int) -> None:
    """Set the number of elements of each value, 0 for a missing value."""
    for row in range(len(counts)):
        if offsets[row + 1] - offsets[row] >= 4:
            counts[row] = _number(data, np.int64(offsets[row]))


@kernel(types.void(UINT8S, INT32S, types.int64, INT64S, INT64S, INT64S))
def split_elements(
    data: Int, offsets: Int, parts: Int, starts: Int, path_sizes: Int, sizes: Int
) -> None:
    """Set where each element begins, the bytes of its first part, and the bytes of all `parts` with
    their lengths. The arrays have one item for each element that `count_elements` counts."""
    n = 0
    for row in range(len(offsets) - 1):
        at = np.int64(offsets[row])
        if offsets[row + 1] - at < 4:
            continue
        count = _number(data, at)
        at += 4
        for _ in range(count):
            starts[n] = at
            path_sizes[n] = _number(data, at)
            for _ in range(parts):
                at += 4 + _number(data, at)
            sizes[n] = at - starts[n]
            n += 1


@kernel(types.int64(UINT8S, INT32S, UINT8S, INT32S))
def put_fields(data: Int, offsets: Int, out: Int, ends: Int) -> Int:
    """Write the fields of each value that are not null as cells to `out`; return their number.

    `out` has room for 6 bytes more for each field. `ends`: set to where each value ends, after a 0.
    """
    count = end = np.int64(0)
    for row in range(len(offsets) - 1):
        at = np.int64(offsets[row])
        field = 0
        while at + 4 <= offsets[row + 1]:
            size = _number(data, at)
            if size < 2**31:  # -1 is null
                out[end], out[end + 1], out[end + 2], out[end + 3] = 0, 0, 0, 2
                out[end + 4], out[end + 5] = np.uint8(field >> 8), np.uint8(field & 0xFF)
                for k in range(4 + size):
                    out[end + 6 + k] = data[at + k]
                end += 10 + size
                at += size
                count += 1
            at += 4
            field += 1
        ends[row + 1] = end
    return count
