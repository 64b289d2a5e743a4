"""The type of a new column: what every sampled value allows, and why."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from ringhaul.cql.text import TextFormat
from ringhaul.records.infer import (
    TYPED_JSON,
    NoType,
    infer_arrow,
    infer_json,
    infer_text,
    widened,
)

USUAL = TextFormat()
UUID = "123e4567-e89b-12d3-a456-426614174000"


def column(*texts: str | None) -> pa.BinaryArray:
    return pa.array([None if text is None else text.encode() for text in texts], pa.binary())


#: Values of a column of CSV -> its type, and words of the reason.
TEXTS: list[tuple[tuple[str | None, ...], str, str]] = [
    ((None, None), "text", "no value in the sample"),
    ((), "text", "no value in the sample"),
    (("1", "", None), "text", "a quoted empty value"),
    # whole numbers
    (("1", "-20", "0", None), "bigint", "whole numbers"),
    ((" 7", "8 "), "bigint", "whole numbers"),
    (("9223372036854775807", "-9223372036854775808"), "bigint", "whole numbers"),
    (("9223372036854775808", "1"), "varint", "beyond a bigint, such as 9223372036854775808"),
    (("007", "123"), "text", '"007" has a leading zero'),
    (("12", "-01"), "text", '"-01" has a leading zero'),
    (("00123",), "text", '"00123" has a leading zero'),
    (("+1", "2"), "text", 'such as "+1"'),
    (("12", "n/a"), "text", '"n/a" is not a number'),
    (("-0", "1"), "double", "exact as a double"),
    # other numbers
    (("12.50", "3.00"), "decimal", "2 digits after the point"),
    (("1.5",), "decimal", "1 digit after the point"),
    (("1.5", "2.25", "3"), "double", "exact as a double"),
    (("0.1", "0.12345678901234567890"), "decimal", "more digits than a double"),
    (("1e3", "2.5"), "double", "exact as a double"),
    (("1.5", "NaN", "-Infinity"), "double", "exact as a double"),
    (("NaN",), "text", 'such as "NaN"'),
    (("1e999", "1"), "decimal", "more digits than a double"),
    (("01.5", "2.5"), "text", "such as"),
    (("1,5", "2,5"), "text", "such as"),
    # booleans: words that are nothing else
    (("true", "false", None), "boolean", "false and true"),
    (("TRUE",), "boolean", "TRUE"),
    (("yes", "no"), "text", 'such as "yes"'),
    (("t", "f"), "text", 'such as "t"'),
    (("0", "1"), "bigint", "whole numbers"),
    (("true", "maybe"), "text", 'such as "true"'),
    # ids
    ((UUID, UUID.upper()), "uuid", "UUIDs"),
    ((UUID, "none"), "text", "such as"),
    ((UUID.replace("-", ""),), "text", "such as"),
    # times
    (("2024-01-31", "2024-02-29"), "date", "dates"),
    (("2024-01-31", "2024-02-30"), "text", "cast date"),
    (("20240131",), "bigint", "whole numbers"),
    (("10:00:00", "23:59:59.123456789"), "time", "times of the day"),
    (("10:00:00", "25:00:00"), "text", "cast time"),
    (("2024-01-31T10:00:00Z", "2024-01-31 10:00:00.123"), "timestamp", "dates with a time"),
    (("2024-01-31T10:00:00.123000Z",), "timestamp", "dates with a time"),
    (("2024-01-31T10:00:00Z", "2024-01-31"), "timestamp", "dates with a time"),
    (("2024-01-31T10:00:00.123456Z",), "text", "finer than a millisecond"),
    (("2024-01-31T99:00:00Z",), "text", "cast timestamp"),
    (("2024-01-31", "soon"), "text", '"soon" is not a date'),
    # everything else
    (("0xff", "10.0.0.1", "[1]"), "text", 'such as "0xff"'),
    (("x" * 100,), "text", "..."),
    (("a\x1b[31m",), "text", r"a\x1b[31m"),
]


@pytest.mark.parametrize(("texts", "wanted", "reason"), TEXTS)
def test_text_gets_the_type_that_every_value_allows(
    texts: tuple[str | None, ...], wanted: str, reason: str
) -> None:
    found = infer_text(column(*texts), USUAL)
    assert (found.cql_type, reason in found.reason) == (wanted, True), found


def test_one_value_decides() -> None:
    many = [str(n) for n in range(5000)]
    assert infer_text(column(*many), USUAL).cql_type == "bigint"
    assert infer_text(column(*many, "5000a"), USUAL).cql_type == "text"


def test_bytes_that_are_no_text_stay_text() -> None:
    assert infer_text(pa.array([b"\xff\xfe"], pa.binary()), USUAL).cql_type == "text"


@pytest.mark.parametrize(
    ("fmt", "texts", "wanted"),
    [
        (TextFormat(decimal_sep=",", thousands_sep="."), ("1.234,50", "2,25"), "decimal"),
        (TextFormat(decimal_sep=","), ("1.5",), "text"),
        (TextFormat(thousands_sep="'"), ("1'234", "5"), "bigint"),
        (TextFormat(true_words=("ja",), false_words=("nein",)), ("ja", "Nein"), "boolean"),
        (TextFormat(true_words=("ja",), false_words=("nein",)), ("true",), "text"),
        (TextFormat(timestamp_formats=("%d.%m.%Y",)), ("31.01.2024",), "timestamp"),
        (TextFormat(timestamp_formats=("%Y%m%d",)), ("20240131",), "bigint"),
    ],
)
def test_the_load_s_own_spelling_counts(
    fmt: TextFormat, texts: tuple[str, ...], wanted: str
) -> None:
    assert infer_text(column(*texts), fmt).cql_type == wanted


def parsed(*lines: str) -> list[Any]:
    return [TYPED_JSON.decode(line) for line in lines]


#: JSON values -> the type.
VALUES: list[tuple[tuple[str, ...], str]] = [
    (("null",), "text"),
    (("true", "false", "null"), "boolean"),
    (("1", "-2"), "bigint"),
    (("18446744073709551616",), "varint"),
    (("1.5", "2.25", "1e3"), "double"),
    (("1.50", "2.25"), "decimal"),
    (('"007"', '"1"'), "text"),
    (('"1"', '"2"'), "text"),
    (('"true"',), "text"),
    (("1", '"a"'), "text"),
    (("1", "true"), "text"),
    ((f'"{UUID}"',), "uuid"),
    (('"2024-01-31"',), "date"),
    (('"2024-01-31T10:00:00Z"', "null"), "timestamp"),
    (('"2024-02-30"',), "text"),
    (('""', f'"{UUID}"'), "text"),
    (("[1, 2]", "[]", "null"), "frozen<list<bigint>>"),
    (("[]",), "frozen<list<text>>"),
    (('[["a"], []]',), "frozen<list<frozen<list<text>>>>"),
    (('{"a": 1, "b": 2}', "{}"), "frozen<map<text, bigint>>"),
    (('{"a": 1, "b": "x"}',), "frozen<map<text, text>>"),
]


@pytest.mark.parametrize(("lines", "wanted"), VALUES)
def test_json_gets_the_type_of_its_values(lines: tuple[str, ...], wanted: str) -> None:
    assert infer_json(parsed(*lines)).cql_type == wanted


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (("[1, null]",), "a null in an array"),
        (('{"a": null}',), "a null in an object"),
        (("[1]", "1"), "arrays or objects beside other values"),
        (('{"a": [1], "b": 1}',), "arrays or objects beside other values"),
    ],
)
def test_json_that_no_type_holds_is_refused(lines: tuple[str, ...], message: str) -> None:
    with pytest.raises(NoType, match=message):
        infer_json(parsed(*lines))


ARROW: list[tuple[pa.DataType, str]] = [
    (pa.null(), "text"),
    (pa.bool_(), "boolean"),
    (pa.int8(), "tinyint"),
    (pa.int16(), "smallint"),
    (pa.int32(), "int"),
    (pa.int64(), "bigint"),
    (pa.uint8(), "smallint"),
    (pa.uint16(), "int"),
    (pa.uint32(), "bigint"),
    (pa.uint64(), "varint"),
    (pa.float16(), "float"),
    (pa.float32(), "float"),
    (pa.float64(), "double"),
    (pa.decimal128(20, 3), "decimal"),
    (pa.decimal256(60, 3), "decimal"),
    (pa.string(), "text"),
    (pa.large_string(), "text"),
    (pa.dictionary(pa.int32(), pa.string()), "text"),
    (pa.binary(), "blob"),
    (pa.binary(16), "blob"),
    (pa.uuid(), "uuid"),
    (pa.date32(), "date"),
    (pa.date64(), "date"),
    (pa.timestamp("ms"), "timestamp"),
    (pa.timestamp("ns", "UTC"), "timestamp"),
    (pa.time32("ms"), "time"),
    (pa.time64("us"), "time"),
    (pa.duration("ms"), "duration"),
    (pa.list_(pa.int32()), "frozen<list<int>>"),
    (pa.list_(pa.float32(), 3), "frozen<list<float>>"),
    (pa.map_(pa.string(), pa.int64()), "frozen<map<text, bigint>>"),
    (pa.struct([("a", pa.int32()), ("b", pa.string())]), "frozen<tuple<int, text>>"),
]


@pytest.mark.parametrize(("arrow", "wanted"), ARROW, ids=str)
def test_parquet_keeps_its_types(arrow: pa.DataType, wanted: str) -> None:
    found = infer_arrow(arrow)
    assert found.cql_type == wanted
    assert ("cut off" in found.reason) is (arrow == pa.timestamp("ns", "UTC"))


def test_an_arrow_type_without_a_counterpart_is_refused() -> None:
    with pytest.raises(NoType, match="has no counterpart in CQL"):
        infer_arrow(pa.month_day_nano_interval())


@pytest.mark.parametrize(
    ("one", "other", "wanted"),
    [
        ("int", "int", "int"),
        ("int", "bigint", "bigint"),
        ("varint", "tinyint", "varint"),
        ("bigint", "decimal", "decimal"),
        ("double", "float", "double"),
        ("double", "bigint", None),
        ("text", "uuid", None),
    ],
)
def test_types_of_several_files_are_widened(one: str, other: str, wanted: str | None) -> None:
    assert widened(one, other) == wanted
    assert widened(other, one) == wanted
