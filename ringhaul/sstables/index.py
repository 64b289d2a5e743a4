"""Index.db: for each partition its key and its position in Data.db.

`u16 length, key | vint position | vint 0`. A partition of more than one block has, in place of the
0, the length of `vint header length | not deleted | vint blocks | blocks | i32 offsets`. A
block is `first clustering | last clustering | vint start | signed vint (bytes - 64 Ki) | 0`, and a
clustering is a byte 4 and what stands in its row. Header length and start count from the start of
the partition, the offsets from the first block. `version.py` says what "not deleted" is.
Classes: `BigTableWriter.IndexWriter`, `RowIndexEntry`, `IndexInfo.Serializer`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from ringhaul.cql.compiled import INT32S, INT64S, UINT8S, Int, kernel
from ringhaul.sstables.data import BLOCK_BYTES
from ringhaul.sstables.vints import signed_vint, unsigned_vint, with_vint_length

Array = NDArray[Any]

_CLUSTERING = b"\x04"
_NO_OPEN_DELETION = b"\x00"


class Index(NamedTuple):
    """The file, and where the entry of each partition begins (one place more: the end)."""

    data: NDArray[np.uint8]
    places: NDArray[np.int64]


def index_of(
    keys: NDArray[np.uint8],
    offsets: Array,
    positions: Array,
    blocks: Array,
    data: Array,
    static_bytes: Array,
    not_deleted: bytes,
) -> Index:
    """Return the index of partitions.

    `keys`: keys of the partitions in order, key i from `offsets[i]`. `positions`: their places in
    Data.db. `blocks`: see `encode_data`. `data`: the bytes that it wrote. `static_bytes`: bytes of
    each partition's static row. `not_deleted`: see `SSTableVersion`.
    """
    sizes = np.diff(offsets).astype(np.int64)
    partitions = len(sizes)
    position_bytes = _vint_bytes(positions[:partitions])
    entry_bytes = 2 + sizes + position_bytes + 1
    header_bytes = 2 + sizes + len(not_deleted) + static_bytes
    wide = dict(_wide_entries(blocks, header_bytes, data, not_deleted))
    for partition, entry in wide.items():
        entry_bytes[partition] += len(entry) - 1
    places = np.concatenate([np.zeros(1, np.int64), np.cumsum(entry_bytes)])
    out = np.zeros(int(places[-1]), np.uint8)
    _put_entries(out, places, keys, offsets, positions, position_bytes)
    for partition, entry in wide.items():
        end = int(places[partition + 1])
        out[end - len(entry) : end] = np.frombuffer(entry, np.uint8)
    return Index(out, places)


def _wide_entries(
    blocks: Array, header_bytes: Array, data: Array, not_deleted: bytes
) -> Iterator[tuple[int, bytes]]:
    """Yield partitions of several blocks, with what follows their position.

    `header_bytes`: bytes of each partition's header, with its static row.
    """
    for partition, group in groupby(blocks.tolist(), itemgetter(0)):
        infos, offsets = b"", []
        for _, first_at, first_bytes, last_at, last_bytes, start, size in group:
            offsets.append(len(infos))
            infos += _CLUSTERING + data[first_at : first_at + first_bytes].tobytes()
            infos += _CLUSTERING + data[last_at : last_at + last_bytes].tobytes()
            infos += unsigned_vint(start) + signed_vint(size - BLOCK_BYTES) + _NO_OPEN_DELETION
        header = unsigned_vint(int(header_bytes[partition])) + not_deleted
        table = np.array(offsets, ">i4").tobytes()
        yield partition, with_vint_length(header + unsigned_vint(len(offsets)) + infos + table)


def _vint_bytes(values: Array) -> NDArray[np.int64]:
    """Return the bytes of each unsigned vint; values are below 2^63."""
    found = np.ones(len(values), np.int64)
    for bits in range(7, 63, 7):
        found += values >= (1 << bits)
    return found


@kernel(types.void(UINT8S, INT64S, UINT8S, INT32S, INT64S, INT64S))
def _put_entries(
    out: Int, places: Int, keys: Int, offsets: Int, positions: Int, position_bytes: Int
) -> None:
    """Write the key and the position of each partition at its place.

    `position_bytes`: bytes of each position as a vint, 1 to 8. An entry has 2 bytes, the key, the
    vint and at least one more byte, which stays 0: so the vint ends before `places[i + 1]`.
    """
    for i in range(len(position_bytes)):
        at, size = places[i], offsets[i + 1] - offsets[i]
        out[at], out[at + 1] = np.uint8(size >> 8), np.uint8(size & 0xFF)
        at += 2
        for k in range(size):
            out[at + k] = keys[offsets[i] + k]
        at += size
        extra = position_bytes[i] - 1
        for k in range(extra + 1):
            out[at + k] = np.uint8((positions[i] >> (8 * (extra - k))) & 0xFF)
        out[at] |= np.uint8((0xFF00 >> extra) & 0xFF)
