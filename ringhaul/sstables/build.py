"""Build the files of one SSTable from its rows, all at once or piece by piece.

Data.db and Index.db grow with the rows and go to files that the caller opens. The other files are
small, and are made at the end. A piece is dropped once it is written, so memory does not grow with
the SSTable, except some 12 bits a partition.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Sequence
from typing import IO, Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ringhaul.cql.tokens import murmur3_tokens
from ringhaul.errors import EXIT_FATAL, Terminal
from ringhaul.sstables import components
from ringhaul.sstables.bloom_filter import empty_filter, filter_bytes, filter_shape
from ringhaul.sstables.columns import Pool, Rows, joined, plain, pool_of
from ringhaul.sstables.components import digest_bytes, toc_bytes
from ringhaul.sstables.compression import DataWriter
from ringhaul.sstables.data import (
    BLOCK_BYTES,
    BLOCK_FIELDS,
    PARTITION,
    REPEATS,
    encode_data,
)
from ringhaul.sstables.data_bound import data_bytes_max
from ringhaul.sstables.elements import as_cells
from ringhaul.sstables.extent import Extent
from ringhaul.sstables.figures import Figures
from ringhaul.sstables.hashing import REGISTERS, add_keys
from ringhaul.sstables.index import index_of
from ringhaul.sstables.layout import Layout
from ringhaul.sstables.nested import comparable_values
from ringhaul.sstables.order import arrange
from ringhaul.sstables.statistics import header_bytes, statistics_bytes
from ringhaul.sstables.summary import Summary
from ringhaul.sstables.version import SSTableVersion

Array = NDArray[Any]


#: `Column.cells` -> `kinds` of `encode_data`.
_KINDS = {"": 0, "set": 1, "map": 2, "list": 2, "udt": 2}


class CollectionsUnited(Terminal):
    """Records can be written over CQL only: see the message."""

    exit_code = EXIT_FATAL


class Contents(Protocol):
    """The bytes of a file, in memory or not. A slice has at most as many bytes as it asks for."""

    def __len__(self) -> int: ...

    def __getitem__(self, place: slice, /) -> bytes | memoryview: ...


class Files(Protocol):
    """Files that an SSTable's builder writes, and reads again."""

    def component(self, name: str) -> IO[bytes]:
        """Return a new file for a component."""

    def scratch(self) -> IO[bytes]:
        """Return a new file that is needed only while the SSTable is built."""

    def contents(self, file: IO[bytes]) -> Contents:
        """Return what was written to a file of `component`."""


class InMemory:
    """Files in memory."""

    def component(self, name: str) -> IO[bytes]:
        return io.BytesIO()

    def scratch(self) -> IO[bytes]:
        return io.BytesIO()

    def contents(self, file: IO[bytes]) -> Contents:
        assert isinstance(file, io.BytesIO)
        return file.getbuffer()

    def close(self) -> None:
        """Forget nothing: contents may still be in use."""


class Built(NamedTuple):
    """The files of an SSTable: component and contents, in the order in which to write them."""

    files: list[tuple[str, Contents]]
    partitions: int
    rows: int  #: rows of one primary key count once
    version: SSTableVersion
    header: bytes  #: the serialization header, also a part of Statistics.db
    first_key: bytes
    index_crc: int  #: CRC32 of Index.db


def build_sstable(layout: Layout, parts: Sequence[Rows]) -> Built:
    """Return the files of an SSTable with some rows, at least one.

    Rows of one primary key are merged cell by cell, as a node would merge them. Raises `ValueError`
    if a column's values exceed 2 GiB.
    """
    extent = Extent(layout)
    for part in parts:
        extent.add(part)
    builder = SSTableBuilder(layout, extent, InMemory())
    builder.append(joined(parts))
    return builder.finish()


class SSTableBuilder:
    """Builds one SSTable from pieces."""

    def __init__(self, layout: Layout, extent: Extent, files: Files) -> None:
        """`extent`: what the header says of the rows to add, or of more rows."""
        self._used = extent.used
        self._layout = layout.with_columns(self._used)
        self._minima = extent.minima(layout)
        self._not_deleted = np.frombuffer(layout.version.not_deleted, np.uint8).copy()
        self._files = files
        self._data_file = files.component(components.DATA)
        self._index_file = files.component(components.INDEX)
        self._keys = _Keys(files.scratch())
        self._data = DataWriter(self._data_file, layout.chunk_bytes)
        self._position = self._index_place = 0  #: where the next piece begins in Data and Index
        self._index_crc = 0
        self._summary = Summary(layout.index_interval)
        self._figures = Figures(self._layout, self._minima)
        self._rows = 0
        self._smallest: list[bytes] = []
        self._largest: list[bytes] = []

    @property
    def bytes_count(self) -> int:
        """Bytes of Data.db so far."""
        return self._data.bytes_count

    def append(self, rows: Rows) -> None:
        """Add rows, at least one, whose tokens are all above the tokens of earlier rows.

        Raises `ValueError` if a column's values exceed 2 GiB, and `CollectionsUnited`.
        """
        layout = self._layout
        arranged = _arranged(layout, rows)
        order, begins = arranged.order, arranged.begins
        keys, key_offsets = plain(rows.keys.take(pa.array(order)))
        piece = _Piece(
            order=order,
            keys=keys,
            key_offsets=key_offsets,
            clustering=pool_of(rows.clustering, layout.clustering, order),
            times=rows.times_us[order],
            ttls=rows.ttls_s[order],
        )
        statics = None
        if any(column.static for column in layout.columns):
            one_row = np.where(begins == PARTITION, PARTITION, REPEATS).astype(np.uint8)
            statics = self._encoded(rows, piece, one_row, is_static=True)
        found = self._encoded(rows, piece, begins, statics)
        partition_at = pa.array(order[begins == PARTITION])
        firsts, first_offsets = plain(rows.keys.take(partition_at))
        cells = found.cells
        static_bytes = np.zeros(len(cells), np.int64)
        if statics is not None:
            cells, static_bytes = cells + statics.cells, np.diff(statics.positions)
        index = index_of(
            firsts, first_offsets, found.positions + self._position, found.blocks, found.data,
            static_bytes, layout.version.not_deleted,
        )  # fmt: skip
        self._data.write(found.data.data)
        self._index_file.write(index.data.data)
        self._index_crc = zlib.crc32(index.data.data, self._index_crc)
        self._summary.add(firsts, first_offsets, index.places + self._index_place)
        self._keys.add(firsts, first_offsets)
        merged_rows = int(np.count_nonzero(begins != REPEATS))
        self._rows += merged_rows
        static_rows = 0 if statics is None else int(np.count_nonzero(statics.cells))
        self._figures.add_partitions(np.diff(found.positions), cells, merged_rows + static_rows)
        self._add_extremes(rows, arranged)
        self._position += len(found.data)
        self._index_place += len(index.data)

    def _encoded(
        self,
        rows: Rows,
        piece: _Piece,
        begins: Array,
        statics: _Encoded | None = None,
        *,
        is_static: bool = False,
    ) -> _Encoded:
        """Return a piece of Data.db, or the static rows of its partitions, which it needs."""
        layout = self._layout
        chosen = [
            (rows.columns[place], column)
            for place, column in zip(self._used, layout.columns, strict=True)
            if column.static == is_static
        ]
        columns = [column for _, column in chosen]
        kinds = np.array([_KINDS[column.cells] for column in columns], np.uint8)
        cells, elements = [], 0
        for found, column in chosen:
            if column.cells:
                stored, count = as_cells(column, found, layout.written_s)
                cells.append(stored)
                elements += count
            else:
                cells.append(found)
        pool = pool_of(cells, columns, piece.order)
        self._figures.add_times(piece.times, piece.ttls, pool.missing, kinds, is_static=is_static)
        clustering, minima = piece.clustering, self._minima
        partitions = int(np.count_nonzero(begins == PARTITION))
        put_in = np.zeros(0, np.uint8) if statics is None else statics.data
        places = np.zeros(0, np.int64) if statics is None else statics.positions
        values_bytes = len(piece.keys) + len(clustering.data) + len(pool.data) + len(put_in)
        out = np.empty(
            data_bytes_max(
                len(begins),
                partitions,
                len(columns),
                len(layout.clustering),
                values_bytes,
                elements,
            ),
            np.uint8,
        )
        positions = np.zeros(partitions + 1, np.int64)
        cell_counts = np.zeros(partitions, np.int64)
        blocks = np.zeros((2 * (len(out) // BLOCK_BYTES) + 2, BLOCK_FIELDS), np.int64)
        size, blocks_count = encode_data(
            out, begins, piece.keys, piece.key_offsets,
            clustering.data, clustering.offsets, clustering.bases, clustering.prefixed,
            pool.data, pool.offsets, pool.bases, pool.prefixed, pool.missing, kinds,
            piece.times, piece.ttls,
            np.array([minima.time_us, minima.ttl_s, minima.deletion_s], np.int64),
            layout.written_s, positions, cell_counts, blocks, is_static, put_in, places,
            self._not_deleted,
        )  # fmt: skip
        if size < 0:
            raise CollectionsUnited(
                "two records of one key have the same write time and different values of a "
                "collection that is not frozen, which a node would unite: load them over CQL, or "
                "give them different times"
            )
        return _Encoded(out[:size], positions, cell_counts, blocks[:blocks_count])

    def finish(self) -> Built:
        """Return the SSTable."""
        layout = self._layout
        self._data.finish()
        partitions = self._summary.partitions
        filtered = layout.bloom_fp_chance < 1
        bits_a_key, hashes = filter_shape(layout.bloom_fp_chance)
        bits = empty_filter(partitions, bits_a_key) if filtered else np.zeros(0, np.uint8)
        registers = np.zeros(REGISTERS, np.int64)
        for keys, offsets in self._keys.read():
            add_keys(keys, offsets, bits, hashes, registers)
        found = self._figures.finish(
            ratio=self._data.ratio,
            clustering_min=self._smallest,
            clustering_max=self._largest,
            first_key=self._summary.first_key,
            last_key=self._summary.last_key,
        )
        files: list[tuple[str, Contents]] = [
            (components.DATA, self._files.contents(self._data_file)),
            (components.INDEX, self._files.contents(self._index_file)),
            (components.STATISTICS, statistics_bytes(layout, found, registers)),
            (components.SUMMARY, self._summary.finish()),
            (components.DIGEST, digest_bytes(self._data.crc)),
        ]
        if filtered:
            files.append((components.FILTER, filter_bytes(bits, hashes)))
        if layout.chunk_bytes:
            files.append((components.COMPRESSION_INFO, self._data.info_bytes()))
        files.append((components.TOC, toc_bytes(name for name, _ in files)))
        return Built(
            files,
            partitions,
            self._rows,
            layout.version,
            header_bytes(layout, self._minima),
            self._summary.first_key,
            self._index_crc,
        )

    def _add_extremes(self, rows: Rows, arranged: _Arranged) -> None:
        """Keep the smallest and the largest clustering of all pieces."""
        found = [_values(rows, arranged.smallest), _values(rows, arranged.largest)]
        if self._smallest:
            found = [self._smallest, self._largest, *found]
        self._smallest, self._largest = _extremes(self._layout, found)


class _Keys:
    """The keys of partitions, kept in a file until their number is known."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._sizes: list[tuple[int, int]] = []  #: partitions and bytes of their keys, by piece

    def add(self, keys: Array, offsets: Array) -> None:
        self._file.write(offsets.data)
        self._file.write(keys.data)
        self._sizes.append((len(offsets) - 1, len(keys)))

    def read(self) -> Any:
        """Yield the keys and offsets of each piece, and close the file."""
        self._file.seek(0)
        for count, size in self._sizes:
            offsets = np.frombuffer(self._file.read(4 * (count + 1)), np.int32).copy()
            yield np.frombuffer(self._file.read(size), np.uint8).copy(), offsets
        self._file.close()


class _Piece(NamedTuple):
    """Rows in the order of the file."""

    order: Array
    keys: Array
    key_offsets: Array
    clustering: Pool
    times: Array
    ttls: Array


class _Encoded(NamedTuple):
    """What `encode_data` wrote."""

    data: Array
    positions: Array
    cells: Array
    blocks: Array


class _Arranged(NamedTuple):
    order: Array  #: rows in the order of the file
    begins: Array  #: see `encode_data`
    smallest: int  #: the row with the smallest clustering
    largest: int


def _arranged(layout: Layout, rows: Rows) -> _Arranged:
    tokens = murmur3_tokens(rows.keys)
    order = np.argsort(tokens, kind="stable").astype(np.int64)
    keys, key_offsets = plain(rows.keys)
    columns = [plain(cells.values) for cells in rows.clustering]
    return _sorted(layout, order, tokens[order], keys, key_offsets, columns)


def _extremes(layout: Layout, found: Sequence[list[bytes]]) -> tuple[list[bytes], list[bytes]]:
    """Return the smallest and the largest of some clusterings."""
    count = len(found)
    columns = [
        plain(pa.array([values[place] for values in found], pa.binary()))
        for place in range(len(layout.clustering))
    ]
    zeros = np.zeros(count, np.int64)
    arranged = _sorted(
        layout,
        np.arange(count),
        zeros,
        np.zeros(0, np.uint8),
        np.zeros(count + 1, np.int32),
        columns,
    )
    return found[arranged.smallest], found[arranged.largest]


def _sorted(
    layout: Layout, order: Array, tokens: Array, keys: Array, key_offsets: Array, columns: Any
) -> _Arranged:
    """Arrange rows by key and clustering. `columns`: bytes and offsets of the clustering values."""
    count = len(layout.clustering)
    offsets = np.zeros((count, len(order) + 1), np.int32)
    parts, bases, base = [np.zeros(0, np.uint8)], np.zeros(count, np.int64), 0
    for place, column in enumerate(layout.clustering):
        data, ends = comparable_values(column.cql_type, *columns[place])
        offsets[place], bases[place] = ends, base
        base += len(data)
        parts.append(data)
    begins, extremes = np.zeros(len(order), np.uint8), np.zeros(2, np.int64)
    descends = np.array([column.descends for column in layout.clustering], np.uint8)
    arrange(
        order, tokens, keys, key_offsets, np.concatenate(parts), offsets, bases, descends,
        begins, extremes,
    )  # fmt: skip
    return _Arranged(order, begins, int(extremes[0]), int(extremes[1]))


def _values(rows: Rows, row: int) -> list[bytes]:
    """Return the clustering values of a row."""
    return [bytes(cells.values[row].as_py()) for cells in rows.clustering]
