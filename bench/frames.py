"""Prepared frames: of a whole file with ringhaul's encoder, or of keys."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from cassandra import ConsistencyLevel
from cassandra.cluster import Session

from bench.replay import EXECUTE, VERSION
from ringhaul.cluster.schema import TableSchema
from ringhaul.cql.batches import batch_frames
from ringhaul.cql.text_format import TextFormat
from ringhaul.cql.tokens import murmur3_tokens
from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.header import read_header
from ringhaul.formats.split import read_blocks
from ringhaul.load.statement import insert_statement
from ringhaul.records.job import LoadJob, LoadSource
from ringhaul.records.rows import RowEncoder
from ringhaul.sources.files import open_whole
from ringhaul.sources.find import find_sources

_HEADER = np.dtype(
    [("version", "u1"), ("flags", "u1"), ("stream", ">i2"), ("opcode", "u1"), ("length", ">i4")]
)
_VALUES, _SKIP_METADATA = 0x01, 0x02


class Bound(NamedTuple):
    """The rows of a file as values of a prepared statement."""

    query_id: bytes
    values_count: int
    parts: list[pa.BinaryArray]

    @property
    def count(self) -> int:  # type: ignore[override]
        return sum(len(part) for part in self.parts)


def bound_rows(
    session: Session, schema: TableSchema, path: Path, *, by_token: bool = False
) -> Bound:
    """Bind all records of a file, which must be valid; `by_token`: sort each block by token."""
    dialect = CsvDialect()
    file = find_sources([str(path)], dialect)[0]
    with open_whole(file, dialect) as stream:
        fields, start = read_header(stream, dialect)
    source = LoadSource(
        file=file, fields=tuple(fields), mapping=tuple((name, name) for name in fields)
    )
    job = LoadJob(
        table=schema,
        cluster_name="",
        sources=(source,),
        dialect=dialect,
        text=TextFormat(),
        base_us=1_700_000_000_000_000,
        unit_bytes=1 << 40,
    )
    prepared = session.prepare(insert_statement(schema, fields, 0))
    encoder = RowEncoder(job, source)
    parts = []
    with open_whole(file, dialect) as stream:
        stream.read(start.offset_bytes)
        for block in read_blocks(stream, dialect, block_bytes=8 << 20, start=start):
            (rows,), rejects, _ = encoder.encode(block)
            assert not rejects
            joined = rows.joined()
            if by_token:
                joined = joined.take(pa.array(np.argsort(murmur3_tokens(rows.keys))))
            parts.append(joined)
    # The write timestamp is a separate value.
    return Bound(prepared.query_id, len(fields) + 1, parts)


def frames_of(bound: Bound, *, streams: int) -> pa.BinaryArray:
    """Return one frame for each row. Stream ids repeat 0..streams-1: answers are only counted."""
    const = _const(bound.query_id, _VALUES, bound.values_count)
    return pa.concat_arrays([_frames(part, const, streams) for part in bound.parts])


def batches_of(bound: Bound, rows: int) -> pa.BinaryArray:
    """Return one frame for each `rows` rows, as ringhaul makes them; all on stream 0."""
    made = []
    for part in bound.parts:
        cuts = np.append(np.arange(0, len(part), rows), len(part))
        frames = batch_frames(
            part, cuts, bound.query_id, ConsistencyLevel.LOCAL_QUORUM, bound.values_count
        )
        buffers = [None, pa.py_buffer(frames.offsets), pa.py_buffer(frames.buffer)]
        made.append(pa.BinaryArray.from_buffers(pa.binary(), len(frames), buffers))
    return pa.concat_arrays(made)


def select_frames(query_id: bytes, values: Sequence[bytes], *, streams: int) -> pa.BinaryArray:
    """Return one frame of a SELECT with one marker for each value."""
    const = _const(query_id, _VALUES | _SKIP_METADATA, 1)
    return _frames(pa.array([_sized(value) for value in values], pa.binary()), const, streams)


def list_value(elements: Sequence[bytes]) -> bytes:
    """Encode a list, the value of a marker after IN."""
    return struct.pack(">i", len(elements)) + b"".join(map(_sized, elements))


def _sized(value: bytes) -> bytes:
    return struct.pack(">i", len(value)) + value


def _const(query_id: bytes, flags: int, values_count: int) -> bytes:
    """Return the bytes between header and values, equal in all frames of a statement."""
    head = struct.pack(">H", len(query_id)) + query_id
    return head + struct.pack(">HBH", ConsistencyLevel.LOCAL_QUORUM, flags, values_count)


def _frames(rows: pa.BinaryArray, const: bytes, streams: int) -> pa.BinaryArray:
    bodies = pc.binary_join_element_wise(pa.scalar(const), rows, pa.scalar(b""))
    headers = np.zeros(len(bodies), _HEADER)
    headers["version"], headers["opcode"] = VERSION, EXECUTE
    headers["stream"] = np.arange(len(bodies)) % streams
    headers["length"] = pc.binary_length(bodies).to_numpy()
    head = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(_HEADER.itemsize), len(bodies), [None, pa.py_buffer(headers)]
    )
    return pc.binary_join_element_wise(head.cast(pa.binary()), bodies, pa.scalar(b""))
