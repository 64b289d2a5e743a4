"""Statistics.db: what a node knows about an SSTable without reading its rows.

`i32 components | crc32 | for each: i32 type, i32 offset | crc32 | the components, each followed by
its crc32`. The components, by type:

0. Validation: partitioner, chance of false positives (`ValidationMetadata`).
1. Compaction: an estimate of the keys as HyperLogLog++ (`CompactionMetadata`, `HyperLogLogPlus`).
2. Stats: histograms of partition sizes and cells, minima and maxima of write times, deletion times,
   TTLs and clusterings, when tombstones can be dropped, the rows; from oa on the first and the last
   key (`StatsMetadata`, `EstimatedHistogram`, `TombstoneHistogram`, `Slice.Serializer`).
3. Header: the minima that times in Data.db are relative to, the types of the key and of all columns
   (`SerializationHeader.Component`, `EncodingStats`).

Class of the file: `MetadataSerializer`.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringhaul.sstables.hashing import PRECISION
from ringhaul.sstables.layout import Layout
from ringhaul.sstables.marshal import reversed_class
from ringhaul.sstables.version import SSTableVersion
from ringhaul.sstables.vints import unsigned_vint, with_short_length, with_vint_length

Array = NDArray[Any]

#: The minima in a header are differences to 2015-09-22, in microseconds and in seconds.
EPOCH_S = 1_442_880_000
EPOCH_US = EPOCH_S * 1_000_000
#: No position in a commit log.
_NO_POSITION = struct.pack(">qi", -1, 0)
_SIZE_BUCKETS, _CELL_BUCKETS = 155, 118
#: `ClusteringPrefix.Kind` of an inclusive bound at either end.
_INCLUSIVE_START, _INCLUSIVE_END = 1, 6
_COUNT_MAX = 2**31 - 1
#: Deletion times are rounded up to minutes, and at most this many are kept.
_DROP_ROUND_S = 60
_DROP_TIMES_MAX = 100
#: Times that are kept while rows are counted; 100,000 minutes are 69 days.
_DROP_TIMES_KEPT = 100_000
#: Bits of a register of HyperLogLog++, registers in a word, precision of its sparse form.
_REGISTER_BITS, _REGISTERS_A_WORD, _SPARSE_PRECISION = 5, 6, 25


@dataclass(frozen=True, kw_only=True)
class Minima:
    """What times in Data.db are relative to; the epoch if there is no such time."""

    time_us: int
    ttl_s: int
    deletion_s: int


@dataclass(frozen=True, kw_only=True)
class Statistics:
    """The figures of one SSTable."""

    size_counts: Array  #: partitions by bytes, see `size_counts`
    cell_counts: Array  #: partitions by cells, see `cell_counts`
    cells: int
    rows: int
    minima: Minima
    time_us_max: int
    deletion_s_max: int  #: the latest deletion or expiry, if any
    ttl_s_min: int  #: 0 if some value stays
    ttl_s_max: int
    #: (seconds since the epoch, values that expire or were deleted then), ascending.
    drop_times: Sequence[tuple[int, int]]
    any_stays: bool  #: whether some value neither expires nor is deleted
    compression_ratio: float  #: -1: not compressed
    clustering_min: Sequence[bytes]
    clustering_max: Sequence[bytes]
    first_key: bytes
    last_key: bytes


def statistics_bytes(layout: Layout, found: Statistics, registers: Array) -> bytes:
    """Return the file. `registers`: registers that `hashing.add_keys` filled."""
    partitioner = with_short_length(b"org.apache.cassandra.dht.Murmur3Partitioner")
    cardinality = _cardinality(registers)
    return _components(
        [
            partitioner + struct.pack(">d", layout.bloom_fp_chance),
            struct.pack(">i", len(cardinality)) + cardinality,
            _stats(layout, found),
            header_bytes(layout, found.minima),
        ]
    )


def header_bytes(layout: Layout, minima: Minima) -> bytes:
    """Return the serialization header."""
    out = unsigned_vint(minima.time_us - EPOCH_US)
    out += unsigned_vint((minima.deletion_s - EPOCH_S) & 0xFFFFFFFF) + unsigned_vint(minima.ttl_s)
    out += _text(layout.partition_key_class) + _clustering_types(layout)
    for static in (True, False):
        columns = [column for column in layout.columns if column.static == static]
        out += unsigned_vint(len(columns))
        out += b"".join(_text(column.name) + _text(column.class_name) for column in columns)
    return out


def _clustering_types(layout: Layout) -> bytes:
    out = unsigned_vint(len(layout.clustering))
    for column in layout.clustering:
        out += _text(reversed_class(column.class_name) if column.descends else column.class_name)
    return out


class DropTimes:
    """Times when values can be dropped, rounded up to minutes, or further if there are too many."""

    def __init__(self, last_s: int) -> None:
        """`last_s`: the last time; later times count as this time."""
        self._last_s = last_s
        self._round_s = _DROP_ROUND_S
        self._times = np.zeros(0, np.int64)
        self._counts = np.zeros(0, np.int64)

    def add(self, times_s: Array, counts: Array) -> None:
        """Add times in seconds since the epoch, and how many values each has."""
        self._merge(np.concatenate([self._times, times_s]), np.append(self._counts, counts))
        while len(self._times) > _DROP_TIMES_KEPT:
            self._round_s *= 2
            self._merge(self._times, self._counts)

    def _merge(self, times_s: Array, counts: Array) -> None:
        rounded = -(-times_s // self._round_s) * self._round_s
        rounded = np.minimum(rounded, self._last_s)
        self._times, places = np.unique(rounded, return_inverse=True)
        sums = np.bincount(places, weights=counts, minlength=len(self._times))
        self._counts = sums.astype(np.int64)

    def grouped(self) -> list[tuple[int, int]]:
        """Return at most 100 times, ascending, with their counts; a group has its last time."""
        times, sums = self._times, self._counts
        group = -(-len(times) // _DROP_TIMES_MAX)
        return [
            (int(times[min(first + group, len(times)) - 1]), int(sums[first : first + group].sum()))
            for first in range(0, len(times), max(1, group))
        ]


def _stats(layout: Layout, found: Statistics) -> bytes:
    version, is_nb = layout.version, layout.version is SSTableVersion.NB
    out = _histogram(found.size_counts) + _histogram(found.cell_counts) + _NO_POSITION
    out += struct.pack(">qq", found.minima.time_us, found.time_us_max)
    dropped = found.drop_times
    first = found.minima.deletion_s if dropped else version.never_s
    last = version.never_s if found.any_stays or not dropped else found.deletion_s_max
    out += struct.pack(">II", first, last)
    out += struct.pack(">iid", found.ttl_s_min, found.ttl_s_max, found.compression_ratio)
    out += struct.pack(">ii", len(dropped), len(dropped))
    for time_s, count in dropped:
        if is_nb:
            out += struct.pack(">dq", time_s, count)
        else:
            out += struct.pack(">qi", time_s, min(count, _COUNT_MAX))
    out += struct.pack(">iq", 0, 0)  # level, time of repair
    out += _clustering_nb(found) if is_nb else _clustering_oa(layout, found)
    out += struct.pack(">?qq", False, found.cells, found.rows)  # no counters
    # No interval of the commit log, pending repair, transient replica or host.
    out += _NO_POSITION + struct.pack(">ibbb", 0, 0, 0, 0)
    if is_nb:
        return out
    # No partition is deleted; the share of all tokens is not known, as in most files of nodes.
    keys = with_vint_length(found.first_key) + with_vint_length(found.last_key)
    return out + bytes([False]) + keys + struct.pack(">d", math.nan)


def _clustering_nb(found: Statistics) -> bytes:
    out = b""
    for values in (found.clustering_min, found.clustering_max):
        out += struct.pack(">i", len(values)) + b"".join(map(with_short_length, values))
    return out


def _clustering_oa(layout: Layout, found: Statistics) -> bytes:
    out = _clustering_types(layout)
    for kind, values in (
        (_INCLUSIVE_START, found.clustering_min),
        (_INCLUSIVE_END, found.clustering_max),
    ):
        out += struct.pack(">bh", kind, len(values)) + _clustering(layout, values)
    return out


def _clustering(layout: Layout, values: Sequence[bytes]) -> bytes:
    """Return clustering values as they are in a row."""
    out = b""
    for first in range(0, len(values), 32):
        part = range(first, min(first + 32, len(values)))
        out += unsigned_vint(sum(1 << 2 * (place - first) for place in part if not values[place]))
        for place in part:
            value, has_width = values[place], layout.clustering[place].width > 0
            if value:
                out += value if has_width else with_vint_length(value)
    return out


def size_counts(partition_bytes: Array) -> Array:
    """Return how many partitions have how many bytes, as a histogram in Statistics.db counts."""
    return _counts(_SIZE_BOUNDS, partition_bytes)


def cell_counts(partition_cells: Array) -> Array:
    """Return how many partitions have how many cells, as a histogram in Statistics.db counts."""
    return _counts(_CELL_BOUNDS, partition_cells)


def _counts(bounds: Array, values: Array) -> Array:
    places = np.searchsorted(bounds, values)
    return np.bincount(places, minlength=len(bounds) + 1)


def _bounds(buckets: int) -> Array:
    """Return bounds that grow by a fifth, at least by one."""
    bounds = [1]
    while len(bounds) < buckets:
        bounds.append(max(bounds[-1] + 1, int(bounds[-1] * 1.2 + 0.5)))
    return np.array(bounds)


_SIZE_BOUNDS, _CELL_BOUNDS = _bounds(_SIZE_BUCKETS), _bounds(_CELL_BUCKETS)


def _histogram(counts: Array) -> bytes:
    bounds = _SIZE_BOUNDS if len(counts) == _SIZE_BUCKETS + 1 else _CELL_BOUNDS
    table = np.empty((len(counts), 2), ">i8")
    table[0, 0], table[1:, 0] = bounds[0], bounds
    table[:, 1] = counts
    return struct.pack(">i", len(counts)) + table.tobytes()


def _cardinality(registers: Array) -> bytes:
    """Return HyperLogLog++ in its dense form: registers of 5 bits, six in a word."""
    words = -(-len(registers) // _REGISTERS_A_WORD)
    padded = np.zeros(words * _REGISTERS_A_WORD, np.int64)
    padded[: len(registers)] = np.minimum(registers, (1 << _REGISTER_BITS) - 1)
    shifts = _REGISTER_BITS * np.arange(_REGISTERS_A_WORD)
    packed = (padded.reshape(words, _REGISTERS_A_WORD) << shifts).sum(axis=1)
    data: bytes = packed.astype(">i4").tobytes()
    numbers = b"".join(map(_little_varint, (PRECISION, _SPARSE_PRECISION, 0, len(data))))
    return struct.pack(">i", -2) + numbers + data  # version 2, which is written negated


def _little_varint(value: int) -> bytes:
    """Return 7 bits a byte, the lowest first; all but the last have their highest bit set."""
    out = b""
    while value >= 128:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def _text(text: str) -> bytes:
    return with_vint_length(text.encode())


def _components(parts: Sequence[bytes]) -> bytes:
    count = struct.pack(">i", len(parts))
    at = len(count) + 4 + 8 * len(parts) + 4
    table = b""
    for number, part in enumerate(parts):
        table += struct.pack(">ii", number, at)
        at += len(part) + 4
    pieces = [count, _crc(count), table, _crc(count + table)]
    for part in parts:
        pieces += [part, _crc(part)]
    return b"".join(pieces)


def _crc(data: bytes) -> bytes:
    return struct.pack(">I", zlib.crc32(data))
