"""Build the files of one SSTable from its rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ringhaul.cql.tokens import murmur3_tokens
from ringhaul.sstables import components
from ringhaul.sstables.bloom_filter import empty_filter, filter_bytes, filter_shape
from ringhaul.sstables.columns import Pool, Rows, joined, plain, pool_of
from ringhaul.sstables.comparable import comparable
from ringhaul.sstables.components import digest_bytes, toc_bytes
from ringhaul.sstables.compression import compress
from ringhaul.sstables.data import (
    BLOCK_BYTES,
    BLOCK_FIELDS,
    NULL,
    PARTITION,
    REPEATS,
    THERE,
    data_bytes_max,
    encode_data,
)
from ringhaul.sstables.hashing import REGISTERS, add_keys
from ringhaul.sstables.index import index_of
from ringhaul.sstables.layout import Layout
from ringhaul.sstables.order import arrange
from ringhaul.sstables.statistics import (
    EPOCH_S,
    EPOCH_US,
    Minima,
    Statistics,
    header_bytes,
    rounded_drop_times,
    statistics_bytes,
)
from ringhaul.sstables.summary import summary_bytes

Array = NDArray[Any]


class Built(NamedTuple):
    """The files of an SSTable: component and contents, in the order in which to write them."""

    files: list[tuple[str, Any]]
    partitions: int
    rows: int  #: with those of one primary key merged
    header: bytes  #: the serialization header, which is a part of Statistics.db, too
    first_key: bytes


def build_sstable(layout: Layout, parts: Sequence[Rows]) -> Built:
    """Return the files of an SSTable with some rows, at least one.

    Rows of one primary key are merged cell by cell, as a node would merge them. Raises `ValueError`
    if a column's values exceed 2 GiB.
    """
    rows = joined(parts)
    used = [
        place
        for place, cells in enumerate(rows.columns)
        if cells.fixed_values is not None or bool((cells.lengths != -2).any())
    ]
    layout = layout.with_columns(used)
    arranged = _arranged(layout, rows)
    order, begins = arranged.order, arranged.begins
    places = pa.array(order)
    keys, key_offsets = plain(rows.keys.take(places))
    clustering = pool_of(rows.clustering, layout.clustering, order)
    pool = pool_of([rows.columns[place] for place in used], layout.columns, order)
    times, ttls = rows.times_us[order], rows.ttls_s[order]
    nulls = (pool.missing == NULL).sum(axis=0)
    minima = _minima(layout, times, ttls, nulls)
    partition_at = np.flatnonzero(begins == PARTITION)
    partitions = len(partition_at)
    out = np.empty(
        data_bytes_max(
            len(order),
            partitions,
            len(used),
            len(layout.clustering),
            len(keys) + len(clustering.data) + len(pool.data),
        ),
        np.uint8,
    )
    positions = np.zeros(partitions + 1, np.int64)
    cells = np.zeros(partitions, np.int64)
    blocks = np.zeros((2 * (len(out) // BLOCK_BYTES) + 2, BLOCK_FIELDS), np.int64)
    size, blocks_count = encode_data(
        out, begins, keys, key_offsets,
        clustering.data, clustering.offsets, clustering.bases, clustering.prefixed,
        pool.data, pool.offsets, pool.bases, pool.prefixed, pool.missing,
        times, ttls, np.array([minima.time_us, minima.ttl_s, minima.deletion_s], np.int64),
        layout.written_s, positions, cells, blocks,
    )  # fmt: skip
    data = out[:size]

    firsts, first_offsets = plain(rows.keys.take(places.take(pa.array(partition_at))))
    index = index_of(firsts, first_offsets, positions, blocks[:blocks_count], data)
    bits_a_key, hashes = filter_shape(layout.bloom_fp_chance)
    filtered = layout.bloom_fp_chance < 1
    bits = empty_filter(partitions, bits_a_key) if filtered else np.zeros(0, np.uint8)
    registers = np.zeros(REGISTERS, np.int64)
    add_keys(firsts, first_offsets, bits, hashes, registers)

    def key(partition: int) -> bytes:
        return firsts[first_offsets[partition] : first_offsets[partition + 1]].tobytes()

    sampled = range(0, partitions, layout.index_interval)
    summary = summary_bytes(
        layout.index_interval,
        [(key(partition), int(index.places[partition])) for partition in sampled],
        key(0),
        key(partitions - 1),
    )
    compressed = compress(data, layout.chunk_bytes) if layout.chunk_bytes else None
    on_disk = data if compressed is None else compressed.data
    merged_rows = int(np.count_nonzero(begins != REPEATS))
    found = Statistics(
        partition_bytes=np.diff(positions),
        partition_cells=cells,
        rows=merged_rows,
        minima=minima,
        time_us_max=int(times.max()),
        ttl_s_min=int(ttls.min()),
        ttl_s_max=int(ttls.max()),
        drop_times=_drop_times(layout, pool, ttls, nulls),
        any_stays=bool((ttls == 0).any()),
        compression_ratio=-1.0 if compressed is None else compressed.ratio,
        clustering_min=_values(rows, arranged.smallest),
        clustering_max=_values(rows, arranged.largest),
    )
    files: list[tuple[str, Any]] = [
        (components.DATA, on_disk),
        (components.INDEX, index.data),
        (components.STATISTICS, statistics_bytes(layout, found, registers)),
        (components.SUMMARY, summary),
        (components.DIGEST, digest_bytes(on_disk)),
    ]
    if filtered:
        files.append((components.FILTER, filter_bytes(bits, hashes)))
    if compressed is not None:
        files.append((components.COMPRESSION_INFO, compressed.info))
    files.append((components.TOC, toc_bytes(name for name, _ in files)))
    return Built(files, partitions, merged_rows, header_bytes(layout, minima), key(0))


class _Arranged(NamedTuple):
    order: Array  #: rows in the order of the file
    begins: Array  #: see `encode_data`
    smallest: int  #: the row with the smallest clustering
    largest: int


def _arranged(layout: Layout, rows: Rows) -> _Arranged:
    tokens = murmur3_tokens(rows.keys)
    order = np.argsort(tokens, kind="stable").astype(np.int64)
    keys, key_offsets = plain(rows.keys)
    count = len(layout.clustering)
    offsets = np.zeros((count, len(order) + 1), np.int32)
    parts, bases, base = [np.zeros(0, np.uint8)], np.zeros(count, np.int64), 0
    for place, column in enumerate(layout.clustering):
        data, ends = comparable(column.cql_type, *plain(rows.clustering[place].values))
        offsets[place], bases[place] = ends, base
        base += len(data)
        parts.append(data)
    begins, extremes = np.zeros(len(order), np.uint8), np.zeros(2, np.int64)
    descends = np.array([column.descends for column in layout.clustering], np.uint8)
    arrange(
        order, tokens[order], keys, key_offsets, np.concatenate(parts), offsets, bases, descends,
        begins, extremes,
    )  # fmt: skip
    return _Arranged(order, begins, int(extremes[0]), int(extremes[1]))


def _minima(layout: Layout, times: Array, ttls: Array, nulls: Array) -> Minima:
    expiring = ttls[ttls > 0]
    ttl_s = int(expiring.min()) if len(expiring) else 0
    deletions = [layout.written_s] if nulls.any() else []
    if ttl_s:
        deletions.append(layout.written_s + ttl_s)
    return Minima(
        time_us=int(times.min()) if len(times) else EPOCH_US,
        ttl_s=ttl_s,
        deletion_s=min(deletions) if deletions else EPOCH_S,
    )


def _drop_times(layout: Layout, pool: Pool, ttls: Array, nulls: Array) -> list[tuple[int, int]]:
    """Return when rows and values expire or were deleted; those that a later one replaced count,
    too."""
    there = (pool.missing == THERE).sum(axis=0)
    expiring = ttls > 0
    times = layout.written_s + ttls[expiring]
    counts = 1 + there[expiring]
    if nulls.any():
        times = np.append(times, layout.written_s)
        counts = np.append(counts, nulls.sum())
    return rounded_drop_times(times, counts)


def _values(rows: Rows, row: int) -> list[bytes]:
    """Return the clustering values of a row."""
    return [bytes(cells.values[row].as_py()) for cells in rows.clustering]
