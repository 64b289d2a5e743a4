"""Choose a CQL type for a column of a new table, from a sample of its values. Pure.

| input | chosen by |
|---|---|
| text (CSV) | what every sampled value allows, as the load itself reads it |
| JSON | the kinds of its values: numbers, booleans, strings, arrays, objects |
| Arrow (Parquet) | the column's type, and its first values: see `infer_arrow` |

The choice is careful: a type must give each value back as it was. So `007` stays text, `12.50` is a
decimal, and a whole number is a bigint, since later values may be larger. A type that the values
only happen to fit (yes and no, 0 and 1, digits of a date) is not chosen.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import chain
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ringhaul.cql.nested import encode_json
from ringhaul.cql.spelt_json import Json, unique_names
from ringhaul.cql.temporal import FINER
from ringhaul.cql.text import TextFormat, encode_text
from ringhaul.cql.text_format import USUAL
from ringhaul.cql.types import parse_type
from ringhaul.mapping.spelt_kinds import (
    DATE,
    MOMENT,
    NUMBER,
    TIME,
    UUID,
    WHOLE,
    is_number,
    plain_number,
    why_text,
)
from ringhaul.option_names import input_option, job_option

_INT64_MAX = 2**63 - 1
_NOT_FINITE = re.compile("[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
_TIMES_TOO_FINE = "times finer than a millisecond, which a timestamp cannot hold"

#: Shorter arrays are pairs, colours and the like, not embeddings.
VECTOR_LENGTH_MIN = 16
_SEVERAL = "values of several kinds"
_KEPT = "kept as their JSON"


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
    stripped = [text.strip() for text in texts]
    column = values.drop_null()
    refused = None
    for found in _candidates(stripped, fmt):
        # What the load would reject is not allowed, whatever it looks like.
        _, bad = encode_text(found.cql_type, column, fmt, null_length=-1)
        if not bad:
            return found
        refused = refused or Inferred("text", bad[0].reason)
    return refused or Inferred("text", why_text(stripped, fmt))


def infer_json(
    values: Sequence[Json], fmt: TextFormat = USUAL, *, vectors: bool = True
) -> Inferred:
    """Return the type for values that `TYPED_JSON` decoded; None is null. `vectors`: whether the
    cluster has vectors.

    Raises `NoType` for arrays and objects that no type can hold.
    """
    present = [value for value in values if value is not None]
    if not present:
        return Inferred("text", "no value in the sample")
    kinds = {type(value) for value in present}
    if kinds == {bool}:
        return Inferred("boolean", "true and false")
    if kinds == {list}:
        return _of_arrays(present, fmt, vectors)
    if kinds == {dict}:
        return _of_objects(present, fmt)
    if kinds & {list, dict}:
        return _as_json("arrays or objects beside other values", fmt)
    if kinds == {Number}:
        found = _of_numbers([*dict.fromkeys(map(str, present))])
        return found or Inferred("double", "numbers")
    if kinds == {str}:
        return _of_strings(present, fmt)
    return Inferred("text", _SEVERAL)


def widened(one: str, other: str) -> str | None:
    """Return the type that holds the values of both types; None if there is none.

    Text also holds UUIDs, and a list also holds arrays of other lengths.
    """
    if one == other:
        return one
    if {one, other} == {"text", "uuid"}:
        return "text"
    lists = {_as_list(one), _as_list(other)}
    if len(lists) == 1 and one.startswith(_LISTS) and other.startswith(_LISTS):
        return lists.pop()
    for ladder in _LADDERS:
        if one in ladder and other in ladder:
            return max(one, other, key=ladder.index)
    return None


_LISTS = ("vector<", "frozen<list<")


def _as_list(cql_type: str) -> str:
    """Return the list type of a vector's elements; any other type unchanged."""
    if not cql_type.startswith("vector<"):
        return cql_type
    element = cql_type.removeprefix("vector<").rpartition(",")[0]
    return f"frozen<list<{element}>>"


#: Each type holds the values of the types before it.
_LADDERS = (
    ("tinyint", "smallint", "int", "bigint", "varint", "decimal"),
    ("float", "double"),
)


def _candidates(texts: Sequence[str], fmt: TextFormat) -> Iterator[Inferred]:
    """Yield the types that distinct texts look like, none empty unless it was blank."""
    if found := _of_words(texts, fmt):
        yield found
        return
    if fmt.plain_numbers:
        numbers = _of_numbers(texts)
    else:
        numbers = None
        if all(is_number(text, fmt) for text in texts):
            numbers = _of_numbers([plain_number(text, fmt) for text in texts])
    if numbers:
        yield numbers
    if moments := _of_moments(texts, fmt):
        yield moments


def _of_words(texts: Sequence[str], fmt: TextFormat) -> Inferred | None:
    own = (fmt.true_words, fmt.false_words) != (USUAL.true_words, USUAL.false_words)
    words = {*fmt.true_words, *fmt.false_words} if own else {"true", "false"}
    if {text.lower() for text in texts} <= {word.lower() for word in words}:
        return Inferred("boolean", " and ".join(sorted(texts)[:2]))
    if all(map(UUID.fullmatch, texts)):
        return Inferred("uuid", "UUIDs")
    return None


def _of_numbers(texts: Sequence[str]) -> Inferred | None:
    """Return the type for numbers; None if some text is not a number."""
    if all(map(WHOLE.fullmatch, texts)):
        large = next((text for text in texts if not _fits_bigint(text)), None)
        if large is not None:
            return Inferred("varint", f"whole numbers, some beyond a bigint, such as {large[:40]}")
        return Inferred("bigint", "whole numbers")
    found = [NUMBER.fullmatch(text) for text in texts]
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
    if own and not any(map(WHOLE.fullmatch, texts)):
        column = pa.array(texts, pa.string()).cast(pa.binary())
        for kind in own:
            if not encode_text(kind, column, fmt, null_length=-1)[1]:
                return Inferred(kind, f"times, as --{kind}-format reads them")
    if all(map(DATE.fullmatch, texts)):
        return Inferred("date", "dates")
    if all(map(TIME.fullmatch, texts)):
        return Inferred("time", "times of the day")
    if all(MOMENT.fullmatch(text) or DATE.fullmatch(text) for text in texts):
        if any(map(FINER.search, texts)):
            return Inferred("text", _TIMES_TOO_FINE)
        return Inferred("timestamp", "dates with a time")
    return None


def _of_strings(values: Sequence[str], fmt: TextFormat) -> Inferred:
    """Return the type for JSON strings: only what no number or boolean could be."""
    texts = [*dict.fromkeys(values)]
    found = None
    if "" not in texts:
        if all(map(UUID.fullmatch, texts)):
            found = Inferred("uuid", "strings that are UUIDs")
        else:
            found = _of_moments(texts, fmt)
    if found is None or _refused(found.cql_type, texts, fmt):
        return Inferred("text", "strings")
    return found


def _of_arrays(arrays: Sequence[list[Json]], fmt: TextFormat, vectors: bool) -> Inferred:
    elements = [*chain.from_iterable(arrays)]
    if None in elements:
        return _as_json("arrays with a null, which no list of Cassandra can hold", fmt)
    if vectors and (found := _of_vectors(arrays, elements)):
        return found
    inner = infer_json(elements, fmt, vectors=False) if elements else Inferred("text", "")
    if inner.reason.endswith(_KEPT):
        return _as_json("arrays whose elements no type holds", fmt)
    return Inferred(f"frozen<list<{inner.cql_type}>>", "arrays" if elements else "empty arrays")


def _of_vectors(arrays: Sequence[list[Json]], elements: Sequence[Json]) -> Inferred | None:
    """Return the type for arrays of numbers that have one length, such as embeddings."""
    lengths = {len(array) for array in arrays}
    if len(lengths) != 1 or (length := lengths.pop()) < VECTOR_LENGTH_MIN:
        return None
    if {type(element) for element in elements} != {Number}:
        return None
    if all(WHOLE.fullmatch(str(element)) for element in elements):
        return None
    doubles = np.array([float(str(element)) for element in elements])
    if not np.isfinite(doubles).all():
        return None
    with np.errstate(over="ignore", under="ignore"):
        singles = doubles.astype(np.float32)
    left = np.flatnonzero(singles.astype(np.float64) != doubles)
    exact = all(float(str(singles[place])) == doubles[place] for place in left.tolist())
    return vector_type("float" if exact else "double", length)


def vector_type(element: str, length: int) -> Inferred:
    """Return the type for arrays of `length` numbers each."""
    reason = f"{length} numbers in each array"
    if element == "double":
        option = job_option("type")
        reason += f"; an index needs {option} COLUMN='vector<float, {length}>', which rounds them"
    return Inferred(f"vector<{element}, {length}>", reason)


def _of_objects(objects: Sequence[dict[str, Json]], fmt: TextFormat) -> Inferred:
    values = [*chain.from_iterable(one.values() for one in objects)]
    if None in values:
        return _as_json("objects with a null, which no map of Cassandra can hold", fmt)
    if len({type(value) for value in values}) > 1:
        return _as_json("objects with values of several kinds", fmt)
    inner = infer_json(values, fmt, vectors=False) if values else Inferred("text", "")
    if inner.reason.endswith(_KEPT) or _refused(inner.cql_type, values, fmt):
        return _as_json("objects with values of several kinds", fmt)
    return Inferred(f"frozen<map<text, {inner.cql_type}>>", "objects with values of one kind")


def _as_json(what: str, fmt: TextFormat) -> Inferred:
    """Return text for arrays or objects that no type holds, if they may be kept as their JSON.

    Raises `NoType` if not.
    """
    if fmt.accepts("json-text"):
        return Inferred("text", f"{what}; {_KEPT}")
    raise NoType(
        f"{what}. {input_option('accept')} json-text keeps each as its JSON in a column of text; "
        "to keep its fields apart, create a user-defined type and name it with "
        f"{job_option('type')}"
    )


def _refused(cql_type: str, values: Sequence[Json], fmt: TextFormat) -> bool:
    """Return whether the load would reject one of these values."""
    plain = [str(value) if isinstance(value, Number) else value for value in values]
    return bool(encode_json(parse_type(cql_type), plain, fmt, null_length=-1).faults)
