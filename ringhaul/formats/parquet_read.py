"""Parquet files as units and blocks: a unit is a row group, a block some of its rows.

Positions mean other things here than in text: the offset is the number of the row group, the
line that of the row in the file, from 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from ringhaul.errors import SourceCorrupt
from ringhaul.formats.parquet_batches import bounded_batches
from ringhaul.formats.parquet_file import ParquetSource
from ringhaul.formats.parquet_leaves import place_of
from ringhaul.formats.parquet_sure import PagesTooLarge
from ringhaul.formats.pieces import Position
from ringhaul.storage.lanes import LANES_AHEAD, join_lanes

#: Bytes of a batch in memory, in blocks of text. Above 1: typed rows are the cheaper ones to
#: encode, and at 2 MiB to a block rows of up to 128 bytes still come `BATCH_ROWS` at a time.
BATCH_BLOCKS = 4
#: The same whatever a block is: a writer keeps three batches in several forms each, and what rows
#: are glued into is counted in 31 bits.
BATCH_BYTES_MAX = 256 * 2**20
#: Of a row group behind a URL, as it is stored. Writers make groups of up to 128 MiB, as a rule.
HELD_BYTES = 64 * 2**20
#: S3 takes 20 to 50 ms to answer, as long as it takes to send 2 MiB; so of a group of more than 32
#: columns more is held: 2 MiB for each.
COLUMN_BYTES = 2 * 2**20


class RowBlock(NamedTuple):
    """Some rows of one row group."""

    batch: pa.RecordBatch
    position: Position
    #: Its share of the row group's bytes in the file.
    size_bytes: int
    defect: None = None

    @property
    def records_count(self) -> int:
        return int(self.batch.num_rows)


class RowGroup(NamedTuple):
    """A unit: what the footer says of a row group."""

    number: int
    rows_count: int
    #: Its columns' bytes as they are stored.
    size_bytes: int
    first_ordinal: int
    first_row: int  #: from 1, in the file


@contextmanager
def told(path: str) -> Iterator[None]:
    """Turn what pyarrow raises about a file's bytes into `SourceCorrupt`."""
    try:
        yield
    except PagesTooLarge as error:
        raise SourceCorrupt(f"{path}: {error}") from error
    except (pa.ArrowException, OSError, EOFError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # of the file system, not of the file
        words = str(error).strip().splitlines()[0].rstrip(".") if str(error) else "no reason given"
        raise SourceCorrupt(
            f"{path}: cannot be read as Parquet: {words}; it is cut short, damaged, or misnamed"
        ) from error


def row_groups(metadata: pq.FileMetaData, first_ordinal: int) -> Iterator[RowGroup]:
    """The row groups of a file in order; records are numbered from `first_ordinal`."""
    row = 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        size_bytes = sum(
            group.column(column).total_compressed_size for column in range(group.num_columns)
        )
        yield RowGroup(number, group.num_rows, size_bytes, first_ordinal + row, row + 1)
        row += group.num_rows


class Reads(NamedTuple):
    """How a row group is read that lies behind a URL: on end, or its columns side by side."""

    #: Where the group ends in the file, if it is to be read on end; 0: it is not.
    window_bytes: int = 0
    #: [start, end) in the file of what is read side by side, in the order of the columns.
    lanes: Sequence[tuple[int, int]] = ()
    #: Most of one request for a part of a lane.
    piece_bytes: int = 0


def group_reads(
    metadata: pq.FileMetaData, group: int, columns: Sequence[str], file_bytes: int
) -> Reads:
    """How to read the columns `columns` of a row group; pyarrow asks for them in this order.

    A group that is held whole is read on end, if most of it is wanted. Else its columns are read
    side by side, in pieces so large that one of each column and those that run ahead take
    `HELD_BYTES`, or `COLUMN_BYTES` for each of many columns.
    """
    about = metadata.row_group(group)
    group_end = total_bytes = 0
    wanted = []
    for number in range(about.num_columns):
        chunk = about.column(number)
        start, end = _span(chunk, file_bytes)
        group_end, total_bytes = max(group_end, end), total_bytes + end - start
        place = place_of(chunk, columns)
        if place is not None and start < end:
            wanted.append((place, start, end))
    wanted_bytes = sum(end - start for _, start, end in wanted)
    if wanted_bytes <= HELD_BYTES and 2 * wanted_bytes >= total_bytes:
        return Reads(window_bytes=group_end)
    held_bytes = max(HELD_BYTES, COLUMN_BYTES * len(wanted))
    piece_bytes = held_bytes // (len(wanted) + LANES_AHEAD)
    lanes = join_lanes([(start, end) for _, start, end in sorted(wanted)], piece_bytes)
    return Reads(lanes=lanes, piece_bytes=piece_bytes)


def _span(chunk: pq.ColumnChunkMetaData, file_bytes: int) -> tuple[int, int]:
    """[start, end) of a column in the file: within it, whatever a damaged footer says."""
    data = chunk.data_page_offset
    # 0 is how some writers say that there is no dictionary.
    start = min(data, chunk.dictionary_page_offset or data)
    end = min(start + chunk.total_compressed_size, file_bytes)
    return (start, end) if 0 <= start < end else (0, 0)


def read_batches(
    file: ParquetSource,
    names: Sequence[str],
    *,
    size_bytes: int,
    start: Position,
    block_bytes: int,
) -> Iterator[RowBlock]:
    """The rows of one row group, with the columns `names` alone.

    `start.offset_bytes` says which group; `size_bytes` is shared out among the blocks. A block
    takes some `BATCH_BLOCKS * block_bytes` of memory, twice that at most unless it is one row: see
    `parquet_batches`.
    """
    group = start.offset_bytes
    total = max(1, file.metadata.row_group(group).num_rows)
    bytes_max = min(BATCH_BLOCKS * block_bytes, BATCH_BYTES_MAX)
    done = 0
    for batch in bounded_batches(file, group, names, bytes_max):
        end = done + batch.num_rows
        share = size_bytes * end // total - size_bytes * done // total
        position = Position(group, start.ordinal + done, start.line + done)
        yield RowBlock(batch, position, share)
        done = end
