"""Data.db: the partitions in the order of their tokens, each with its rows in clustering order.

```text
partition   u16 length, key | not deleted | [static] | rows | 0x01
row         flags u8 | clustering | vint size | vint previous | liveness | [columns] | cells
static      flags u8 with 0x80 | 0x01 | vint size | vint 0 | [columns] | cells
clustering  for each 32 columns a vint with 2 bits a column (01: empty), then the values
liveness    vint write time | [vint TTL | vint expiry]
cell        flags u8 | [vint write time] | [vint deletion or expiry] | [vint TTL] | [path] | value
collection  vint write time - 1, vint now: what was there is deleted | vint cells | cells
path        vint length | bytes
value       [vint length] | bytes
```

`size` counts the bytes of the row after it, `previous` the bytes from the start of the row before,
or in the first row from the start of the partition. Times are differences to the minima in the
serialization header. A row that lacks columns has `columns`: a bitmap of the missing columns, or
from 64 columns on a list. A cell with its row's time stores none. `version.py` says what "not
deleted" is.
Classes: `UnfilteredSerializer`, `SortedTablePartitionWriter`, `ClusteringPrefix.Serializer`,
`Cell.Serializer`, `Columns.Serializer`, `Cells` (which of two cells counts).

Helpers are in this file because a cached kernel is renewed only with its own file.
"""

from __future__ import annotations

import numpy as np
from numba import types

from ringhaul.cql.compiled import INT32_TABLE, INT32S, INT64S, UINT8S, Int, inlined, kernel

#: `begins` of a row: it repeats the primary key before it, begins a row, or begins a partition.
REPEATS, ROW, PARTITION = 0, 1, 2
#: `missing` of a value: it exists, it is not written, it is deleted.
THERE, UNSET, NULL = 0, 1, 2
#: Rows of a partition are indexed in blocks of this many bytes (`column_index_size`).
BLOCK_BYTES = 64 * 1024
#: Fields of a block in `blocks`: number of its partition, place and length in Data.db of its first
#: and of its last clustering, start in the partition, bytes.
BLOCK_FIELDS = 7

_HAS_TIME, _HAS_TTL, _HAS_ALL, _HAS_COLLECTIONS = 0x04, 0x08, 0x20, 0x40
#: `kinds` of a column of sets; 0: one cell; 2: cells with path and value (see `elements.py`).
_SET = 1
#: Flags of a static row, and its second byte of flags.
_EXTENDED, _STATIC = 0x80, 0x01
_DELETED, _EXPIRING, _EMPTY, _ROW_TIME, _ROW_TTL = 0x01, 0x02, 0x04, 0x08, 0x10
#: Room for the two sizes before a row's body.
_SIZES = 18


@inlined
def _vint_bytes(value: Int) -> Int:
    size = 1
    while size < 9 and value >> np.uint64(7 * size):
        size += 1
    return size


@inlined
def _put_vint(out: Int, at: Int, value: Int) -> Int:
    """Write a uint64 as a vint; return where it ends."""
    if value < np.uint64(128):
        out[at] = np.uint8(value)
        return at + 1
    extra = _vint_bytes(value) - 1
    ones = (0xFF00 >> extra) & 0xFF
    if extra < 8:
        ones |= np.int64(value >> np.uint64(8 * extra))
    out[at] = np.uint8(ones)
    for k in range(extra):
        shift = np.uint64(8 * (extra - 1 - k))
        out[at + 1 + k] = np.uint8((value >> shift) & np.uint64(0xFF))
    return at + 1 + extra


@inlined
def _put_bytes(out: Int, at: Int, data: Int, start: Int, end: Int) -> Int:
    for k in range(end - start):
        out[at + k] = data[start + k]
    return at + end - start


@inlined
def _put_clustering(
    out: Int, at: Int, row: Int, pool: Int, offsets: Int, bases: Int, prefixed: Int
) -> Int:
    columns = len(bases)
    for first in range(0, columns, 32):
        last = min(columns, first + 32)
        header = np.uint64(0)
        for c in range(first, last):
            if offsets[c, row] == offsets[c, row + 1]:
                header |= np.uint64(1) << np.uint64(2 * (c - first))
        at = _put_vint(out, at, header)
        for c in range(first, last):
            size = offsets[c, row + 1] - offsets[c, row]
            if size == 0:
                continue
            if prefixed[c]:
                at = _put_vint(out, at, np.uint64(size))
            start = bases[c] + offsets[c, row]
            at = _put_bytes(out, at, pool, start, start + size)
    return at


@inlined
def _is_newer(
    first: Int, second: Int, c: Int, pool: Int, offsets: Int, bases: Int, missing: Int, times: Int,
    ttls: Int,
) -> Int:  # fmt: skip
    """Return whether the second row's cell of a column counts rather than the first row's."""
    if times[first] != times[second]:
        return times[second] > times[first]
    first_null, second_null = missing[c, first] == NULL, missing[c, second] == NULL
    if first_null != second_null:  # a deletion counts rather than any value
        return second_null
    if first_null:
        return False
    # The value that expires later counts, and an expiring value rather than a lasting one: the
    # TTLs of a job all begin in the same second.
    if ttls[first] != ttls[second]:
        return ttls[second] > ttls[first]
    first_at, second_at = bases[c] + offsets[c, first], bases[c] + offsets[c, second]
    first_size = offsets[c, first + 1] - offsets[c, first]
    second_size = offsets[c, second + 1] - offsets[c, second]
    for k in range(min(first_size, second_size)):
        if pool[first_at + k] != pool[second_at + k]:
            return pool[second_at + k] > pool[first_at + k]
    return second_size > first_size


@inlined
def _put_missing(out: Int, at: Int, sources: Int, present: Int) -> Int:
    """Write which columns a row lacks."""
    columns = len(sources)
    if columns < 64:
        absent = np.uint64(0)
        for c in range(columns):
            if sources[c] < 0:
                absent |= np.uint64(1) << np.uint64(c)
        return _put_vint(out, at, absent)
    at = _put_vint(out, at, np.uint64(columns - present))
    list_present = present < columns // 2
    for c in range(columns):
        if (sources[c] >= 0) == list_present:
            at = _put_vint(out, at, np.uint64(c))
    return at


@inlined
def _put_cell(
    out: Int, at: Int, row: Int, c: Int, live: Int, pool: Int, offsets: Int, bases: Int,
    prefixed: Int, missing: Int, times: Int, ttls: Int, minima: Int, now_s: Int,
) -> Int:  # fmt: skip
    """Write the cell of a column from `row`, in a row with the times of row `live`; -1: none."""
    deleted = missing[c, row] == NULL
    size = 0 if deleted else offsets[c, row + 1] - offsets[c, row]
    expiring = not deleted and ttls[row] > 0
    of_time = live >= 0 and times[row] == times[live]
    of_row = live >= 0 and expiring and ttls[row] == ttls[live]
    flags = 0
    if deleted:
        flags |= _DELETED
    if expiring:
        flags |= _EXPIRING
    if size == 0:
        flags |= _EMPTY
    if of_time:
        flags |= _ROW_TIME
    if of_row:
        flags |= _ROW_TTL
    out[at] = np.uint8(flags)
    at += 1
    if not of_time:
        at = _put_vint(out, at, np.uint64(times[row] - minima[0]))
    if deleted:
        at = _put_vint(out, at, np.uint64(now_s - minima[2]))
    if expiring and not of_row:
        at = _put_vint(out, at, np.uint64(now_s + ttls[row] - minima[2]))
        at = _put_vint(out, at, np.uint64(ttls[row] - minima[1]))
    if size:
        if prefixed[c]:
            at = _put_vint(out, at, np.uint64(size))
        start = bases[c] + offsets[c, row]
        at = _put_bytes(out, at, pool, start, start + size)
    return at


@inlined
def _size_at(pool: Int, at: Int) -> Int:
    """Return an i32."""
    return (
        np.int64(pool[at]) << 24
        | np.int64(pool[at + 1]) << 16
        | np.int64(pool[at + 2]) << 8
        | np.int64(pool[at + 3])
    )


@inlined
def _elements_count(kind: Int, pool: Int, at: Int, end: Int) -> Int:
    count = 0
    while at < end:
        at += 4 + _size_at(pool, at)
        if kind != _SET:
            at += 4 + _size_at(pool, at)
        count += 1
    return count


@inlined
def _put_elements(
    out: Int, at: Int, row: Int, c: Int, kind: Int, live: Int, pool: Int, offsets: Int, bases: Int,
    times: Int, ttls: Int, minima: Int, now_s: Int,
) -> Int:  # fmt: skip
    """Write a collection of `row`, into the row that has the times of row `live`."""
    place, end = bases[c] + offsets[c, row], bases[c] + offsets[c, row + 1]
    at = _put_vint(out, at, np.uint64(times[row] - 1 - minima[0]))
    at = _put_vint(out, at, np.uint64(now_s - minima[2]))
    at = _put_vint(out, at, np.uint64(_elements_count(kind, pool, place, end)))
    of_time = live >= 0 and times[row] == times[live]
    of_row = live >= 0 and ttls[row] > 0 and ttls[row] == ttls[live]
    while place < end:
        path_size = _size_at(pool, place)
        path_at = place + 4
        place = path_at + path_size
        size = np.int64(0)
        value_at = place
        if kind != _SET:
            size = _size_at(pool, place)
            value_at = place + 4
            place = value_at + size
        flags = 0
        if ttls[row] > 0:
            flags |= _EXPIRING
        if size == 0:
            flags |= _EMPTY
        if of_time:
            flags |= _ROW_TIME
        if of_row:
            flags |= _ROW_TTL
        out[at] = np.uint8(flags)
        at += 1
        if not of_time:
            at = _put_vint(out, at, np.uint64(times[row] - minima[0]))
        if ttls[row] > 0 and not of_row:
            at = _put_vint(out, at, np.uint64(now_s + ttls[row] - minima[2]))
            at = _put_vint(out, at, np.uint64(ttls[row] - minima[1]))
        at = _put_vint(out, at, np.uint64(path_size))
        at = _put_bytes(out, at, pool, path_at, path_at + path_size)
        if size:
            at = _put_vint(out, at, np.uint64(size))
            at = _put_bytes(out, at, pool, value_at, value_at + size)
    return at


@inlined
def _differs(
    first: Int, second: Int, c: Int, pool: Int, offsets: Int, bases: Int, times: Int, ttls: Int
) -> Int:
    """Return whether two rows have collections of one time that a node would unite."""
    if times[first] != times[second]:
        return False
    size = offsets[c, first + 1] - offsets[c, first]
    if size != offsets[c, second + 1] - offsets[c, second] or ttls[first] != ttls[second]:
        return True
    first_at, second_at = bases[c] + offsets[c, first], bases[c] + offsets[c, second]
    for k in range(size):  # noqa: SIM110 - numba knows no generators here
        if pool[first_at + k] != pool[second_at + k]:
            return True
    return False


_TABLE8 = types.uint8[:, ::1]


@kernel(
    types.UniTuple(types.int64, 2)(  # type: ignore[no-untyped-call]
        UINT8S, UINT8S, UINT8S, INT32S, UINT8S, INT32_TABLE, INT64S, UINT8S, UINT8S, INT32_TABLE,
        INT64S,
        UINT8S, _TABLE8, UINT8S, INT64S, INT64S, INT64S, types.int64, INT64S, INT64S,
        types.int64[:, ::1], types.boolean, UINT8S, INT64S, UINT8S,
    )
)  # fmt: skip
def encode_data(
    out: Int, begins: Int, keys: Int, key_offsets: Int, ck_pool: Int, ck_offsets: Int,
    ck_bases: Int, ck_prefixed: Int, pool: Int, offsets: Int, bases: Int, prefixed: Int,
    missing: Int, kinds: Int, times: Int, ttls: Int, minima: Int, now_s: Int, positions: Int,
    cells: Int, blocks: Int, is_static: Int, statics: Int, static_places: Int, not_deleted: Int,
) -> Int:  # fmt: skip
    """Write Data.db to `out` (`data_bytes_max` bytes); return its bytes and how many blocks it has.

    Returns the number of a row, as -1 - row, if its key is repeated at the same time with another
    value of a collection, which a node would unite.

    Rows are in the order of the file; rows of one primary key follow each other and are merged.
    `begins`, `times` (microseconds), `ttls` (seconds; 0: none): per row. Value r of column c is
    `pool[bases[c] + offsets[c, r]:bases[c] + offsets[c, r + 1]]`, with a length before it if
    `prefixed[c]`, and laid out as in `elements.py` if `kinds[c]` is 1 (sets) or 2 (maps or lists).
    Clustering columns (`ck_`) have this form, and so have the keys, as one column. `minima`: least
    write time, TTL, deletion time. `now_s`: when TTLs begin and nulls are deleted.

    Also writes `positions` (partitions + 1) and `cells` (partitions), and `blocks` of
    `BLOCK_FIELDS`, at most 2 + 2 for each `BLOCK_BYTES`, for partitions of more than one block.

    `is_static`: write only the static row of each partition, to which all its rows then belong.
    `statics`: these static rows, if the table has them, for partition p from `static_places[p]` on.
    `not_deleted`: see `SSTableVersion`, at most 12 bytes.
    """
    rows = len(begins)
    columns = len(bases)
    sources = np.empty(columns, np.int64)
    at = np.int64(0)
    partition = np.int64(-1)
    partition_at = previous_at = np.int64(0)
    blocks_count = first_block = np.int64(0)
    block_at = np.int64(-1)  # start of the open block; -1: none is open
    block_ck_at = block_ck_size = ck_at = ck_size = np.int64(0)
    i = np.int64(0)
    while i < rows:
        if begins[i] == PARTITION:
            if partition >= 0 and not is_static:
                out[at] = 1
                at += 1
            partition += 1
            positions[partition] = partition_at = previous_at = at
            cells[partition] = 0
            first_block = blocks_count
            block_at = np.int64(-1)
        if begins[i] == PARTITION and not is_static:
            size = key_offsets[i + 1] - key_offsets[i]
            out[at], out[at + 1] = np.uint8(size >> 8), np.uint8(size & 0xFF)
            at = _put_bytes(out, at + 2, keys, key_offsets[i], key_offsets[i + 1])
            at = _put_bytes(out, at, not_deleted, 0, len(not_deleted))
            if len(static_places):
                at = _put_bytes(
                    out, at, statics, static_places[partition], static_places[partition + 1]
                )
        end = i + 1
        while end < rows and begins[end] == REPEATS:
            end += 1
        live: Int = i
        for row in range(i + 1, end):
            if times[row] > times[live] or (times[row] == times[live] and ttls[row] > ttls[live]):
                live = row
        present = collections = 0
        for c in range(columns):
            sources[c] = -1
            for row in range(i, end):
                if missing[c, row] == UNSET:
                    continue
                if sources[c] < 0 or _is_newer(
                    sources[c], row, c, pool, offsets, bases, missing, times, ttls
                ):
                    sources[c] = row
            if sources[c] >= 0:
                present += 1
                if kinds[c]:
                    for row in range(i, end):
                        if missing[c, row] != UNSET and _differs(
                            sources[c], row, c, pool, offsets, bases, times, ttls
                        ):
                            return -1 - i, np.int64(0)
                    collections += 1
                    start = bases[c] + offsets[c, sources[c]]
                    end_at = bases[c] + offsets[c, sources[c] + 1]
                    cells[partition] += _elements_count(kinds[c], pool, start, end_at)
        cells[partition] += present - collections

        row_at = at
        flags = _EXTENDED if is_static else _HAS_TIME
        if ttls[live] > 0 and not is_static:
            flags |= _HAS_TTL
        if present == columns:
            flags |= _HAS_ALL
        if collections:
            flags |= _HAS_COLLECTIONS
        out[at] = np.uint8(flags)
        at += 1
        if is_static:
            out[at] = _STATIC
            at += 1
        ck_at = at
        if len(ck_bases) and not is_static:
            at = _put_clustering(out, at, i, ck_pool, ck_offsets, ck_bases, ck_prefixed)
        ck_size = at - ck_at
        # The body's size precedes it, so the body is written after the space for both sizes
        # and moved.
        body_at = at + _SIZES
        body_end = body_at
        if not is_static:
            body_end = _put_vint(out, body_at, np.uint64(times[live] - minima[0]))
        if ttls[live] > 0 and not is_static:
            body_end = _put_vint(out, body_end, np.uint64(ttls[live] - minima[1]))
            body_end = _put_vint(out, body_end, np.uint64(now_s + ttls[live] - minima[2]))
        if present < columns:
            body_end = _put_missing(out, body_end, sources, present)
        if is_static:
            live = -1
        for c in range(columns):
            if sources[c] >= 0 and kinds[c]:
                body_end = _put_elements(
                    out, body_end, sources[c], c, kinds[c], live, pool, offsets, bases, times, ttls,
                    minima, now_s,
                )  # fmt: skip
            elif sources[c] >= 0:
                body_end = _put_cell(
                    out, body_end, sources[c], c, live, pool, offsets, bases, prefixed, missing,
                    times, ttls, minima, now_s,
                )  # fmt: skip
        previous = np.uint64(row_at - previous_at)
        at = _put_vint(out, at, np.uint64(body_end - body_at + _vint_bytes(previous)))
        at = _put_vint(out, at, previous)
        at = _put_bytes(out, at, out, body_at, body_end)
        previous_at = row_at

        if block_at < 0:
            block_at, block_ck_at, block_ck_size = row_at - partition_at, ck_at, ck_size
        is_last = end == rows or begins[end] == PARTITION
        full = at - partition_at - block_at >= BLOCK_BYTES
        if (full or (is_last and blocks_count > first_block)) and not is_static:
            blocks[blocks_count, 0] = partition
            blocks[blocks_count, 1], blocks[blocks_count, 2] = block_ck_at, block_ck_size
            blocks[blocks_count, 3], blocks[blocks_count, 4] = ck_at, ck_size
            blocks[blocks_count, 5] = block_at
            # The last block has the partition's end, unless that came just after a full block.
            blocks[blocks_count, 6] = at - partition_at - block_at + (0 if full else 1)
            blocks_count += 1
            block_at = np.int64(-1)
        if is_last and blocks_count == first_block + 1:
            blocks_count = first_block  # a single block is not written
        i = end
    if partition >= 0 and not is_static:
        out[at] = 1
        at += 1
    positions[partition + 1] = at
    return at, blocks_count
