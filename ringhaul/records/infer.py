"""Choose a CQL type for a column of a new table, from a sample of its values. Pure.

| input | chosen by |
|---|---|
| text (CSV) | what every sampled value allows, as the load itself reads it |
| JSON | the kinds of its values: numbers, booleans, strings, arrays, objects |
| Arrow (Parquet) | the column's type, without looking at values |

The choice is careful: a type must give each value back as it was. So `007` stays text, `12.50` is a
decimal, and a whole number is a bigint, since later values may be larger. A type that the values
only happen to fit (yes and no, 0 and 1, digits of a date) is not chosen.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from itertools import chain
from typing import NamedTuple

import pyarrow as pa

from ringhaul.cql.column import quote
from ringhaul.cql.nested import encode_json
from ringhaul.cql.spelt_json import Json, unique_names
from ringhaul.cql.text import TextFormat, encode_text
from ringhaul.cql.typed import refusal
from ringhaul.cql.types import parse_type

_INT64_MAX = 2**63 - 1
_WHOLE = re.compile("0|-?[1-9][0-9]*")
#: Digits before the point, after it, and the exponent.
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.([0-9]+))?([eE][+-]?[0-9]{1,4})?")
_LEADING_ZERO = re.compile("[+-]?0[0-9]")
_NOT_FINITE = re.compile("[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
_UUID = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK = "[0-9]{2}:[0-9]{2}"
_DATE = re.compile(_DAY)
_TIME = re.compile(rf"{_CLOCK}:[0-9]{{2}}(?:\.[0-9]{{1,9}})?")
_MOMENT = re.compile(rf"{_DAY}[T ]{_CLOCK}.*", re.DOTALL)
#: A fraction of a second that milliseconds cannot hold.
_FINER = re.compile("[.,][0-9]{3}[0-9]*[1-9]")
_USUAL = TextFormat()
_TIMES_TOO_FINE = "times finer than a millisecond, which a timestamp cannot hold"


class Inferred(NamedTuple):
    """A CQL type, and why it was chosen, for people."""

    cql_type: str
    reason: str


class NoType(ValueError):
    """No type can hold the values; the message says why."""


class Number(str):
    """A number of JSON with all of its digits."""

    __slots__ = ()


#: Decodes JSON like `nested.parse_json`, but keeps numbers apart from strings.
TYPED_JSON = json.JSONDecoder(
    parse_float=Number, parse_int=Number, parse_constant=Number, object_pairs_hook=unique_names
)


def infer_text(values: pa.BinaryArray, fmt: TextFormat) -> Inferred:
    """Return the type for a column of text. `values`: UTF-8, null where the field is null."""
    texts = [
        raw.decode("utf-8", "backslashreplace") for raw in values.drop_null().unique().to_pylist()
    ]
    if not texts:
        return Inferred("text", "no value in the sample")
    if "" in texts:
        return Inferred("text", "a quoted empty value, which only text can hold")
    found = _of_texts([text.strip() for text in texts], fmt)
    if found.cql_type == "text":
        return found
    # What the load would reject is not allowed, whatever it looks like.
    _, bad = encode_text(found.cql_type, values.drop_null(), fmt, null_length=-1)
    return found if not bad else Inferred("text", bad[0].reason)


def infer_json(values: Sequence[Json], fmt: TextFormat = _USUAL) -> Inferred:
    """Return the type for values that `TYPED_JSON` decoded; None is null.

    Raises `NoType` for arrays and objects that no type can hold.
    """
    present = [value for value in values if value is not None]
    if not present:
        return Inferred("text", "no value in the sample")
    kinds = {type(value) for value in present}
    if kinds == {bool}:
        return Inferred("boolean", "true and false")
    if kinds == {list}:
        return _of_arrays(present, fmt)
    if kinds == {dict}:
        return _of_objects(present, fmt)
    if kinds & {list, dict}:
        raise NoType("arrays or objects beside other values")
    if kinds == {Number}:
        found = _of_numbers([*dict.fromkeys(map(str, present))])
        return found or Inferred("double", "numbers")
    if kinds == {str}:
        return _of_strings(present, fmt)
    return Inferred("text", "values of several kinds")


def infer_arrow(arrow: pa.DataType) -> Inferred:
    """Return the type for a column of an Arrow type. Raises `NoType` if there is none."""
    text = _arrow_text(arrow)
    reason = str(arrow)
    if pa.types.is_timestamp(arrow) and arrow.unit in ("us", "ns"):
        reason += "; finer than a millisecond is cut off"
    if pa.types.is_struct(arrow):
        reason += "; fields by position"
    why = refusal(parse_type(text), arrow)
    if why is not None:
        raise NoType(why)
    return Inferred(text, reason)


def widened(one: str, other: str) -> str | None:
    """Return the type that holds the values of both types; None if there is none but text."""
    if one == other:
        return one
    for ladder in _LADDERS:
        if one in ladder and other in ladder:
            return max(one, other, key=ladder.index)
    return None


#: Each type holds the values of those before it.
_LADDERS = (
    ("tinyint", "smallint", "int", "bigint", "varint", "decimal"),
    ("float", "double"),
)


def _of_texts(texts: Sequence[str], fmt: TextFormat) -> Inferred:
    """Return the type for distinct texts, none empty unless it was blank."""
    if found := _of_words(texts, fmt):
        return found
    if fmt.plain_numbers:
        numbers = _of_numbers(texts)
    else:
        plain = (text.replace(fmt.thousands_sep or "\0", "") for text in texts)
        numbers = _of_numbers([text.replace(fmt.decimal_sep, ".") for text in plain])
    return numbers or _of_moments(texts, fmt) or Inferred("text", _why_text(texts))


def _of_words(texts: Sequence[str], fmt: TextFormat) -> Inferred | None:
    own = (fmt.true_words, fmt.false_words) != (_USUAL.true_words, _USUAL.false_words)
    words = {*fmt.true_words, *fmt.false_words} if own else {"true", "false"}
    if {text.lower() for text in texts} <= {word.lower() for word in words}:
        return Inferred("boolean", " and ".join(sorted(texts)[:2]))
    if all(map(_UUID.fullmatch, texts)):
        return Inferred("uuid", "UUIDs")
    return None


def _of_numbers(texts: Sequence[str]) -> Inferred | None:
    """Return the type for numbers; None if some text is not one."""
    if all(map(_WHOLE.fullmatch, texts)):
        large = next((text for text in texts if not _fits_bigint(text)), None)
        if large is not None:
            return Inferred("varint", f"whole numbers, some beyond a bigint, such as {large[:40]}")
        return Inferred("bigint", "whole numbers")
    found = [_NUMBER.fullmatch(text) for text in texts]
    if not any(found):
        return None
    if not all(
        number or _NOT_FINITE.fullmatch(text) for number, text in zip(found, texts, strict=True)
    ):
        return None
    scales = {len(number[1] or "") for number in found if number}
    plain = all(number and not number[2] for number in found)
    if plain and len(scales) == 1 and (scale := max(scales)):
        digits = "digit" if scale == 1 else "digits"
        return Inferred("decimal", f"numbers with {scale} {digits} after the point")
    inexact = next(
        (
            text
            for number, text in zip(found, texts, strict=True)
            if number and not _is_exact_double(text)
        ),
        None,
    )
    if inexact is None:
        return Inferred("double", "numbers, each exact as a double")
    if not all(found):
        return None
    return Inferred("decimal", f"numbers, {inexact[:40]} has more digits than a double")


def _fits_bigint(text: str) -> bool:
    return len(text) < 21 and -_INT64_MAX - 1 <= int(text) <= _INT64_MAX


def _is_exact_double(text: str) -> bool:
    number = float(text)
    return abs(number) != float("inf") and Decimal(repr(number)) == Decimal(text)


def _of_moments(texts: Sequence[str], fmt: TextFormat) -> Inferred | None:
    own = [kind for kind in ("date", "time", "timestamp") if fmt.patterns(kind)]
    if own and not any(map(_WHOLE.fullmatch, texts)):
        column = pa.array(texts, pa.string()).cast(pa.binary())
        for kind in own:
            if not encode_text(kind, column, fmt, null_length=-1)[1]:
                return Inferred(kind, f"times, as --{kind}-format reads them")
    if all(map(_DATE.fullmatch, texts)):
        return Inferred("date", "dates")
    if all(map(_TIME.fullmatch, texts)):
        return Inferred("time", "times of the day")
    if all(_MOMENT.fullmatch(text) or _DATE.fullmatch(text) for text in texts):
        if any(map(_FINER.search, texts)):
            return Inferred("text", _TIMES_TOO_FINE)
        return Inferred("timestamp", "dates with a time")
    return None


def _why_text(texts: Sequence[str]) -> str:
    """Return why a column is text: its first value that is not a number, if others are numbers."""
    zero = next((text for text in texts if _LEADING_ZERO.match(text)), None)
    if zero is not None and zero.lstrip("+-").isdigit():
        return f"{quote(zero)} has a leading zero"
    first = texts[0]
    for pattern, kind in ((_NUMBER, "number"), (_MOMENT, "time"), (_DATE, "date")):
        if pattern.fullmatch(first):
            other = next((text for text in texts if not pattern.fullmatch(text)), None)
            if other is not None:
                return f"{quote(other)} is not a {kind}"
    return f"such as {quote(first)}"


def _of_strings(values: Sequence[str], fmt: TextFormat) -> Inferred:
    """Return the type for JSON strings: only what no number or boolean could be."""
    texts = [*dict.fromkeys(values)]
    found = None
    if "" not in texts:
        if all(map(_UUID.fullmatch, texts)):
            found = Inferred("uuid", "strings that are UUIDs")
        else:
            found = _of_moments(texts, fmt)
    if found is None or _refused(found.cql_type, texts, fmt):
        return Inferred("text", "strings")
    return found


def _of_arrays(arrays: Sequence[list[Json]], fmt: TextFormat) -> Inferred:
    elements = [*chain.from_iterable(arrays)]
    if None in elements:
        raise NoType("a null in an array, which no list of Cassandra can hold")
    of = infer_json(elements, fmt).cql_type if elements else "text"
    return Inferred(f"frozen<list<{of}>>", "arrays" if elements else "empty arrays")


def _of_objects(objects: Sequence[dict[str, Json]], fmt: TextFormat) -> Inferred:
    values = [*chain.from_iterable(one.values() for one in objects)]
    if None in values:
        raise NoType("a null in an object, which no map of Cassandra can hold")
    inner = infer_json(values, fmt) if values else Inferred("text", "")
    if _refused(inner.cql_type, values, fmt):
        raise NoType("objects with values of several kinds")
    return Inferred(f"frozen<map<text, {inner.cql_type}>>", "objects with values of one kind")


def _refused(cql_type: str, values: Sequence[Json], fmt: TextFormat) -> bool:
    """Return whether the load would reject one of these values."""
    plain = [str(value) if isinstance(value, Number) else value for value in values]
    return bool(encode_json(parse_type(cql_type), plain, fmt, null_length=-1).faults)


#: Arrow's test of a type -> the CQL type.
_ARROW = (
    (pa.types.is_null, "text"),
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_int8, "tinyint"),
    (pa.types.is_int16, "smallint"),
    (pa.types.is_uint8, "smallint"),
    (pa.types.is_int32, "int"),
    (pa.types.is_uint16, "int"),
    (pa.types.is_int64, "bigint"),
    (pa.types.is_uint32, "bigint"),
    (pa.types.is_uint64, "varint"),
    (pa.types.is_float16, "float"),
    (pa.types.is_float32, "float"),
    (pa.types.is_float64, "double"),
    (pa.types.is_decimal, "decimal"),
    (pa.types.is_string, "text"),
    (pa.types.is_large_string, "text"),
    (pa.types.is_string_view, "text"),
    (pa.types.is_binary, "blob"),
    (pa.types.is_large_binary, "blob"),
    (pa.types.is_binary_view, "blob"),
    (pa.types.is_fixed_size_binary, "blob"),
    (pa.types.is_date, "date"),
    (pa.types.is_timestamp, "timestamp"),
    (pa.types.is_time, "time"),
    (pa.types.is_duration, "duration"),
)


def _arrow_text(arrow: pa.DataType) -> str:
    if isinstance(arrow, pa.BaseExtensionType):
        is_uuid = getattr(arrow, "extension_name", "") == "arrow.uuid"
        return "uuid" if is_uuid else _arrow_text(arrow.storage_type)
    if pa.types.is_dictionary(arrow):
        return _arrow_text(arrow.value_type)
    for matches, name in _ARROW:
        if matches(arrow):
            return name
    if pa.types.is_map(arrow):
        return f"frozen<map<{_arrow_text(arrow.key_type)}, {_arrow_text(arrow.item_type)}>>"
    if (
        pa.types.is_list(arrow)
        or pa.types.is_large_list(arrow)
        or pa.types.is_fixed_size_list(arrow)
    ):
        return f"frozen<list<{_arrow_text(arrow.value_type)}>>"
    if pa.types.is_struct(arrow) and arrow.num_fields:
        return f"frozen<tuple<{', '.join(_fields(arrow))}>>"
    raise NoType(f"{arrow} has no counterpart in CQL")


def _fields(struct: pa.DataType) -> Iterable[str]:
    return (_arrow_text(field.type) for field in struct)
