"""A reader of SSTables of versions nb and oa, written apart from the writer: slow and simple."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa

EPOCH_US = 1_442_880_000_000_000
EPOCH_S = 1_442_880_000
#: Version -> the bytes for a partition that is not deleted.
NOT_DELETED = {"nb": struct.pack(">iq", 0x7FFFFFFF, -(2**63)), "oa": bytes([0x80])}


@dataclass
class Cell:
    """A cell; `value` None: deleted."""

    value: bytes | None
    time_us: int
    ttl_s: int = 0
    deletion_s: int | None = None


@dataclass
class Row:
    """A row with its cells by the name of their column."""

    clustering: tuple[bytes, ...]
    time_us: int
    ttl_s: int
    cells: dict[str, Cell]


@dataclass
class Partition:
    key: bytes
    position: int
    rows: list[Row] = field(default_factory=list)


@dataclass
class Header:
    """The serialization header."""

    time_us: int
    deletion_s: int
    ttl_s: int
    key: str
    clustering: list[str]
    columns: list[tuple[str, str]]


class Bytes:
    """A cursor over bytes."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data, self.at = data, at

    def take(self, count: int) -> bytes:
        assert self.at + count <= len(self.data)
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, kind: str) -> Any:
        return struct.unpack(">" + kind, self.take(struct.calcsize(">" + kind)))[0]

    def vint(self) -> int:
        first = self.number("B")
        extra = 8 - (first ^ 0xFF).bit_length() if first != 0xFF else 8
        value = first & (0xFF >> (extra + 1)) if extra < 8 else 0
        for byte in self.take(extra):
            value = value << 8 | byte
        return value

    @property
    def over(self) -> bool:
        return self.at == len(self.data)


def read_components(data: Path) -> dict[str, bytes]:
    """Return the files of an SSTable by the names of their components. `data`: its Data.db."""
    base = data.name.removesuffix("Data.db")
    return {
        path.name.removeprefix(base): path.read_bytes() for path in data.parent.glob(f"{base}*")
    }


def data_of(files: Mapping[str, bytes]) -> bytes:
    """Return Data.db uncompressed, with each chunk checked."""
    if "CompressionInfo.db" not in files:
        return files["Data.db"]
    info = Bytes(files["CompressionInfo.db"])
    assert info.take(info.number("H")) == b"LZ4Compressor"
    assert info.number("i") == 0
    chunk, _, length, count = (info.number(kind) for kind in "iiqi")
    offsets = [info.number("q") for _ in range(count)] + [len(files["Data.db"])]
    assert info.over
    out = b""
    for start, end in pairwise(offsets):
        packed = files["Data.db"][start:end]
        assert zlib.crc32(packed[:-4]) == struct.unpack(">I", packed[-4:])[0]
        size = struct.unpack("<i", packed[:4])[0]
        assert size == min(chunk, length - len(out))
        out += pa.Codec("lz4_raw").decompress(packed[4:-4], size, asbytes=True)
    assert len(out) == length
    return out


def components_of(statistics: bytes) -> dict[int, bytes]:
    """Return the components of Statistics.db by type, with their checksums checked."""
    cursor = Bytes(statistics)
    count = cursor.number("i")
    assert cursor.number("I") == zlib.crc32(statistics[:4])
    table = [(cursor.number("i"), cursor.number("i")) for _ in range(count)]
    assert cursor.number("I") == zlib.crc32(statistics[:4] + statistics[8 : 8 + 8 * count])
    found = {}
    ends = [at for _, at in table[1:]] + [len(statistics)]
    for (kind, at), end in zip(table, ends, strict=True):
        found[kind] = statistics[at : end - 4]
        assert zlib.crc32(found[kind]) == struct.unpack(">I", statistics[end - 4 : end])[0]
    return found


def header_of(statistics: bytes) -> Header:
    """Return the serialization header of Statistics.db."""
    cursor = Bytes(components_of(statistics)[3])

    def text() -> str:
        return cursor.take(cursor.vint()).decode()

    minima = (_long(cursor.vint() + EPOCH_US), cursor.vint() + EPOCH_S, cursor.vint())
    key = text()
    clustering = [text() for _ in range(cursor.vint())]
    assert cursor.vint() == 0  # static columns
    columns = [(text(), text()) for _ in range(cursor.vint())]
    assert cursor.over
    return Header(*minima, key, clustering, columns)


def partitions_of(
    files: Mapping[str, bytes], widths: Mapping[str, int], version: str = "nb"
) -> list[Partition]:
    """Return what Data.db holds. `widths`: column -> bytes of a value, 0: with a length before it;
    clustering columns are named `ck0`, `ck1`, ..."""
    header = header_of(files["Statistics.db"])
    return list(_partitions(Bytes(data_of(files)), header, widths, NOT_DELETED[version]))


def _long(value: int) -> int:
    """Return the lowest 64 bits as a signed number: Java's arithmetic wraps."""
    return (value + 2**63) % 2**64 - 2**63


def _partitions(
    cursor: Bytes, header: Header, widths: Mapping[str, int], not_deleted: bytes
) -> Iterator[Partition]:
    while not cursor.over:
        start = cursor.at
        partition = Partition(cursor.take(cursor.number("H")), start)
        assert cursor.take(len(not_deleted)) == not_deleted
        before = start
        while (flags := cursor.number("B")) != 1:
            row_at = cursor.at - 1
            partition.rows.append(_row(cursor, header, widths, flags, row_at - before))
            before = row_at
        yield partition


def _row(
    cursor: Bytes, header: Header, widths: Mapping[str, int], flags: int, previous: int
) -> Row:
    assert flags & 0x04 and not flags & ~0x2C
    clustering = clustering_of(cursor, [widths[f"ck{i}"] for i in range(len(header.clustering))])
    size = cursor.vint()
    end = cursor.at + size
    assert cursor.vint() == previous
    row = Row(clustering, _long(cursor.vint() + header.time_us), 0, {})
    expiry = None
    if flags & 0x08:
        row.ttl_s = cursor.vint() + header.ttl_s
        expiry = cursor.vint() + header.deletion_s
    names = [name for name, _ in header.columns]
    present = names if flags & 0x20 else _present(cursor, names)
    for name in present:
        row.cells[name] = _cell(cursor, header, row, expiry, widths[name])
    assert cursor.at == end
    return row


def clustering_of(cursor: Bytes, widths: Sequence[int]) -> tuple[bytes, ...]:
    """Return the values of a clustering, of columns of these widths."""
    values = []
    bits = 0
    for place, width in enumerate(widths):
        if place % 32 == 0:
            bits = cursor.vint()
        kind = bits >> (2 * (place % 32)) & 3
        assert kind in (0, 1)
        values.append(b"" if kind else cursor.take(width or cursor.vint()))
    return tuple(values)


def _present(cursor: Bytes, names: Sequence[str]) -> list[str]:
    encoded = cursor.vint()
    if len(names) < 64:
        return [name for place, name in enumerate(names) if not encoded >> place & 1]
    present = len(names) - encoded
    if present < len(names) // 2:
        return [names[cursor.vint()] for _ in range(present)]
    missing = {cursor.vint() for _ in range(encoded)}
    return [name for place, name in enumerate(names) if place not in missing]


def _cell(cursor: Bytes, header: Header, row: Row, expiry: int | None, width: int) -> Cell:
    flags = cursor.number("B")
    time_us = row.time_us if flags & 0x08 else _long(cursor.vint() + header.time_us)
    deletion, ttl = None, 0
    if flags & 0x10:
        assert flags & 0x02
        deletion, ttl = expiry, row.ttl_s
    elif flags & 0x03:
        deletion = cursor.vint() + header.deletion_s
        if flags & 0x02:
            ttl = cursor.vint() + header.ttl_s
    value: bytes | None = b""
    if not flags & 0x04:
        value = cursor.take(width or cursor.vint())
    if flags & 0x01:
        assert value == b""
        value = None
    return Cell(value, time_us, ttl, deletion)


def index_of(index: bytes) -> list[tuple[bytes, int, bytes, int]]:
    """Return (key, position in Data.db, what follows for a wide partition, place) of each entry."""
    cursor, found = Bytes(index), []
    while not cursor.over:
        place = cursor.at
        key = cursor.take(cursor.number("H"))
        position = cursor.vint()
        found.append((key, position, cursor.take(cursor.vint()), place))
    return found


def summary_of(summary: bytes) -> tuple[list[tuple[bytes, int]], bytes, bytes]:
    """Return the sampled keys with their places in Index.db, the first and the last key."""
    cursor = Bytes(summary)
    _, count, size, _, _ = (cursor.number(kind) for kind in "iiqii")
    body = cursor.take(size)
    offsets = [*struct.unpack(f"<{count}i", body[: 4 * count]), size]
    entries = [body[a:b] for a, b in pairwise(offsets)]
    sampled = [(entry[:-8], struct.unpack("<q", entry[-8:])[0]) for entry in entries]
    first, last = (cursor.take(cursor.number("i")) for _ in range(2))
    assert cursor.over
    return sampled, first, last
