"""Small Parquet files: ordinary ones of many kinds, and ones that are encrypted or damaged."""

from __future__ import annotations

import base64
import datetime
import decimal
import io
import random
import struct
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe

ROWS = 40


def tables() -> list[pa.Table]:
    """Two tables that together have columns of most types."""
    count = range(ROWS)
    day = datetime.datetime(2024, 1, 1)
    return [
        pa.table(
            {
                "id": list(count),
                "v": [f"x{n % 5}" for n in count],
                "l": [[n] * (n % 3) for n in count],
                "m": [1.5 * n if n % 4 else None for n in count],
            }
        ),
        pa.table(
            {
                "ts": pa.array([day] * ROWS, pa.timestamp("us", "UTC")),
                "d": [decimal.Decimal("1.25")] * ROWS,
                "b": [b"ab"] * ROWS,
                "f": pa.array([1.5] * ROWS, pa.float32()),
                "mp": pa.array([[("a", 1)]] * ROWS, pa.map_(pa.string(), pa.int32())),
                "st": [{"x": 1, "y": "z"}] * ROWS,
                "bo": [True] * ROWS,
                "fx": pa.array([b"abcd"] * ROWS, pa.binary(4)),
                "dt": pa.array([1] * ROWS, pa.date32()),
            }
        ),
    ]


#: Ways of writing such a table.
WRITING: list[dict[str, Any]] = [
    {"row_group_size": 15},
    {"compression": "zstd", "data_page_version": "2.0"},
    {"compression": "none", "use_dictionary": False, "version": "1.0"},
    {"use_deprecated_int96_timestamps": True, "write_statistics": False},
    {"compression": "lz4", "write_page_index": True, "write_page_checksum": True},
    {"compression": "gzip", "store_schema": False, "sorting_columns": [pq.SortingColumn(0)]},
    {"compression": "brotli"},
]


def written(table: pa.Table, **options: Any) -> bytes:
    """Return the bytes of a file."""
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


class _Keys(pe.KmsClient):  # type: ignore[misc]
    def __init__(self, config: pe.KmsConnectionConfig) -> None:
        super().__init__()
        self._keys = config.custom_kms_conf

    def wrap_key(self, key: bytes, name: str) -> bytes:
        return base64.b64encode(self._keys[name].encode() + key)

    def unwrap_key(self, wrapped: bytes, name: str) -> bytes:
        return base64.b64decode(wrapped)[16:]


def encrypted(table: pa.Table, column: str, *, plaintext_footer: bool) -> bytes:
    """Return the bytes of a file with one encrypted column, and perhaps an encrypted footer."""
    keys = {"foot": "0123456789012345", "column": "1234567890123450"}
    properties = pe.CryptoFactory(_Keys).file_encryption_properties(
        pe.KmsConnectionConfig(custom_kms_conf=keys),
        pe.EncryptionConfiguration(
            footer_key="foot", column_keys={"column": [column]}, plaintext_footer=plaintext_footer
        ),
    )
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, table.schema, encryption_properties=properties) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def int96_file(moments: Sequence[tuple[int, int]]) -> bytes:
    """Return the bytes of a file with `id` and INT96 timestamps `ts`, each given by its nanoseconds
    of the day and its Julian day."""
    count = range(len(moments))
    first = datetime.datetime(2001, 1, 1)
    times = [first + datetime.timedelta(seconds=n) for n in count]
    table = pa.table({"id": list(count), "ts": pa.array(times, pa.timestamp("ns"))})
    data = written(
        table,
        use_deprecated_int96_timestamps=True,
        compression="none",
        use_dictionary=False,
        write_statistics=False,
    )
    for n, moment in enumerate(moments):
        old = struct.pack("<qI", n * 10**9, 2_451_911)
        assert data.count(old) == 1
        data = data.replace(old, struct.pack("<qI", *moment))
    return data


def footer_of(data: bytes) -> tuple[int, int]:
    """Return where a file's footer begins and ends."""
    length = int.from_bytes(data[-8:-4], "little")
    return len(data) - 8 - length, len(data) - 8


def in_footer(data: bytes, old: bytes, new: bytes) -> bytes:
    """Return a file with other bytes of the same length in its footer."""
    assert len(old) == len(new)
    start, _ = footer_of(data)
    assert old in data[start:]
    return data[:start] + data[start:].replace(old, new)


def mutated(noise: random.Random, data: bytes) -> bytes:
    """Return a file with some bytes of its footer changed at random."""
    start, end = footer_of(data)
    found = bytearray(data)
    for _ in range(noise.choice([1, 1, 1, 2, 3])):
        at = noise.randrange(start, end)
        kind = noise.random()
        if kind < 0.5:
            found[at] = noise.randrange(256)
        elif kind < 0.8:
            found[at] ^= 1 << noise.randrange(8)
        else:
            found[at] = noise.choice([0, 1, 2, 0x15, 0x16, 0x19, 0x1C, 0x7F, 0x80, 0xFF])
    return bytes(found)
