"""A new column's type takes every value of its sample, and gives it back as it was."""

from __future__ import annotations

import json
from datetime import date, datetime
from decimal import Decimal
from uuid import UUID

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from ringhaul.cql.nested import encode_json
from ringhaul.cql.text import TextFormat, encode_text
from ringhaul.cql.types import parse_type
from ringhaul.mapping.inference import TYPED_JSON, NoType, infer_json, infer_text

USUAL = TextFormat()

#: Text as in files: numbers in many spellings, times, ids, words.
NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70).map(str),
    st.integers(-20, 20).map(lambda n: f"{n:03}"),
    st.floats(allow_nan=True, allow_infinity=True).map(repr),
    st.decimals(allow_nan=False, allow_infinity=False, places=2).map(str),
    st.decimals(allow_nan=False, allow_infinity=False).map(str),
    st.from_regex(r"-?[0-9]{1,20}(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,5})?", fullmatch=True),
)
MOMENTS = st.one_of(
    st.dates().map(str),
    st.datetimes().map(lambda at: at.isoformat(timespec="seconds") + "Z"),
    st.datetimes().map(lambda at: at.isoformat(" ")),
    st.times().map(str),
    st.from_regex(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}(:[0-9]{2})?)?", fullmatch=True),
)
WORDS = st.one_of(st.sampled_from(["true", "False", "TRUE", "yes", "0"]), st.text(max_size=5))
COLUMNS = st.one_of(
    *(st.lists(kind, max_size=6) for kind in (NUMBERS, MOMENTS, WORDS, st.uuids().map(str))),
    st.lists(NUMBERS | MOMENTS | WORDS, max_size=6),
)


def same(cql_type: str, text: str) -> bool:
    """Whether the type's values can stand for this text without loss, as Python reads it."""
    text = text.strip()
    if text.startswith("0000-"):  # Python knows no year 0, whose days are as many as in 2000
        text = f"2{text[1:]}"
    match cql_type:
        case "bigint" | "varint":
            return str(int(text)) == text
        case "decimal":
            return not (text[:1] == "0" and text[1:2].isdigit()) and Decimal(text).is_finite()
        case "double":
            number = float(text)
            finite = abs(number) < float("inf")
            return not finite or Decimal(repr(number)) == Decimal(text)
        case "boolean":
            return text.lower() in ("true", "false")
        case "uuid":
            return str(UUID(text)) == text.lower()
        case "date":
            return str(date.fromisoformat(text)) == text
        case "timestamp":
            return datetime.fromisoformat(text).microsecond % 1000 == 0
        case "time":
            return text.count(":") == 2
        case _:
            return cql_type == "text"


@given(COLUMNS)
@example(["0000-01-01"])
@example(["0000-02-29T00:00"])
def test_text_fits_its_type_without_loss(texts: list[str]) -> None:
    values = pa.array([text.encode("utf-8", "surrogatepass") for text in texts], pa.binary())
    found = infer_text(values, USUAL)
    if found.cql_type != "text":
        assert encode_text(found.cql_type, values, USUAL, null_length=-1)[1] == []
    assert all(same(found.cql_type, text) for text in texts), found


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=6,
)


@given(st.lists(JSON, max_size=5))
def test_json_fits_its_type(values: list[object]) -> None:
    texts = [json.dumps(value) for value in values]
    try:
        found = infer_json([TYPED_JSON.decode(text) for text in texts])
    except NoType:
        return
    plain = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=str)
    column = encode_json(
        parse_type(found.cql_type), [plain.decode(text) for text in texts], USUAL, null_length=-1
    )
    assert column.faults == {}, found
