"""The type of a new column: what every sampled value allows, and why."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ringhaul.cql.text import TextFormat
from ringhaul.mapping.arrow_inference import infer_arrow
from ringhaul.mapping.inference import TYPED_JSON, NoType, infer_json, infer_text, widened
from tests.cases import each

USUAL = TextFormat()
GERMAN = TextFormat(decimal_sep=",", thousands_sep=".", date_formats=("dd.MM.yyyy",))
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
    (("+1", "2"), "text", '"+1" has a plus sign'),
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
    (("01.5", "2.5"), "text", '"01.5" has a leading zero'),
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
    ((UUID, "none"), "text", '"none" is not a UUID'),
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


@each(("texts", "wanted", "reason"), TEXTS)
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


@each(
    ("fmt", "texts", "wanted"),
    [
        (TextFormat(decimal_sep=",", thousands_sep="."), ("1.234,50", "2,25"), "decimal"),
        (TextFormat(decimal_sep=","), ("1.5",), "text"),
        (TextFormat(thousands_sep="'"), ("1'234", "5"), "bigint"),
        (TextFormat(true_words=("ja",), false_words=("nein",)), ("ja", "Nein"), "boolean"),
        (TextFormat(true_words=("ja",), false_words=("nein",)), ("true",), "text"),
        (TextFormat(timestamp_formats=("%d.%m.%Y",)), ("31.01.2024",), "timestamp"),
        (TextFormat(timestamp_formats=("%Y%m%d",)), ("20240131",), "bigint"),
        (GERMAN, ("31.05.2024", "01.02.2024"), "date"),
        (GERMAN, ("1.234,50", "-2,25"), "decimal"),
        (GERMAN, ("1.234.567", "5"), "bigint"),
        (TextFormat(thousands_sep=".", decimal_sep=","), ("31.05.2024",), "text"),
    ],
)
def test_the_load_s_own_spelling_counts(
    fmt: TextFormat, texts: tuple[str, ...], wanted: str
) -> None:
    assert infer_text(column(*texts), fmt).cql_type == wanted


#: Values of which one does not fit -> the reason, which shows this one.
CULPRITS = [
    (USUAL, [*map(str, range(400)), "#NV"], '"#NV" is not a number'),
    (GERMAN, ["31.05.2024", "vielleicht", "01.06.2024"], '"vielleicht" is not a date'),
    (GERMAN, ["#NV", "1.234,50", "2,00", "n/a", "3.000"], '"#NV" and another are not numbers'),
    (USUAL, ["10:00:00", "11:00:00", "noon", "later", "-"], 'such as "10:00:00"'),
    (USUAL, ["10:00:00", "11:00:00", "12:00:00", "noon"], '"noon" is not a time of day'),
    (USUAL, [UUID, UUID.upper(), "x"], '"x" is not a UUID'),
    (USUAL, ["2024-01-31", "n/a", "2024-02-01"], '"n/a" is not a date'),
    (USUAL, ["a", "b", "1"], 'such as "a"'),
]


@pytest.mark.parametrize(("fmt", "texts", "reason"), CULPRITS)
def test_the_reason_for_text_shows_what_does_not_fit(
    fmt: TextFormat, texts: list[str], reason: str
) -> None:
    for order in (texts, texts[::-1]):
        found = infer_text(column(*order), fmt)
        assert found.cql_type == "text"
        culprit = order is texts or " and " not in reason
        assert found.reason == reason or not culprit or "such as" in reason


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
    ((f'{{"a": "{UUID}", "b": "{UUID}"}}',), "frozen<map<text, uuid>>"),
]


@each(("lines", "wanted"), VALUES)
def test_json_gets_the_type_of_its_values(lines: tuple[str, ...], wanted: str) -> None:
    assert infer_json(parsed(*lines)).cql_type == wanted


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (("[1, null]",), "arrays with a null"),
        (('{"a": null}',), "objects with a null"),
        (('{"a": 1, "b": "x"}',), "objects with values of several kinds"),
        (('[{"a": 1, "b": "x"}]',), "objects with values of several kinds"),
        (("[1]", "1"), "arrays or objects beside other values"),
        (('{"a": [1], "b": 1}',), "objects with values of several kinds"),
    ],
)
def test_json_that_no_type_holds_is_refused(lines: tuple[str, ...], message: str) -> None:
    with pytest.raises(NoType, match=message) as refusal:
        infer_json(parsed(*lines))
    # and the option that it names keeps the JSON
    assert "--accept json-text keeps each as its JSON" in str(refusal.value)
    found = infer_json(parsed(*lines), TextFormat(accept=("json-text",)))
    assert found.cql_type == "text" and found.reason.endswith("kept as their JSON")


def numbers(count: int, *, single: bool) -> str:
    values = np.random.default_rng(1).standard_normal(count)
    return json.dumps((values.astype(np.float32) if single else values).tolist())


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        ((numbers(384, single=True),) * 3, "vector<float, 384>"),
        (("[" + ", ".join(["0.1", "1", "-2.5e-3"] * 8) + "]",), "vector<float, 24>"),
        ((numbers(20, single=False),), "vector<double, 20>"),
        ((numbers(20, single=True), "null"), "vector<float, 20>"),
        ((numbers(20, single=True), numbers(21, single=True)), "frozen<list<double>>"),
        ((numbers(20, single=True), "[]"), "frozen<list<double>>"),
        (("[0.5, 0.25, 0.125]",), "frozen<list<double>>"),
        ((str([*range(20)]),), "frozen<list<bigint>>"),
    ],
)
def test_arrays_of_one_length_are_vectors(lines: tuple[str, ...], wanted: str) -> None:
    assert infer_json(parsed(*lines)).cql_type == wanted
    if wanted.startswith("vector"):
        assert infer_json(parsed(*lines), vectors=False).cql_type == "frozen<list<double>>"


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


@each(("arrow", "wanted"), ARROW, ids=str)
def test_parquet_keeps_its_types(arrow: pa.DataType, wanted: str) -> None:
    found = infer_arrow(arrow)
    assert found.cql_type == wanted
    assert ("cut off" in found.reason) is (arrow == pa.timestamp("ns", "UTC"))


def test_an_arrow_type_without_a_counterpart_is_refused() -> None:
    with pytest.raises(NoType, match="intervals of months, days and nanoseconds have no counter"):
        infer_arrow(pa.month_day_nano_interval())


@each(
    ("values", "wanted", "reason"),
    [
        (pa.array([UUID, None, UUID.upper()]), "uuid", "strings that are UUIDs"),
        (pa.array([UUID], pa.large_string()), "uuid", "strings that are UUIDs"),
        (pa.array([UUID]).dictionary_encode(), "uuid", "strings that are UUIDs"),
        (pa.array([UUID, "x"]), "text", "strings"),
        (pa.array([f"{UUID}\n"]), "text", "strings"),
        (pa.array([], pa.large_string()), "text", "strings"),
        (pa.array([[0.5] * 384] * 2, pa.list_(pa.float32())), "vector<float, 384>", "384 numbers"),
        (pa.array([[0.5] * 384], pa.list_(pa.float32(), 384)), "vector<float, 384>", "384 numbers"),
        (pa.array([[0.5] * 9]), "frozen<list<double>>", "lists of floating-point numbers of 64"),
        (pa.array([[0.5] * 30, [0.5] * 29]), "frozen<list<double>>", "lists of floating-point"),
        (pa.array([3], pa.uint32()), "bigint", "whole numbers of 32 bits without a sign"),
        (pa.array([{"a": 1}]), "frozen<tuple<bigint>>", "as a tuple by position; for names"),
    ],
)
def test_values_of_parquet_decide_where_types_do_not(
    values: pa.Array, wanted: str, reason: str
) -> None:
    found = infer_arrow(values.type, values)
    assert (found.cql_type == wanted and found.reason.startswith(reason)) or reason in found.reason
    if wanted.startswith("vector"):
        assert infer_arrow(values.type, values, vectors=False).cql_type == "frozen<list<float>>"


@each(
    ("one", "other", "wanted"),
    [
        ("int", "int", "int"),
        ("int", "bigint", "bigint"),
        ("varint", "tinyint", "varint"),
        ("bigint", "decimal", "decimal"),
        ("double", "float", "double"),
        ("double", "bigint", None),
        ("text", "uuid", "text"),
        ("text", "bigint", None),
        ("vector<float, 20>", "vector<float, 30>", "frozen<list<float>>"),
        ("vector<float, 20>", "frozen<list<float>>", "frozen<list<float>>"),
        ("vector<float, 20>", "frozen<list<text>>", None),
    ],
)
def test_types_of_several_files_are_widened(one: str, other: str, wanted: str | None) -> None:
    assert widened(one, other) == wanted
    assert widened(other, one) == wanted
