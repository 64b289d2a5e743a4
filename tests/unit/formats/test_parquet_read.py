"""Row groups come in blocks of bounded memory, whatever the width of their rows."""

from __future__ import annotations

import io
import random
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ringhaul.formats.parquet_batches import BATCH_ROWS
from ringhaul.formats.parquet_file import ParquetSource
from ringhaul.formats.parquet_footer import Footer, Stored, read_footer
from ringhaul.formats.parquet_read import (
    BATCH_BLOCKS,
    Reads,
    RowBlock,
    group_reads,
    read_batches,
)
from ringhaul.formats.pieces import Position
from ringhaul.storage.lanes import LANES_AHEAD

BLOCK_BYTES = 2**21
BATCH_BYTES = BATCH_BLOCKS * BLOCK_BYTES
START = Position(0, 500, 7)


def blocks(
    columns: Mapping[str, pa.Array], names: Sequence[str], block_bytes: int = BLOCK_BYTES
) -> list[RowBlock]:
    """The blocks of a file of one row group."""
    sink = io.BytesIO()
    pq.write_table(pa.table(dict(columns)), sink)
    with ParquetSource(pa.BufferReader(sink.getvalue())) as file:
        assert file.num_row_groups == 1
        found = read_batches(file, names, size_bytes=9999, start=START, block_bytes=block_bytes)
        return list(found)


def check_whole(found: Sequence[RowBlock], name: str, expected: pa.Array) -> None:
    """Every row once, in order, numbered without a gap, and the group's bytes shared out."""
    assert pa.chunked_array([block.batch[name] for block in found]).equals(
        pa.chunked_array([expected])
    )
    ordinal, line = START.ordinal, START.line
    for block in found:
        assert block.position == Position(START.offset_bytes, ordinal, line)
        ordinal, line = ordinal + block.records_count, line + block.records_count
    assert sum(block.size_bytes for block in found) == 9999


def test_wide_rows_come_a_few_at_a_time() -> None:
    # Given 6,000 rows of 10 KB, all different: 60 MB
    noise = random.Random(1)
    rows = pa.array([noise.randbytes(10_000) for _ in range(6000)])
    found = blocks({"v": rows}, ["v"])
    # Then no block is far above its 8 MiB
    assert max(block.batch.nbytes for block in found) < 1.1 * BATCH_BYTES
    assert len(found) < 10
    check_whole(found, "v", rows)


def test_rows_that_share_a_wide_value_come_a_few_at_a_time() -> None:
    # Given rows that the file stores as dictionary indices of three values
    rows = pa.array([str(i % 3) * 10_000 for i in range(6000)])
    found = blocks({"v": rows}, ["v"])
    assert max(block.batch.nbytes for block in found) <= 2 * BATCH_BYTES
    check_whole(found, "v", rows)


def test_dictionary_indices_count_with_the_size_of_their_values() -> None:
    # Given a column that pyarrow reads as a dictionary
    rows = pa.array([str(i % 3) * 10_000 for i in range(6000)]).dictionary_encode()
    found = blocks({"v": rows}, ["v"])
    assert pa.types.is_dictionary(found[0].batch["v"].type)
    assert max(block.records_count for block in found) * 10_000 <= 2 * BATCH_BYTES
    assert sum(block.records_count for block in found) == 6000


def test_a_few_wide_rows_among_many_narrow_ones_come_a_few_at_a_time() -> None:
    # Given 400 rows of 100 KB after 40,000 tiny ones: a mean of 1 KB by the footer
    noise = random.Random(2)
    rows = pa.array([b"x"] * 40_000 + [noise.randbytes(100_000) for _ in range(400)])
    found = blocks({"v": rows}, ["v"])
    assert max(block.batch.nbytes for block in found) <= 2 * BATCH_BYTES
    check_whole(found, "v", rows)


def test_a_type_whose_slices_count_as_the_whole_is_not_cut_to_pieces() -> None:
    # Given rows that pyarrow reads as views, narrow ones before wide ones
    noise = random.Random(3)
    values = [b"x"] * 40_000 + [noise.randbytes(100_000) for _ in range(400)]
    rows = pa.array(values, pa.binary_view())
    assert rows.slice(0, 1).nbytes > 2 * BATCH_BYTES
    found = blocks({"v": rows}, ["v"])
    assert 1 < len(found) < 20
    check_whole(found, "v", rows)


def test_a_row_is_never_cut() -> None:
    rows = pa.array([b"x" * 5_000, b"y" * 5_000])
    found = blocks({"v": rows}, ["v"], block_bytes=1)
    assert [block.records_count for block in found] == [1, 1]
    check_whole(found, "v", rows)


@pytest.mark.parametrize("rows_count", [BATCH_ROWS - 1, BATCH_ROWS + 1])
def test_narrow_rows_come_many_at_a_time_whatever_else_the_file_holds(rows_count: int) -> None:
    # Given a wide column beside the narrow one that is wanted; their names have a common prefix
    rows = pa.array(range(rows_count))
    columns = {"v": rows, "v2": pa.array([b"%01000d" % i for i in range(rows_count)])}
    found = blocks(columns, ["v"])
    assert [block.records_count for block in found] == [
        min(rows_count, BATCH_ROWS),
        *([1] if rows_count > BATCH_ROWS else []),
    ]
    check_whole(found, "v", rows)


def test_a_group_without_rows_has_no_block() -> None:
    assert blocks({"v": pa.array([], pa.int64())}, ["v"]) == []


def four_columns() -> tuple[Footer, list[tuple[int, int]], int]:
    """A file of one row group: its footer, the byte ranges of its columns, and its size."""
    sink = io.BytesIO()
    values = pa.array(range(10_000), pa.int64())
    pq.write_table(pa.table({name: values for name in "abcd"}), sink, compression="none")
    metadata = pq.read_metadata(sink)
    chunks = [metadata.row_group(0).column(number) for number in range(4)]
    places = [
        (chunk.dictionary_page_offset, chunk.dictionary_page_offset + chunk.total_compressed_size)
        for chunk in chunks
    ]
    data = sink.getvalue()
    footer = read_footer(Stored(lambda at, size: data[at : at + size], len(data)))
    return footer, places, len(data)


def test_wanted_columns_are_read_in_sequence_or_side_by_side(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    footer, places, file_bytes = four_columns()
    assert group_reads(footer, 0, ["d", "a"], file_bytes) == Reads(window_bytes=places[3][1])
    # Less than half of it, or more than may be held: side by side, in the order in which
    # pyarrow requests them; adjacent columns are merged up to the size of a piece
    (a,) = group_reads(footer, 0, ["a"], file_bytes).lanes
    assert a == places[0]
    monkeypatch.setattr("ringhaul.formats.parquet_read.HELD_BYTES", 100_000)
    monkeypatch.setattr("ringhaul.formats.parquet_read.COLUMN_BYTES", 1 << 20)
    reads = group_reads(footer, 0, ["d", "a", "b"], file_bytes)
    assert reads.lanes == [places[3], (places[0][0], places[1][1])]
    assert reads.piece_bytes == (3 << 20) // (3 + LANES_AHEAD)


def test_a_wrong_footer_leads_to_no_read_outside_the_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ringhaul.formats.parquet_read.HELD_BYTES", 1)
    footer, places, _ = four_columns()
    end = places[1][0] + 10
    assert group_reads(footer, 0, list("abcd"), end).lanes == [(places[0][0], end)]
    assert not group_reads(footer, 0, ["d"], end).lanes
