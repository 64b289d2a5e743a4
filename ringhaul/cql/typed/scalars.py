"""The table of Arrow types that can become a scalar CQL type, with their encoders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from ringhaul.cql.join import Column
from ringhaul.cql.text import ENCODERS
from ringhaul.cql.text_format import TextFormat
from ringhaul.cql.typed.binary import encode_blobs, encode_inets, encode_uuids
from ringhaul.cql.typed.numbers import (
    encode_booleans,
    encode_floats,
    encode_integers,
    floats_of_integers,
    integers_of_floats,
)
from ringhaul.cql.typed.temporal import (
    INTERVAL_BYTES,
    encode_dates,
    encode_durations,
    encode_intervals,
    encode_times,
    encode_timestamps,
)
from ringhaul.cql.typed.texts import (
    by_digits,
    by_text,
    by_words,
    from_binary,
    from_text,
    into_text,
)
from ringhaul.cql.types import CqlType

#: Arrow array without nulls -> cells.
Encoder = Callable[[CqlType, Any, TextFormat], Column]


def scalar_encoder(kind: CqlType, arrow: pa.DataType) -> Encoder | None:
    """Return the encoder of the plain type `arrow` to the scalar `kind`, if there is one."""
    if kind.name not in ENCODERS:
        return None
    if pa.types.is_string(arrow):
        return from_text
    return next((encode for fits, encode in _SCALARS[kind.name] if fits(arrow)), None)


def _is_binary(arrow: pa.DataType) -> bool:
    return bool(pa.types.is_binary(arrow) or pa.types.is_fixed_size_binary(arrow))


def _is_whole_decimal(arrow: pa.DataType) -> bool:
    return bool(pa.types.is_decimal(arrow) and arrow.scale == 0)


def _is_moment(arrow: pa.DataType) -> bool:
    return bool(pa.types.is_date(arrow) or pa.types.is_timestamp(arrow) or pa.types.is_time(arrow))


def _is_interval(arrow: pa.DataType) -> bool:
    """Whether a type is Parquet's INTERVAL of 12 bytes, or Arrow's interval of three parts."""
    if pa.types.is_fixed_size_binary(arrow):
        return bool(arrow.byte_width == INTERVAL_BYTES)
    return bool(pa.types.is_interval(arrow))


def _is_duration(arrow: pa.DataType) -> bool:
    """Whether a type is Arrow's duration, or the struct that stands for a CQL duration."""
    if pa.types.is_struct(arrow):
        fields = {field.name: field.type for field in arrow}
        return fields.keys() == {"months", "days", "nanoseconds"} and all(
            map(pa.types.is_integer, fields.values())
        )
    return bool(pa.types.is_duration(arrow))


_Rule = tuple[Callable[[pa.DataType], bool], Encoder]
_types = pa.types
_TEXT: list[_Rule] = [
    (_is_binary, from_binary),
    (_types.is_integer, into_text),
    (_types.is_floating, into_text),
    (_types.is_decimal, into_text),
    (_types.is_boolean, into_text),
    (_is_moment, into_text),
]
_INTEGER: list[_Rule] = [
    (_types.is_integer, encode_integers),
    (_types.is_floating, integers_of_floats),
    (_is_whole_decimal, by_text),
    (_types.is_decimal, by_digits),
]
_EXACT: list[_Rule] = [
    (_types.is_integer, by_text),
    (_types.is_decimal, by_digits),
    (_types.is_floating, by_digits),
]
_REAL: list[_Rule] = [
    (_types.is_floating, encode_floats),
    (_types.is_integer, floats_of_integers),
    (_types.is_decimal, by_digits),
]
#: Scalar -> plain Arrow types and their encoders; text is read by each scalar's own encoder.
_SCALARS: dict[str, list[_Rule]] = {
    "ascii": _TEXT,
    "text": _TEXT,
    "varchar": _TEXT,
    "tinyint": _INTEGER,
    "smallint": _INTEGER,
    "int": _INTEGER,
    "bigint": _INTEGER,
    "varint": _EXACT,
    "decimal": _EXACT,
    "float": _REAL,
    "double": _REAL,
    "boolean": [(_types.is_boolean, encode_booleans), (_types.is_integer, by_words)],
    "timestamp": [
        (_types.is_timestamp, encode_timestamps),
        (_types.is_date, encode_timestamps),
        (_types.is_integer, by_text),
    ],
    "date": [(_types.is_date, encode_dates), (_types.is_timestamp, encode_dates)],
    "time": [(_types.is_time, encode_times)],
    "duration": [(_is_duration, encode_durations), (_is_interval, encode_intervals)],
    "uuid": [(_is_binary, encode_uuids)],
    "timeuuid": [(_is_binary, encode_uuids)],
    "inet": [(_is_binary, encode_inets)],
    "blob": [(_is_binary, encode_blobs)],
}
