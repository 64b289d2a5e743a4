"""Options of an output: which are accepted, and how the others are refused."""

from typing import Any

import pytest

from ringhaul.errors import UsageError
from ringhaul.formats.write import OutputFormat, refuse_blank_lines


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


@pytest.mark.parametrize(
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
