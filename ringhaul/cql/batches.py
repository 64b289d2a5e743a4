"""BATCH frames of the CQL native protocol v4, many at a time. Pure: bytes in, bytes out.

The rows of a batch are entries of one prepared statement. Source: "CQL BINARY PROTOCOL v4", section
4.1.7: type, number of entries, the entries, consistency, flags; an entry is the statement's kind,
its id, the number of values and the values.
"""

from __future__ import annotations

import struct

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ringhaul.cql.frames import (
    HEADER_BYTES,
    HEADER_FIELDS,
    PROTOCOL_VERSION,
    Frames,
    Opcode,
    Reader,
    offsets_of,
)

_UNLOGGED = 1
_PREPARED = 1
_HEAD = np.dtype([*HEADER_FIELDS, ("length", ">i4"), ("type", "u1"), ("count", ">u2")])
_TAIL = struct.Struct(">HB")  #: consistency and flags


def entry_head(query_id: bytes, values_count: int) -> bytes:
    """Return the bytes before the values of each entry."""
    head = struct.pack(">BH", _PREPARED, len(query_id)) + query_id
    return head + struct.pack(">H", values_count)


def batch_frames(
    rows: pa.BinaryArray,
    cuts: NDArray[np.int64],
    query_id: bytes,
    consistency: int,
    values_count: int,
) -> Frames:
    """Build a frame for each batch, which is unlogged. The caller must set the stream ids.

    `rows` are bound values as `cells.join_rows` makes them, with `values_count` per row. Batch i
    holds rows[cuts[i]:cuts[i + 1]], at least one and at most 65,535; the cuts begin at 0 and end at
    len(rows).
    """
    entry = entry_head(query_id, values_count)
    counts = np.diff(cuts)
    heads = np.zeros(len(counts), _HEAD)
    heads["version"] = PROTOCOL_VERSION
    heads["opcode"] = Opcode.BATCH
    heads["type"] = _UNLOGGED
    heads["count"] = counts
    values_bytes = np.diff(offsets_of(rows)[cuts])
    heads["length"] = 3 + counts * len(entry) + values_bytes + _TAIL.size
    joined = pc.binary_join_element_wise(
        _at(cuts[:-1], heads.tobytes(), len(rows)),
        pa.scalar(entry, pa.binary()),
        rows,
        _at(cuts[1:] - 1, _TAIL.pack(consistency, 0) * len(counts), len(rows)),
        pa.scalar(b"", pa.binary()),
    )
    return Frames(np.frombuffer(joined.buffers()[2], np.uint8), offsets_of(joined)[cuts])


def _at(places: NDArray[np.int64], data: bytes, count: int) -> pa.BinaryArray:
    """Return `count` values: an equal share of `data` at each of `places`, empty elsewhere."""
    ends = np.zeros(count + 1, np.int32)
    ends[places + 1] = len(data) // len(places)
    np.cumsum(ends, out=ends)
    return pa.BinaryArray.from_buffers(
        pa.binary(), count, [None, pa.py_buffer(ends), pa.py_buffer(data)]
    )


def entries_of(frame: bytes) -> pa.BinaryArray:
    """Return the rows that a frame of `batch_frames` was built from."""
    reader = Reader(frame)
    reader.take(HEADER_BYTES + 1)
    rows = []
    for _ in range(reader.read_short()):
        reader.take(1)
        reader.take(reader.read_short())
        values_count = reader.read_short()
        begin = len(frame) - reader.left
        for _ in range(values_count):
            reader.read_bytes()
        rows.append(frame[begin : len(frame) - reader.left])
    return pa.array(rows, pa.binary())
