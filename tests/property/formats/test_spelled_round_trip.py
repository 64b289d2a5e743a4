"""What is written with a set of options is read back with the same set, whatever the values."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ringhaul.cql.cells import NULL_LENGTH
from ringhaul.cql.decode import PageDecoder
from ringhaul.cql.empties import EMPTIABLE, marked_column
from ringhaul.cql.nested import encode_column, encode_json
from ringhaul.cql.text_format import TextFormat
from ringhaul.cql.types import CqlType
from ringhaul.errors import UsageError
from ringhaul.formats.csv_read import read_block
from ringhaul.formats.header import read_header
from ringhaul.formats.jsonl_read import line_dialect, read_objects
from ringhaul.formats.split import START, read_blocks
from ringhaul.formats.write import OutputFormat
from ringhaul.formats.write.writer import open_writer
from tests.property.cql.any_values import cell_of, types, values
from tests.property.cql.pages import page
from tests.property.formats.test_round_trip import Cell, cells

#: Patterns that show all of a value; and none, for ISO 8601.
TIMESTAMPS = (
    "%Y-%m-%d %H:%M:%S.%f%z",
    "dd/MM/yyyy HH:mm:ss.SSS",
    "yyyy-MM-dd'T'HH:mm:ss[.SSS]XXX'['VV']'",
    "cccc, d MMMM uuuu h:mm:ss.SSS a z",
    "%a %d %b %y %I:%M:%S.%f %p",
    *("ns", "us", "ms", "s", "min", "h", "d"),
)
DATES = ("%Y%m%d", "d.M.yyyy", "EEE d MMM yy", "%A, %d %B %Y", "d", "h", "s")
TIMES = ("HHmmssSSSSSSSSS", "%I:%M:%S.%f %p", "h:mm:ss.SSSSSSSSS a", "ns", "us", "s", "min")


def some(patterns: Sequence[str]) -> st.SearchStrategy[tuple[str, ...]]:
    return st.just(()) | st.sampled_from(patterns).map(lambda pattern: (pattern,))


FORMATS = st.builds(
    TextFormat,
    timestamp_formats=some(TIMESTAMPS),
    date_formats=some(DATES),
    time_formats=some(TIMES),
    epoch=st.sampled_from(
        ["1970-01-01", "2000-01-01T12:34:56Z", "1904-01-01", "2000-01-01T00:00:00+05:30"]
    ),
    timezone=st.sampled_from(["UTC", "Europe/Paris", "America/St_Johns", "Asia/Kathmandu"]),
    locale=st.sampled_from(["en", "fr", "de", "pl", "pt_BR"]),
    true_words=st.sampled_from([("true", "1"), ("oui, ça", "1"), ("Y",)]),
    false_words=st.sampled_from([("false", "0"), ('"non"',), ("",)]),
    blob=st.sampled_from(["hex", "base64", "any"]),
    decimal_sep=st.sampled_from([".", ","]),
    thousands_sep=st.sampled_from(["", " ", "'", "_"]),
)
TEXT_TYPES = ("timestamp", "date", "time", "boolean", "blob", "int", "decimal", "double", "varint")


def batch_of(kinds: Sequence[CqlType], wanted: Sequence[Sequence[Cell]]) -> pa.RecordBatch:
    names = [f"c{place}" for place in range(len(kinds))]
    batch = PageDecoder(names, kinds, marks=True).decode(page(wanted))
    return pa.RecordBatch.from_arrays([marked_column(batch, name) for name in names], names)


def written(fmt: OutputFormat, kinds: Sequence[CqlType], batch: pa.RecordBatch) -> bytes:
    stream = io.BytesIO()
    writer = open_writer(fmt, stream, batch.schema.names, kinds)
    writer.write(batch.slice(0, 1))
    writer.write(batch.slice(1))
    writer.close()
    return stream.getvalue()


def read(
    data: bytes, fmt: OutputFormat, text: TextFormat, kinds: Sequence[CqlType]
) -> list[list[Cell]]:
    found: list[list[Cell]] = [[] for _ in kinds]
    stream, names = io.BytesIO(data), [f"c{place}" for place in range(len(kinds))]
    if fmt.encoding is not None:
        stream = io.BytesIO(data.decode(fmt.encoding).encode())
    if fmt.kind == "csv":
        dialect = replace(fmt.dialect, encoding="utf-8")
        names, start = read_header(stream, dialect)
        stream.seek(start.offset_bytes)
        for block in read_blocks(stream, dialect, block_bytes=2**16, start=start):
            fields = read_block(block, dialect, names, names)
            assert not fields.rejects
            for place, column in enumerate(fields.columns):
                found[place] += cells(
                    encode_column(kinds[place], column, text, null_length=NULL_LENGTH)
                )
        return found
    layout = "lines" if fmt.json_layout is None else "documents"
    dialect = replace(line_dialect(OutputFormat().dialect), json_layout=layout)
    for block in read_blocks(stream, dialect, block_bytes=2**16, start=START):
        objects = read_objects(block, dialect, names, ())
        assert not objects.rejects
        for place, values_ in enumerate(objects.columns):
            found[place] += cells(encode_json(kinds[place], values_, text, null_length=NULL_LENGTH))
    return found


#: Encodings with all characters; None: UTF-8.
ENCODINGS = (None, "utf-16", "utf-16-be", "utf-32", "gb18030", "utf-7")


@st.composite
def csv_formats(draw: st.DrawFn, text: TextFormat) -> OutputFormat:
    """Return any set of options of CSV whose members go together."""
    given = {
        "quote_all": st.booleans(),
        "delimiter": st.sampled_from([",", ";", "tab", "||", "-->"]),
        "escape": st.sampled_from(["", "\\"]),
        "null": st.sampled_from(["", "NULL", "-", "0"]),
        "empty_word": st.sampled_from([None, "EMPTY", "-", "0", "#x"]),
        "comment": st.sampled_from(["", "#", "-", "1", "{"]),
        "line_end": st.sampled_from(["lf", "crlf"]),
        "encoding": st.sampled_from(ENCODINGS),
    }
    try:
        return OutputFormat(
            kind="csv", values=text, **{name: draw(value) for name, value in given.items()}
        )
    except UsageError:
        assume(False)
        raise


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[CqlType], list[tuple[Any, ...]]]:
    own = st.sampled_from(TEXT_TYPES).map(CqlType)
    kinds = draw(st.lists(own | types(depth_max=2), min_size=1, max_size=3))
    row = st.tuples(*(st.none() | values(kind, EMPTIABLE) for kind in kinds))
    return [*kinds, CqlType("int")], draw(st.lists(row, min_size=1, max_size=6))


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
@settings(max_examples=60, deadline=None)
@given(data=st.data(), text=FORMATS)
def test_what_is_written_is_read_back(kind: str, data: st.DataObject, text: TextFormat) -> None:
    kinds, rows = data.draw(tables())

    wanted = [
        [None if value is None else cell_of(of, value) for value in column]
        for of, column in zip(kinds, zip(*rows, strict=True), strict=False)
    ]
    wanted.append([number.to_bytes(4, "big") for number in range(len(rows))])
    if kind == "csv":
        fmt = data.draw(csv_formats(text))
    else:
        fmt = OutputFormat(
            kind="jsonl",
            values=text,
            json_layout=data.draw(st.sampled_from([None, "array", "pretty"])),
            json_nulls=data.draw(st.booleans()),
            encoding=data.draw(st.sampled_from(ENCODINGS)),
        )
    assert OutputFormat.from_json(fmt.to_json()) == fmt
    batch = batch_of(kinds, wanted)
    assert read(written(fmt, kinds, batch), fmt, text, kinds) == wanted
