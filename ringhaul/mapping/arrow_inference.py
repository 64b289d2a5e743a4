"""Choose a CQL type for a column of Parquet: by its Arrow type, and where that leaves a choice by
its first values. Pure.

| Arrow | values | CQL |
|---|---|---|
| strings | all are UUIDs | `uuid` |
| lists of `float` or `double` | all of one length, from 16 on | `vector` |
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from ringhaul.cql.typed import refusal
from ringhaul.cql.types import parse_type
from ringhaul.mapping.inference import VECTOR_LENGTH_MIN, Inferred, NoType, vector_type
from ringhaul.option_names import job_option

_UUID = "(?i)^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"


def infer_arrow(
    arrow: pa.DataType, values: pa.Array | None = None, *, vectors: bool = True
) -> Inferred:
    """Return the type for a column of an Arrow type. Raises `NoType` if there is none.

    `values`: the first values. `vectors`: whether the cluster has vectors.
    """
    if values is not None and (found := _by_values(arrow, values, vectors)):
        return found
    if vectors and _is_vector(arrow):
        return vector_type(_arrow_text(arrow.value_type), arrow.list_size)
    text = _arrow_text(arrow)
    reason = arrow_words(arrow)
    if pa.types.is_timestamp(arrow) and arrow.unit in ("us", "ns"):
        reason += "; finer than a millisecond is cut off"
    if pa.types.is_struct(arrow):
        option = job_option("type")
        reason += (
            f", as a tuple by position; for names create a user-defined type and give {option}"
        )
    why = refusal(parse_type(text), arrow)
    if why is not None:
        raise NoType(f"{arrow_words(arrow)} do not become {text}")
    return Inferred(text, reason)


def may_need_values(arrow: pa.DataType) -> bool:
    """Return whether the values of a column decide about its type."""
    return _is_string(arrow) or _is_list_of_floats(arrow)


def _by_values(arrow: pa.DataType, values: pa.Array, vectors: bool) -> Inferred | None:
    values = values.drop_null()
    if not len(values):
        return None
    if _is_string(arrow):
        texts = values.cast(pa.large_string())
        if pc.all(pc.match_substring_regex(texts, _UUID)).as_py():
            return Inferred("uuid", "strings that are UUIDs")
        return None
    if vectors and _is_list_of_floats(arrow):
        lengths = pc.unique(pc.list_value_length(values))
        if len(lengths) == 1 and lengths[0].as_py() >= VECTOR_LENGTH_MIN:
            return vector_type(_arrow_text(arrow.value_type), lengths[0].as_py())
    return None


def _is_string(arrow: pa.DataType) -> bool:
    if pa.types.is_dictionary(arrow):
        return _is_string(arrow.value_type)
    return bool(
        pa.types.is_string(arrow)
        or pa.types.is_large_string(arrow)
        or pa.types.is_string_view(arrow)
    )


def _is_list_of_floats(arrow: pa.DataType) -> bool:
    is_list = pa.types.is_list(arrow) or pa.types.is_large_list(arrow)
    return bool(is_list and pa.types.is_floating(arrow.value_type))


def _is_vector(arrow: pa.DataType) -> bool:
    """Whether a type fixes the length of its lists of numbers, at many numbers."""
    return bool(
        pa.types.is_fixed_size_list(arrow)
        and pa.types.is_floating(arrow.value_type)
        and arrow.list_size >= VECTOR_LENGTH_MIN
    )


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
    raise NoType(f"{arrow_words(arrow)} have no counterpart in CQL")


def _fields(struct: pa.DataType) -> Iterable[str]:
    return (_arrow_text(field.type) for field in struct)


#: Arrow's test of a type -> the plural that people know it by.
_WORDS = (
    (pa.types.is_null, "nothing but nulls"),
    (pa.types.is_boolean, "true and false"),
    (pa.types.is_unsigned_integer, "whole numbers of {bits} bits without a sign"),
    (pa.types.is_integer, "whole numbers of {bits} bits"),
    (pa.types.is_floating, "floating-point numbers of {bits} bits"),
    (pa.types.is_decimal, "decimal numbers"),
    (pa.types.is_string, "strings"),
    (pa.types.is_large_string, "strings"),
    (pa.types.is_string_view, "strings"),
    (pa.types.is_binary, "bytes"),
    (pa.types.is_large_binary, "bytes"),
    (pa.types.is_binary_view, "bytes"),
    (pa.types.is_date, "dates"),
    (pa.types.is_timestamp, "dates with a time"),
    (pa.types.is_time, "times of the day"),
    (pa.types.is_duration, "durations"),
    (pa.types.is_interval, "intervals of months, days and nanoseconds"),
    (pa.types.is_map, "maps"),
    (pa.types.is_struct, "structs"),
)


def arrow_words(arrow: pa.DataType) -> str:
    """Return what the values of an Arrow type are, in plain words."""
    if isinstance(arrow, pa.BaseExtensionType):
        is_uuid = getattr(arrow, "extension_name", "") == "arrow.uuid"
        return "UUIDs" if is_uuid else arrow_words(arrow.storage_type)
    if pa.types.is_dictionary(arrow):
        return arrow_words(arrow.value_type)
    if pa.types.is_fixed_size_binary(arrow):
        return f"{arrow.byte_width} bytes each"
    for matches, words in _WORDS:
        if matches(arrow):
            return words.format(bits=arrow.bit_width) if "{" in words else words
    if (
        pa.types.is_list(arrow)
        or pa.types.is_large_list(arrow)
        or pa.types.is_fixed_size_list(arrow)
    ):
        return f"lists of {arrow_words(arrow.value_type)}"
    return f"values of Arrow's type {arrow}"
