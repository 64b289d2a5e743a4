"""Rows written in any format are read back as the same rows."""

import bz2
import gzip
import io
import json
import lzma
import uuid
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from ringhaul.cql.spell import text_of
from ringhaul.cql.types import CqlType, parse_type
from ringhaul.formats.csv_read import read_block
from ringhaul.formats.header import read_header
from ringhaul.formats.split import START, read_blocks
from ringhaul.formats.write import OutputFormat, rows
from ringhaul.formats.write.writer import open_writer
from tests.cases import each
from tests.property.cql.arrow_values import TORTURE, column, plain, types, values_of

OPENERS = {
    "none": lambda data: data,
    "gzip": gzip.decompress,
    "bz2": bz2.decompress,
    "xz": lzma.decompress,
    "zstd": lambda data: pa.input_stream(pa.py_buffer(data), compression="zstd").read(),
}
FORMATS = st.builds(
    dict,
    header=st.booleans(),
    compression=st.sampled_from(sorted(OPENERS)),
    delimiter=st.sampled_from([",", ";", "\t", "|", ":", "-", "0", "e", " ", "||", "-:-", "<|<"]),
    quote=st.sampled_from(['"', "'", "1", "."]),
    null=st.sampled_from(["", "NULL", "\\N", "null", "7", "NaN", "true", "é"]),
).filter(
    lambda o: (
        o["quote"] not in o["delimiter"] and not {*o["delimiter"], o["quote"]} & set(o["null"])
    )
)


def written(
    fmt: OutputFormat, types: Sequence[CqlType], batches: Sequence[pa.RecordBatch]
) -> bytes:
    stream = io.BytesIO()
    writer = open_writer(fmt, stream, batches[0].schema.names, types)
    for batch in batches:
        writer.write(batch)
    writer.close()
    assert not stream.closed
    return stream.getvalue()


@st.composite
def tables(
    draw: st.DrawFn, columns_min: int = 1
) -> tuple[list[CqlType], list[list[Any]], list[pa.RecordBatch]]:
    """Types, rows, and the rows as batches."""
    count = draw(st.integers(columns_min, 4))
    cql_types = draw(st.lists(types(1), min_size=count, max_size=count))
    names = draw(st.lists(TORTURE.map(clean), min_size=count, max_size=count, unique=True))
    rows = draw(st.lists(st.tuples(*[st.none() | values_of(t) for t in cql_types]), max_size=6))
    cut = draw(st.integers(0, len(rows)))
    batches = [
        pa.record_batch(
            [column(t, [row[i] for row in part]) for i, t in enumerate(cql_types)], names=names
        )
        for part in (rows[:cut], rows[cut:])
    ]
    return cql_types, [list(row) for row in rows], batches


def clean(text: str) -> str:
    """A name as the header reader returns it."""
    return "n" + text.replace("\0", "").rstrip()


FEW_BYTES = st.text(st.sampled_from(["a", ",", "é", "\n"]), max_size=3)


@given(st.data())
def test_rows_of_kernels_are_those_of_arrow(data: st.DataObject) -> None:
    count, width = data.draw(st.integers(0, 5)), data.draw(st.integers(1, 4))
    texts = st.lists(st.none() | TORTURE, min_size=count + 2, max_size=count + 2)
    columns = [pa.array(data.draw(texts), pa.string())[1:-1] for _ in range(width)]
    before = data.draw(st.lists(FEW_BYTES, min_size=width, max_size=width))
    after, null = data.draw(FEW_BYTES), data.draw(FEW_BYTES)
    found = rows.by_kernels(columns, before, after, null)
    found.validate(full=True)
    assert found.to_pylist() == rows.by_arrow(columns, before, after, null).to_pylist()


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_csv_is_read_back_as_the_same_texts(data: st.DataObject) -> None:
    fmt = OutputFormat(**data.draw(FORMATS))
    # A row of one null is an empty line, which is not a record.
    cql_types, _, batches = data.draw(tables(columns_min=1 if fmt.null else 2))
    text = OPENERS[fmt.compression](written(fmt, cql_types, batches))
    expected = [
        [None if cell is None else cell.encode() for cell in row]
        for batch in batches
        for row in zip(
            *[text_of(t, c).to_pylist() for t, c in zip(cql_types, batch.columns, strict=True)],
            strict=True,
        )
    ]
    names, start, stream = batches[0].schema.names, START, io.BytesIO(text)
    if fmt.header:
        assert text, "a header even without rows"
        names, start = read_header(stream, fmt.dialect)
        assert names == batches[0].schema.names
        stream.seek(start.offset_bytes)
    found: list[list[bytes | None]] = []
    for block in read_blocks(stream, fmt.dialect, block_bytes=2**16, start=start):
        read = read_block(block, fmt.dialect, names, names)
        assert not read.rejects
        found += [list(row) for row in zip(*[c.to_pylist() for c in read.columns], strict=True)]
    assert found == expected


@settings(max_examples=300, deadline=None)
@given(tables(), st.sampled_from(sorted(OPENERS)))
def test_json_lines_are_read_by_any_json_reader(table: Any, compression: str) -> None:
    cql_types, rows, batches = table
    fmt = OutputFormat(kind="jsonl", compression=compression)
    lines = OPENERS[compression](written(fmt, cql_types, batches)).decode().split("\n")
    assert lines.pop() == ""
    expected = [
        {
            name: plain(cql_type, value, spelled)
            for name, cql_type, value in zip(batches[0].schema.names, cql_types, row, strict=True)
        }
        for row in rows
    ]
    assert [json.dumps(json.loads(line)) for line in lines] == [json.dumps(r) for r in expected]


def spelled(cql_type: CqlType, value: Any) -> str:
    text: str = text_of(cql_type, column(cql_type, [value]))[0].as_py()
    return text


@settings(max_examples=300, deadline=None)
@given(tables(), st.sampled_from(["none", "snappy", "zstd"]))
def test_parquet_is_read_back_as_the_same_columns(table: Any, compression: str) -> None:
    cql_types, _, batches = table
    fmt = OutputFormat(kind="parquet", compression=compression)
    found = pq.read_table(pa.BufferReader(written(fmt, cql_types, batches)))
    assert found.schema.names == batches[0].schema.names
    whole = pa.Table.from_batches(batches)
    for name, cql_type in zip(found.schema.names, cql_types, strict=True):
        assert found.schema.field(name).metadata[b"cql_type"] == str(cql_type).encode()
        values, before = found[name], whole[name]
        if cql_type.name in ("uuid", "timeuuid"):
            assert values.type == pa.uuid()
            values = values.cast(pa.binary(16))
        assert values.type == before.type
        # Compare as text: NaNs are equal there, and some dates are beyond Python's range.
        assert [text_of(cql_type, chunk).to_pylist() for chunk in (values.combine_chunks(),)] == [
            text_of(cql_type, pa.concat_arrays(before.chunks)).to_pylist()
        ]


def test_an_empty_text_beside_a_null_with_bytes_beneath_is_quoted() -> None:
    """A transform may return nulls with bytes beneath, which must be ignored."""
    buffers = [
        pa.py_buffer(b"\x02"),
        pa.py_buffer(np.array([0, 1, 1], np.int32)),
        pa.py_buffer(b"x"),
    ]
    texts = pa.StringArray.from_buffers(2, buffers[1], buffers[2], buffers[0])
    assert texts.to_pylist() == [None, ""]
    batch = pa.record_batch([texts, pa.array(["a", "b"])], names=["t", "u"])
    fmt = OutputFormat(header=False)
    assert written(fmt, [CqlType("text")] * 2, [batch]) == b',a\n"",b\n'


def test_parquet_has_dictionaries_where_values_repeat() -> None:
    """If all values differ, a dictionary takes time and makes the file larger."""
    columns = {
        "key": (CqlType("uuid"), [uuid.uuid4().bytes for _ in range(3000)]),
        "number": (CqlType("bigint"), list(range(3000))),
        "minute": (CqlType("int"), [number % 1440 for number in range(3000)]),
        "few": (CqlType("text"), [f"sensor-{number % 50}" for number in range(3000)]),
        "one": (CqlType("int"), [7, *[None] * 2999]),
        "none": (CqlType("double"), [None] * 3000),
        "a.b": (parse_type("list<bigint>"), [[number] for number in range(3000)]),
    }
    batch = pa.record_batch([column(*one) for one in columns.values()], names=list(columns))
    types = [cql_type for cql_type, _ in columns.values()]
    data = written(OutputFormat(kind="parquet"), types, [batch])
    group = pq.read_metadata(pa.BufferReader(data)).row_group(0)
    parts = [group.column(number) for number in range(len(columns))]
    assert {part.path_in_schema: part.has_dictionary_page for part in parts} == {
        "key": False,
        "number": False,
        "minute": True,
        "few": True,
        "one": True,
        "none": True,
        "a.b.list.element": True,
    }


@each("name", ["int", "bigint", "timestamp", "date", "time"])
@each("compression", ["none", "zstd"])
def test_parquet_has_delta_encoding_for_whole_numbers_that_rarely_repeat(
    name: str, compression: str
) -> None:
    """Across the whole range, where a delta exceeds the type, and with nulls in between."""
    arrow = CqlType(name).arrow()
    draw = np.random.default_rng(7)
    width = arrow.bit_width
    numbers = draw.integers(-(2 ** (width - 1)), 2 ** (width - 1), 200_000, dtype=f"int{width}")
    numbers[1:400:2], numbers[0:400:2] = numbers.max(), numbers.min()
    absent = draw.random(numbers.size) < 0.1
    values = pa.array(numbers, pa.int32() if width == 32 else pa.int64(), mask=absent).view(arrow)
    assert values.null_count > 10_000
    batch = pa.record_batch([values, values], names=["n", "n.m"])
    fmt = OutputFormat(kind="parquet", compression=compression)
    data = written(fmt, [CqlType(name)] * 2, [batch])
    meta = pq.read_metadata(pa.BufferReader(data))
    assert meta.num_row_groups > 1
    for group in (meta.row_group(number) for number in range(meta.num_row_groups)):
        for part in (group.column(0), group.column(1)):
            assert "DELTA_BINARY_PACKED" in part.encodings
            assert not part.has_dictionary_page
    found = pq.read_table(pa.BufferReader(data))
    for column_name in ("n", "n.m"):
        assert found[column_name].combine_chunks().equals(values)
