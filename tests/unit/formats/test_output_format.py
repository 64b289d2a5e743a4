"""Options of an output: which are accepted, and how the others are refused."""

import io
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ringhaul.cql.types import CqlType
from ringhaul.errors import OutputUnusable, UsageError
from ringhaul.formats.write import OutputFormat, refuse_blank_lines
from ringhaul.formats.write.writer import open_writer
from tests.cases import each


@each(
    ("options", "message"),
    [
        ({"empty_word": "a,b"}, "empty-word: 'a,b' holds the delimiter"),
        ({"empty_word": "-", "null": "-"}, "empty-word: '-' is null by"),
        ({"empty_word": "E", "quote": "", "null": "N"}, "empty-word: without quotes"),
        ({"comment": "#", "null": "#N"}, "null: '#N' begins with the comment character"),
        ({"comment": "#", "empty_word": "#E"}, "empty-word: '#E' begins with the comment"),
        ({"comment": "##"}, "comment: '##' cannot be used"),
        ({"comment": ","}, "comment: ',' is already the delimiter"),
        ({"trim": "all"}, "trim: 'all' is not one of none, text, quoted"),
        ({"trim": "text", "delimiter": " "}, "trim: blanks are dropped, and the delimiter is one"),
        ({"line_end": "cr"}, "line-end: 'cr' is neither lf nor crlf"),
        ({"encoding": "klingon"}, "encoding: 'klingon' is not known"),
        (
            {"encoding": "latin-1", "delimiter": "→"},
            "delimiter: '→' cannot be written in iso8859-1",
        ),
        ({"kind": "jsonl", "empty_word": "E"}, "empty-word: applies only to CSV"),
        ({"kind": "jsonl", "trim": "text"}, "trim: applies only to CSV"),
        ({"kind": "parquet", "encoding": "utf-16"}, "encoding: Parquet is not text"),
        ({"decimal_type": "20,4"}, "decimal-type: applies only to Parquet"),
        ({"kind": "parquet", "decimal_type": "4,20"}, "decimal-type: '4,20': give all digits"),
        ({"kind": "parquet", "decimal_type": "77,2"}, "decimal-type: '77,2': give all digits"),
        ({"kind": "parquet", "decimal_type": "20"}, "decimal-type: '20': give all digits"),
    ],
)
def test_options_that_cannot_be_used_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as refusal:
        OutputFormat(**options)
    assert str(refusal.value).startswith(message)


def test_what_an_encoding_lacks_ends_the_writing_and_names_the_column() -> None:
    stream = io.BytesIO()
    kinds = [CqlType("int"), CqlType("text"), CqlType("list", (CqlType("text"),))]
    for kind in ("csv", "jsonl"):
        fmt = OutputFormat(kind=kind, encoding="latin-1")
        writer = open_writer(fmt, stream, ["n", "note", "tags"], kinds)
        with pytest.raises(OutputUnusable, match="column note holds '€', which the encoding"):
            writer.write(pa.RecordBatch.from_pydict({"n": [1], "note": ["5 €"], "tags": [["x"]]}))
        with pytest.raises(OutputUnusable, match="a nested value holds '€'"):
            writer.write(pa.RecordBatch.from_pydict({"n": [1], "note": ["5"], "tags": [["€"]]}))
    with pytest.raises(OutputUnusable, match="the name of a column holds '€'"):
        open_writer(OutputFormat(encoding="cp850"), stream, ["€", "b"], kinds[:2])


def test_a_byte_order_mark_is_at_the_beginning_alone() -> None:
    for encoding, mark in (("utf-16", b"\xff\xfe"), ("utf-32", b"\xff\xfe\0\0"), ("cp1252", b"")):
        stream = io.BytesIO()
        fmt = OutputFormat(encoding=encoding, bom=True)
        writer = open_writer(fmt, stream, ["a", "b"], [CqlType("text")] * 2)
        for text in ("x", "é"):
            writer.write(pa.RecordBatch.from_pydict({"a": [text], "b": ["y"]}))
        data = stream.getvalue()
        assert data.startswith(mark) and data.count(mark or b"a,b") == 1
        assert data.decode(encoding) == "a,b\nx,y\né,y\n"


def test_defaults() -> None:
    assert OutputFormat() == OutputFormat(
        kind="csv", header=True, delimiter=",", quote='"', null="", compression="none"
    )
    assert OutputFormat(kind="parquet").compression == "zstd"
    assert OutputFormat(kind="jsonl").to_json() == {"kind": "jsonl", "compression": "none"}


@pytest.mark.parametrize(
    ("options", "suffix"),
    [
        ({}, ".csv"),
        ({"compression": "gzip"}, ".csv.gz"),
        ({"kind": "jsonl", "compression": "zstd"}, ".jsonl.zst"),
        ({"compression": "bz2"}, ".csv.bz2"),
        ({"kind": "jsonl", "compression": "xz"}, ".jsonl.xz"),
        ({"kind": "parquet", "compression": "snappy"}, ".parquet"),
    ],
)
def test_suffixes(options: dict[str, Any], suffix: str) -> None:
    fmt = OutputFormat(**options)
    assert fmt.suffix == suffix
    assert OutputFormat.from_json(fmt.to_json()) == fmt


def test_a_tab_is_spelled_as_in_a_load() -> None:
    fmt = OutputFormat(delimiter="\\t", null="\\N")
    assert fmt.delimiter == "\t"
    assert OutputFormat.from_json(fmt.to_json()) == fmt


@each(
    ("options", "words"),
    [
        ({"kind": "orc"}, "format: 'orc' is not one of csv, jsonl or parquet"),
        (
            {"compression": "lzo"},
            "compression: csv can have none, gzip, zstd, bz2, xz, lz4 or brotli, not 'lzo'",
        ),
        (
            {"kind": "parquet", "compression": "gzip"},
            "compression: parquet can have zstd, snappy or none, not 'gzip'",
        ),
        (
            {"kind": "jsonl", "delimiter": ";"},
            "delimiter: applies only to CSV, and the format is jsonl",
        ),
        ({"kind": "parquet", "header": False}, "header: applies only to CSV"),
        ({"delimiter": "ab"}, "delimiter: 'ab' is not a name"),
        ({"delimiter": "||", "null": "a|b"}, "null: 'a|b' holds '|'"),
        ({"delimiter": '"'}, "quote: .* is already the delimiter"),
        ({"null": "a,b"}, "null: 'a,b' holds ','"),
        ({"null": "a\n"}, "null: .* which has a special meaning"),
    ],
)
def test_impossible_options_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        OutputFormat(**options)


def test_an_unknown_option() -> None:
    with pytest.raises(UsageError, match="colour: no such option"):
        OutputFormat.from_json({"colour": "blue"})


def test_a_row_of_one_null_is_not_a_blank_line() -> None:
    for fmt in (OutputFormat(), OutputFormat(header=False, compression="gzip")):
        with pytest.raises(UsageError, match=r"a CSV of total alone .* give --null NULL"):
            refuse_blank_lines(fmt, ["total"])
        refuse_blank_lines(fmt, ["id", "total"])
    for fmt in (
        OutputFormat(null="NULL"),
        OutputFormat(kind="jsonl"),
        OutputFormat(kind="parquet"),
    ):
        refuse_blank_lines(fmt, ["total"])


@pytest.mark.parametrize(("digits", "arrow"), [("10,2", pa.decimal128), ("50,2", pa.decimal256)])
def test_decimals_are_written_as_such_when_told(digits: str, arrow: Callable[..., Any]) -> None:
    kinds = [CqlType("decimal"), CqlType("list", (CqlType("decimal"),)), CqlType("varint")]
    fmt = OutputFormat(kind="parquet", decimal_type=digits)
    assert OutputFormat.from_json(fmt.to_json()) == fmt
    stream = io.BytesIO()
    writer = open_writer(fmt, stream, ["d", "l", "v"], kinds)
    texts = ["1.5", None, "-12345678.90", "1E+3", "0E-20"]
    rows = {"d": texts, "l": [["1.5"]] * 5, "v": ["7"] * 5}
    schema = pa.schema([(n, kind.arrow()) for n, kind in zip(rows, kinds, strict=True)])
    writer.write(pa.RecordBatch.from_pydict(rows, schema))
    writer.close()
    table = pq.read_table(io.BytesIO(stream.getvalue()))
    assert table.schema.field("d").type == arrow(*map(int, digits.split(",")))
    assert table.column("d").to_pylist() == [text and Decimal(text) for text in texts]
    assert table.column("l").to_pylist() == rows["l"]

    # And a value that does not fit is shown, not rounded
    for wrong in ("0.125", "", "1E+60"):
        writer = open_writer(fmt, io.BytesIO(), ["d"], kinds[:1])
        writer.write(pa.RecordBatch.from_pydict({"d": ["1.5", wrong]}))
        with pytest.raises(OutputUnusable, match=r"column d holds .* does not fit") as error:
            writer.close()
        assert f'holds "{wrong}"' in str(error.value)
        assert f"--decimal-type {digits} exactly" in str(error.value)
        writer.abandon()
