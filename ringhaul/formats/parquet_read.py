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
from ringhaul.formats.pieces import Position

BATCH_ROWS = 64 * 1024


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


def group_window(metadata: pq.FileMetaData, group: int, columns: Sequence[str]) -> int:
    """Where a row group ends in the file, if most of it is wanted; 0: it is read here and there."""
    end = wanted = total = 0
    about = metadata.row_group(group)
    for number in range(about.num_columns):
        chunk = about.column(number)
        first = chunk.data_page_offset
        if chunk.dictionary_page_offset is not None:
            first = min(first, chunk.dictionary_page_offset)
        size = chunk.total_compressed_size
        end, total = max(end, first + size), total + size
        if any(f"{chunk.path_in_schema}.".startswith(f"{name}.") for name in columns):
            wanted += size
    return end if 2 * wanted >= total else 0


def read_batches(
    file: pq.ParquetFile, names: Sequence[str], *, size_bytes: int, start: Position
) -> Iterator[RowBlock]:
    """The rows of one row group, with the columns `names` alone.

    `start.offset_bytes` says which group; `size_bytes` is shared out among the blocks.
    """
    group = start.offset_bytes
    total = max(1, file.metadata.row_group(group).num_rows)
    done = 0
    for batch in file.iter_batches(
        batch_size=BATCH_ROWS, row_groups=[group], columns=list(names), use_threads=False
    ):
        end = done + batch.num_rows
        share = size_bytes * end // total - size_bytes * done // total
        position = Position(group, start.ordinal + done, start.line + done)
        # pyarrow takes a name for the beginning of a path too: others may have come along.
        yield RowBlock(batch.select(list(names)), position, share)
        done = end
