"""Parquet files as units and blocks: a unit is a row group, a block some of its rows.

Positions differ from positions in text: the offset is the number of the row group, the line is the
number of the row in the file, from 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ringhaul.errors import SourceCorrupt
from ringhaul.formats.parquet_batches import bounded_batches
from ringhaul.formats.parquet_file import ParquetSource
from ringhaul.formats.parquet_footer import Footer, Unreadable
from ringhaul.formats.parquet_leaves import leaves_of, place_of
from ringhaul.formats.parquet_sure_rows import PagesTooLarge
from ringhaul.formats.pieces import Position
from ringhaul.storage.lanes import LANES_AHEAD, join_lanes

#: Bytes of a batch in memory, as a multiple of a text block. Above 1 because typed rows are cheaper
#: to encode; with blocks of 2 MiB, rows of up to 128 bytes still come `BATCH_ROWS` at a time.
BATCH_BLOCKS = 4
#: Upper bound for any size of block: a writer keeps three batches in several forms each, and
#: offsets into joined rows have 31 bits.
BATCH_BYTES_MAX = 256 * 2**20
#: Stored bytes of a row group behind a URL to hold. Writers usually make groups of up to 128 MiB.
HELD_BYTES = 64 * 2**20
#: S3 takes 20 to 50 ms to answer, as long as it takes to send 2 MiB. So a group of more than 32
#: columns may hold more: 2 MiB for each.
COLUMN_BYTES = 2 * 2**20
#: Mark of a field whose values were INT96. Beyond some 292,000 years they become other times in
#: microseconds, so only the years 1 to 9999 are taken, which writers of INT96 have.
_INT96 = b"ringhaul.int96"
_FIRST_US, _END_US = -62_135_596_800_000_000, 253_402_300_800_000_000


class RowBlock(NamedTuple):
    """Some rows of one row group."""

    batch: pa.RecordBatch
    position: Position
    #: The block's share of the row group's bytes in the file.
    size_bytes: int
    defect: None = None

    @property
    def records_count(self) -> int:
        return int(self.batch.num_rows)


class RowGroup(NamedTuple):
    """A unit: what the footer says about a row group."""

    number: int
    rows_count: int
    #: Stored bytes of its columns.
    size_bytes: int
    first_ordinal: int
    first_row: int  #: number in the file, from 1


@contextmanager
def parquet_errors(path: str) -> Iterator[None]:
    """Turn what pyarrow raises about a file's bytes into `SourceCorrupt`."""
    try:
        yield
    except (PagesTooLarge, Unreadable) as error:
        raise SourceCorrupt(f"{path}: {error}") from error
    except (pa.ArrowException, OSError, EOFError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # an error of the file system, not of the file's content
        words = str(error).strip().splitlines()[0].rstrip(".") if str(error) else "no reason given"
        raise SourceCorrupt(
            f"{path}: cannot be read as Parquet: {words}; it is cut short, damaged, or misnamed"
        ) from error


def row_groups(footer: Footer, first_ordinal: int) -> Iterator[RowGroup]:
    """Yield the row groups of a file in order; records are numbered from `first_ordinal`."""
    row = 0
    for number in range(footer.groups_count):
        rows_count = footer.rows_of(number)
        size_bytes = footer.stored_bytes(number)
        yield RowGroup(number, rows_count, size_bytes, first_ordinal + row, row + 1)
        row += rows_count


class Reads(NamedTuple):
    """How to read a row group behind a URL: sequentially, or its columns side by side."""

    #: Where the group ends in the file if it is read sequentially; 0: it is not.
    window_bytes: int = 0
    #: [start, end) in the file of each range that is read side by side, in column order.
    lanes: Sequence[tuple[int, int]] = ()
    #: Largest size of one request for a part of a lane.
    piece_bytes: int = 0


def group_reads(footer: Footer, group: int, columns: Sequence[str], file_bytes: int) -> Reads:
    """Return how to read the columns `columns` of a row group; pyarrow asks in this order.

    A group that fits in memory is read sequentially, if most of it is wanted. Otherwise its
    columns are read side by side, in pieces sized so that one of each column and those read ahead
    together take `HELD_BYTES`, or `COLUMN_BYTES` for each of many columns.
    """
    group_end = total_bytes = 0
    wanted = []
    for path, span in zip(footer.paths, footer.spans(group), strict=True):
        start, end = _span(*span, file_bytes)
        group_end, total_bytes = max(group_end, end), total_bytes + end - start
        place = place_of(path, columns)
        if place is not None and start < end:
            wanted.append((place, start, end))
    wanted_bytes = sum(end - start for _, start, end in wanted)
    if wanted_bytes <= HELD_BYTES and 2 * wanted_bytes >= total_bytes:
        return Reads(window_bytes=group_end)
    held_bytes = max(HELD_BYTES, COLUMN_BYTES * len(wanted))
    piece_bytes = held_bytes // (len(wanted) + LANES_AHEAD)
    lanes = join_lanes([(start, end) for _, start, end in sorted(wanted)], piece_bytes)
    return Reads(lanes=lanes, piece_bytes=piece_bytes)


def _span(start: int, stored_bytes: int, file_bytes: int) -> tuple[int, int]:
    """Return [start, end) of a column, within the file whatever a damaged footer says."""
    end = min(start + stored_bytes, file_bytes)
    return (start, end) if 0 <= start < end else (0, 0)


def wild_times(batch: pa.RecordBatch) -> dict[int, str]:
    """Return by row the column with an INT96 timestamp outside the years that are read exactly."""
    found: dict[int, str] = {}
    for field, column in zip(batch.schema, batch.columns, strict=True):
        if not (field.metadata and _INT96 in field.metadata):
            continue
        least, most = pc.min_max(column.cast(pa.int64())).values()
        if least.is_valid and (least.as_py() < _FIRST_US or most.as_py() >= _END_US):
            values = column.cast(pa.int64()).fill_null(0).to_numpy()
            for row in np.flatnonzero((values < _FIRST_US) | (values >= _END_US)).tolist():
                found.setdefault(row, field.name)
    return found


def _int96_marked(
    file: ParquetSource, group: int, names: Sequence[str]
) -> Callable[[pa.Schema], pa.Schema] | None:
    """Return what marks the columns of INT96 timestamps, outside of other values, in a schema."""
    places = {
        leaf.place
        for leaf in leaves_of(file.footer, group, names)
        if leaf.physical == "INT96" and leaf.path == names[leaf.place]
    }

    def marked(schema: pa.Schema) -> pa.Schema:
        for place in places:
            field = schema.field(place)
            schema = schema.set(place, field.with_metadata({**(field.metadata or {}), _INT96: b""}))
        return schema

    return marked if places else None


def read_batches(
    file: ParquetSource,
    names: Sequence[str],
    *,
    size_bytes: int,
    start: Position,
    block_bytes: int,
) -> Iterator[RowBlock]:
    """Yield the rows of one row group, with only the columns `names`.

    `start.offset_bytes` is the group's number; `size_bytes` is divided among the blocks. A block
    takes about `BATCH_BLOCKS * block_bytes` of memory, at most twice that unless it is one row:
    see `parquet_batches`.
    """
    group = start.offset_bytes
    total = max(1, file.footer.rows_of(group))
    bytes_max = min(BATCH_BLOCKS * block_bytes, BATCH_BYTES_MAX)
    done = 0
    marked = _int96_marked(file, group, names)
    for batch in bounded_batches(file, group, names, bytes_max):
        if marked is not None:
            batch = pa.RecordBatch.from_arrays(batch.columns, schema=marked(batch.schema))
        end = done + batch.num_rows
        share = size_bytes * end // total - size_bytes * done // total
        position = Position(group, start.ordinal + done, start.line + done)
        yield RowBlock(batch, position, share)
        done = end
