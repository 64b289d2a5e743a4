"""Serialize states as compressed Arrow IPC streams in a small frame.

Layout: magic, crc32 of the query's fingerprint (uint32, little-endian), number of tables and the
length of each (uint32), then the tables as IPC streams: the groups, and each set of counters.
"""

from __future__ import annotations

import struct
import zlib

import pyarrow as pa

from ringhaul.query.states import States

_MAGIC = b"rhq1"
_HEAD = struct.Struct("<4sIIQ")
_LENGTH = struct.Struct("<Q")


def pack(states: States, fingerprint: str) -> bytes:
    groups = states.keys + [column for part in states.columns for column in part]
    tables = [_pack_table(groups), *map(_pack_table, states.counters)]
    head = _HEAD.pack(_MAGIC, zlib.crc32(fingerprint.encode()), len(tables), states.groups_count)
    return b"".join([head, *(_LENGTH.pack(len(table)) for table in tables), *tables])


def unpack(data: bytes, fingerprint: str, like: States) -> States:
    """Read packed states. `like`: states of the same query, which give the types. Raises
    `ValueError`."""
    if len(data) < _HEAD.size or data[:4] != _MAGIC:
        raise ValueError("this is not a partial result")
    _, checksum, tables_count, groups_count = _HEAD.unpack_from(data)
    if checksum != zlib.crc32(fingerprint.encode()) or tables_count != 1 + len(like.counters):
        raise ValueError("this is a partial result of another query")
    at = _HEAD.size + tables_count * _LENGTH.size
    if len(data) < at:
        raise ValueError("this partial result is cut off")
    tables = []
    for i in range(tables_count):
        (length,) = _LENGTH.unpack_from(data, _HEAD.size + i * _LENGTH.size)
        if at + length > len(data):
            raise ValueError("this partial result is cut off")
        tables.append(_unpack_table(data[at : at + length]))
        at += length
    types = [array.type for array in like.keys + [c for part in like.columns for c in part]]
    if [array.type for array in tables[0]] != types:
        raise ValueError("this is a partial result of another version")
    arrays = iter(tables[0])
    keys = [next(arrays) for _ in like.keys]
    columns = [[next(arrays) for _ in part] for part in like.columns]
    return States(keys, columns, tables[1:], groups_count)


def _pack_table(arrays: list[pa.Array]) -> bytes:
    names = [str(i) for i in range(len(arrays))]
    batch = pa.RecordBatch.from_arrays(arrays, names)
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def _unpack_table(data: bytes) -> list[pa.Array]:
    with pa.ipc.open_stream(data) as reader:
        table = reader.read_all()
    table.validate(full=True)
    return [_one(column) for column in table.columns]


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
