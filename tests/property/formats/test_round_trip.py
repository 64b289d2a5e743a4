"""Cells of every type that are decoded, written to a file and read again stay the same."""

from __future__ import annotations

import io
from collections.abc import Collection, Sequence

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringhaul.cql.cells import NULL_LENGTH
from ringhaul.cql.decode import PageDecoder
from ringhaul.cql.empties import EMPTIABLE, marked_column
from ringhaul.cql.join import Column
from ringhaul.cql.nested import encode_column, encode_json
from ringhaul.cql.text_format import TextFormat
from ringhaul.cql.typed import encode_typed, refusal
from ringhaul.cql.types import CqlType
from ringhaul.formats.csv_read import read_block
from ringhaul.formats.header import read_header
from ringhaul.formats.jsonl_read import line_dialect, read_objects
from ringhaul.formats.parquet_file import ParquetSource
from ringhaul.formats.parquet_read import read_batches
from ringhaul.formats.pieces import Position
from ringhaul.formats.split import START, read_blocks
from ringhaul.formats.write import OutputFormat
from ringhaul.formats.write.writer import open_writer
from tests.cases import each
from tests.property.cql.any_values import EXTREMES, cell_of, types, values
from tests.property.cql.pages import PROTOCOL, Pairs, driver_type, page

TEXT = TextFormat()
CSV = OutputFormat(kind="csv").dialect
Cell = bytes | None
MIB = 2**20


def read_csv(data: bytes, kinds: Sequence[CqlType]) -> list[list[Cell]]:
    stream = io.BytesIO(data)
    names, start = read_header(stream, CSV)
    stream.seek(start.offset_bytes)
    found: list[list[Cell]] = [[] for _ in kinds]
    for block in read_blocks(stream, CSV, block_bytes=2**16, start=start):
        read = read_block(block, CSV, names, names)
        assert not read.rejects
        for place, column in enumerate(read.columns):
            found[place] += cells(
                encode_column(kinds[place], column, TEXT, null_length=NULL_LENGTH)
            )
    return found


def read_jsonl(data: bytes, kinds: Sequence[CqlType]) -> list[list[Cell]]:
    dialect = line_dialect(CSV)
    names = [f"c{place}" for place in range(len(kinds))]
    found: list[list[Cell]] = [[] for _ in kinds]
    for block in read_blocks(io.BytesIO(data), dialect, block_bytes=2**16, start=START):
        read = read_objects(block, dialect, names, None)
        assert not read.rejects
        for place, column in enumerate(read.columns):
            found[place] += cells(encode_json(kinds[place], column, TEXT, null_length=NULL_LENGTH))
    return found


def read_parquet(
    data: bytes, kinds: Sequence[CqlType], block_bytes: int = 2**16
) -> list[list[Cell]]:
    file = ParquetSource(pa.BufferReader(data))
    names = file.schema_arrow.names
    found: list[list[Cell]] = [[] for _ in kinds]
    for group in range(file.num_row_groups):
        for block in read_batches(
            file, names, size_bytes=1, start=Position(group, 0, 1), block_bytes=block_bytes
        ):
            for place, column in enumerate(block.batch.columns):
                assert refusal(kinds[place], column.type) is None
                found[place] += cells(
                    encode_typed(kinds[place], column, TEXT, null_length=NULL_LENGTH)
                )
    return found


def read_parquet_in_parts(data: bytes, kinds: Sequence[CqlType]) -> list[list[Cell]]:
    """Read with blocks of one or a few rows, which are often slices."""
    return read_parquet(data, kinds, block_bytes=8)


#: Format -> types whose empty values it can hold.
EMPTIES: dict[str, Collection[str]] = {
    "csv": EMPTIABLE,
    "jsonl": EMPTIABLE,
    "parquet": (),
    "parquet in parts": (),
}
READERS = {
    "csv": read_csv,
    "jsonl": read_jsonl,
    "parquet": read_parquet,
    "parquet in parts": read_parquet_in_parts,
}


def cells(column: Column) -> list[Cell]:
    assert not column.faults
    lengths, found = column.cells.lengths, column.cells.values.to_pylist()
    return [
        None if length < 0 else cell for length, cell in zip(lengths.tolist(), found, strict=True)
    ]


def assert_comes_back(
    form: str, kinds: Sequence[CqlType], wanted: Sequence[Sequence[Cell]], cuts: Sequence[int]
) -> None:
    """Check the round trip of `wanted`, cells by column; `cuts`: where the writes are cut."""
    names = [f"c{place}" for place in range(len(kinds))]
    batch = PageDecoder(names, kinds, marks=True).decode(page(wanted))
    marked = [marked_column(batch, name) for name in names]
    batch = pa.RecordBatch.from_arrays(marked, names)
    stream = io.BytesIO()
    writer = open_writer(OutputFormat(kind=form.split()[0]), stream, names, kinds)
    for start, end in zip([0, *cuts], [*cuts, batch.num_rows], strict=True):
        writer.write(batch.slice(start, end - start))
    writer.close()
    assert READERS[form](stream.getvalue(), kinds) == [list(column) for column in wanted]


@pytest.mark.parametrize("form", READERS)
@settings(max_examples=200, deadline=None)
@given(st.data())
def test_cells_come_back(form: str, data: st.DataObject) -> None:
    kinds = data.draw(st.lists(types(depth_max=3), min_size=1, max_size=3))
    # A row of one null is a blank line in CSV, which is not a record.
    kinds.append(CqlType("int"))
    rows = data.draw(
        st.lists(
            st.tuples(
                *(st.none() | values(kind, EMPTIES[form]) for kind in kinds[:-1]),
                st.integers(0, 9),
            ),
            min_size=1,
            max_size=6,
        )
    )
    wanted = [
        [cell_of(kind, value) for value in column]
        for kind, column in zip(kinds, zip(*rows, strict=True), strict=True)
    ]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=2)))
    assert_comes_back(form, kinds, wanted, cuts)


@each("form", READERS)
@each("name", EXTREMES)
def test_extremes_come_back(form: str, name: str) -> None:
    kind = CqlType(name)
    kinds = [kind, CqlType("list", (kind,)), CqlType("map", (kind, kind)), CqlType("int")]
    extremes = EXTREMES[name]
    columns = [
        extremes,
        [[value, value] for value in extremes],
        [Pairs([(value, value)]) for value in extremes],
        range(len(extremes)),
    ]
    wanted = []
    for of, column in zip(kinds, columns, strict=True):
        # Serialised by the driver, which also checks `cell_of`.
        wanted.append([driver_type(of).to_binary(value, PROTOCOL) for value in column])
        assert [cell_of(of, value) for value in column] == wanted[-1]
    assert_comes_back(form, kinds, wanted, [])


#: Worst cases for spelling a value or finding its end in some format: 2 MiB each.
LARGE = [
    ("\0\x01" * MIB).encode(),
    (",\"\n\r\n'\\\t" * (MIB // 4)).encode(),
    ("\r" * (2 * MIB)).encode(),
    ('"' * (2 * MIB)).encode(),
    ("\\" * (2 * MIB)).encode(),
    ("\n-- no comment\n# nor this\n\\.\n" * (MIB // 16)).encode(),
    ("\u202e\u2066\ufeff\u2028" * (MIB // 6)).encode(),
    b"x" * (5 * MIB),
]


@pytest.mark.parametrize("form", READERS)
def test_large_values_come_back(form: str) -> None:
    text, blob = CqlType("text"), CqlType("blob")
    nested = CqlType("list", (CqlType("map", (text, blob)),))
    kinds = [text, blob, nested, CqlType("int")]
    wanted: list[list[Cell]] = [[], [], [], []]
    for number, large in enumerate(LARGE):
        key = large[: MIB // 2].decode(errors="ignore")
        wanted[0].append(large)
        wanted[1].append(large[::-1])
        wanted[2].append(cell_of(nested, [Pairs([(key, large[-MIB:]), ("", b"")])]))
        wanted[3].append(cell_of(kinds[3], number))
    assert_comes_back(form, kinds, wanted, [3])
