"""Columns that have types already (Arrow arrays, as Parquet gives them) to cells.

| CQL | Arrow types that load, besides the form in `types.py` |
|---|---|
| every type | string: as a CSV cell, nested values as JSON; dictionaries and large types; null |
| ascii, text, varchar | binary that holds such text |
| tinyint ... bigint | integers of any width; floats without a fraction; decimals of scale 0 |
| varint, decimal | integers; decimals |
| float, double | floats of any width, rounded once; integers that are exact |
| timestamp | timestamps of any unit, with a zone or in the load's own; dates; integers, as in CSV |
| date | date64, and timestamps at midnight |
| time | time32 and time64 of any unit |
| duration | duration of any unit |
| uuid, timeuuid, inet, blob | binary, fixed or not |
| list, set, vector | lists of all three kinds |
| map | list of structs with two fields |
| tuple | struct, by position |
| user-defined type | struct, by field name; fields that are missing are null |

A value that its type cannot hold, or not exactly, costs its record.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ringhaul.cql.calendar import DAY_MS, utc_of_column, zone_named
from ringhaul.cql.cells import NULL_LENGTH, Cells
from ringhaul.cql.column import Mask, TextColumn, shown
from ringhaul.cql.durations import duration_cells
from ringhaul.cql.gluing import (
    Column,
    Fault,
    Faults,
    collection_cells,
    faults_of,
    fields_cells,
    lift,
    null_faults,
    vector_cells,
)
from ringhaul.cql.nested import encode_column
from ringhaul.cql.text import ENCODERS
from ringhaul.cql.text_format import TextFormat
from ringhaul.cql.types import CqlType

#: Arrow array without nulls -> cells.
Encoder = Callable[[CqlType, Any, TextFormat], Column]

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_DAY_NS = 86_400 * 10**9
_WIRE = {
    "tinyint": ">i1", "smallint": ">i2", "int": ">i4", "bigint": ">i8",
    "float": ">f4", "double": ">f8",
}  # fmt: skip
#: Whole numbers up to here have a float or double of their own.
_EXACT_MAX = {"float": 2**24, "double": 2**53}
_INT64_MAX = 2**63 - 1


def refusal(kind: CqlType, arrow: pa.DataType) -> str | None:
    """Why no value of an Arrow type can become `kind`, naming the two types; None: they can."""
    arrow = _plain_type(arrow)
    if pa.types.is_null(arrow) or pa.types.is_string(arrow):
        return None
    if kind.scalar:
        return None if _scalar_encoder(kind, arrow) else f"{arrow} does not become {kind.name}"
    inner = _inner_types(kind, arrow)
    if inner is None:
        return f"{arrow} does not become {kind.name}"
    return next((why for of, data_type in inner if (why := refusal(of, data_type))), None)


def encode_typed(
    kind: CqlType, array: pa.Array, fmt: TextFormat, *, null_length: int = NULL_LENGTH
) -> Column:
    """Cells of a column; an Arrow null becomes a cell of length `null_length`.

    The array's type must be one that `refusal` has nothing against.
    """
    array = _plain(array)
    if pa.types.is_null(array.type):
        array = array.cast(pa.string())
    if not array.null_count:
        return _encode(kind, array, fmt)
    valid: Mask = array.is_valid().to_numpy(zero_copy_only=False)
    cells, faults = _encode(kind, array.drop_null(), fmt)
    rows = np.flatnonzero(valid)
    faults = {int(rows[row]): fault for row, fault in faults.items()}
    return Column(cells.spread(valid, null_length), faults)


def _encode(kind: CqlType, array: Any, fmt: TextFormat) -> Column:
    if kind.scalar:
        encode = _scalar_encoder(kind, array.type)
        assert encode is not None, f"{array.type} for {kind.name}"
        return encode(kind, array, fmt)
    if pa.types.is_string(array.type):
        return _from_json(kind, array, fmt)
    return _NESTED[kind.name](kind, array, fmt)


def _plain_type(arrow: pa.DataType) -> pa.DataType:
    """The type that `_plain` gives an array."""
    if isinstance(arrow, pa.BaseExtensionType):
        return _plain_type(arrow.storage_type)
    if pa.types.is_dictionary(arrow):
        return _plain_type(arrow.value_type)
    if pa.types.is_large_string(arrow) or pa.types.is_string_view(arrow):
        return pa.string()
    if pa.types.is_large_binary(arrow) or pa.types.is_binary_view(arrow):
        return pa.binary()
    return arrow


def _plain(array: pa.Array) -> Any:
    """The array in the plainest type for its values: what it is made of inside stays as it is."""
    if isinstance(array.type, pa.BaseExtensionType):
        return _plain(array.storage)
    if pa.types.is_dictionary(array.type):
        return _plain(array.dictionary_decode())
    plain = _plain_type(array.type)
    return array if array.type == plain else array.cast(plain)


# Scalars.


def _scalar_encoder(kind: CqlType, arrow: pa.DataType) -> Encoder | None:
    """What reads values of the plain type `arrow` as the scalar `kind`, if anything does."""
    if kind.name not in ENCODERS:
        return None
    if pa.types.is_string(arrow):
        return _from_text
    return next((encode for fits, encode in _SCALARS[kind.name] if fits(arrow)), None)


def _from_text(kind: CqlType, array: Any, fmt: TextFormat) -> Column:
    cells, bad = ENCODERS[kind.name](TextColumn.of(array), fmt)
    return Column(cells, faults_of(bad, kind.name))


def _by_text(kind: CqlType, array: Any, fmt: TextFormat) -> Column:
    """Numbers whose text is exact, by that text."""
    plain = TextFormat(epoch_unit=fmt.epoch_unit, timezone=fmt.timezone)
    return _from_text(kind, array.cast(pa.string()), plain)


def _from_json(kind: CqlType, array: Any, fmt: TextFormat) -> Column:
    cells, faults = encode_column(kind, array.cast(pa.binary()), fmt, null_length=NULL_LENGTH)
    return Column(cells, faults)


def _faults(kind: CqlType, array: Any, bad: Mask, reason: str) -> Faults:
    """The same reason, behind the value, for each row of `bad`."""
    return {
        int(row): Fault("", kind.name, f"{_told(array, int(row))} {reason}")
        for row in np.flatnonzero(bad)
    }


def _told(array: Any, row: int) -> str:
    """A value for a message; Python has no date for every one."""
    try:
        return str(pc.cast(array.slice(row, 1), pa.string())[0].as_py())
    except pa.ArrowException:
        return str(array[row])


def _integers(kind: CqlType, array: Any, _: TextFormat) -> Column:
    values, wire = array.to_numpy(), np.dtype(_WIRE[kind.name])
    if np.can_cast(values.dtype, wire):
        return Column(Cells.fixed(values.astype(wire)), {})
    low, high = int(np.iinfo(wire).min), int(np.iinfo(wire).max)
    bad = (values < low) | (values > high)
    faults = _faults(kind, array, bad, f"is outside {low}..{high}")
    return Column(Cells.fixed(values.astype(wire)), faults)


def _whole_floats(kind: CqlType, array: Any, _: TextFormat) -> Column:
    values = array.to_numpy().astype(np.float64)
    wire = np.dtype(_WIRE[kind.name])
    low, high = int(np.iinfo(wire).min), int(np.iinfo(wire).max)
    # high + 1 is a power of two, which a float is exactly; high itself may not be.
    outside = ~((values >= low) & (values < high + 1))
    broken = ~outside & (np.floor(values) != values)
    faults = _faults(kind, array, outside, f"is outside {low}..{high}")
    faults |= _faults(kind, array, broken, "is not a whole number")
    whole = np.where(outside | broken, 0.0, values)
    return Column(Cells.fixed(whole.astype(np.int64).astype(wire)), faults)


def _floats(kind: CqlType, array: Any, _: TextFormat) -> Column:
    values = array.to_numpy()
    with np.errstate(over="ignore"):
        wire = values.astype(_WIRE[kind.name])
    too_large = np.isinf(wire) & np.isfinite(values)
    return Column(
        Cells.fixed(wire), _faults(kind, array, too_large, f"is outside the range of a {kind.name}")
    )


def _floats_of_integers(kind: CqlType, array: Any, _: TextFormat) -> Column:
    values, most = array.to_numpy(), _EXACT_MAX[kind.name]
    inexact = (values > most) | (values < -most)
    faults = _faults(kind, array, inexact, f"may not be exact as a {kind.name}")
    return Column(Cells.fixed(values.astype(_WIRE[kind.name])), faults)


def _booleans(_: CqlType, array: Any, __: TextFormat) -> Column:
    return Column(Cells.fixed(array.to_numpy(zero_copy_only=False).astype(np.uint8)), {})


def _milliseconds(kind: CqlType, array: Any, fmt: TextFormat) -> tuple[NDArray[np.int64], Faults]:
    """Milliseconds since 1970 UTC."""
    arrow = array.type
    if pa.types.is_date(arrow):
        unit, zone = ("day" if pa.types.is_date32(arrow) else "ms"), None
    else:
        unit, zone = arrow.unit, arrow.tz
    values = _numbers(array).astype(np.int64)
    if unit in ("day", "s"):
        factor = DAY_MS if unit == "day" else 1000
        outside = (values > _INT64_MAX // factor) | (values < -(_INT64_MAX // factor))
        faults = _faults(kind, array, outside, "is outside the timestamps that Cassandra can hold")
        values = np.where(outside, 0, values) * factor
    else:
        factor = _PER_SECOND[unit] // 1000
        finer = values % factor != 0
        faults = _faults(
            kind, array, finer, "is finer than milliseconds, which is all that is kept"
        )
        values = values // factor
    if zone is None and fmt.timezone != "UTC":
        values = utc_of_column(values, zone_named(fmt.timezone))
    return values, faults


def _timestamps(kind: CqlType, array: Any, fmt: TextFormat) -> Column:
    values, faults = _milliseconds(kind, array, fmt)
    return Column(Cells.fixed(values.astype(">i8")), faults)


def _dates(kind: CqlType, array: Any, _: TextFormat) -> Column:
    faults: Faults = {}
    days = _numbers(array).astype(np.int64)
    if not pa.types.is_date32(array.type):
        values, faults = _milliseconds(kind, array, TextFormat())
        days = values // DAY_MS
        faults |= _faults(kind, array, values % DAY_MS != 0, "is not midnight, and no date")
        outside = (days < -(2**31)) | (days >= 2**31)
        faults |= _faults(kind, array, outside, "is outside -5877641-06-23..+5881580-07-11")
    return Column(Cells.fixed((days + 2**31).astype(">u4")), faults)


def _times(kind: CqlType, array: Any, _: TextFormat) -> Column:
    per_second = _PER_SECOND[array.type.unit]
    values = _numbers(array).astype(np.int64)
    outside = (values < 0) | (values >= 86_400 * per_second)
    wire = np.where(outside, 0, values) * (10**9 // per_second)
    return Column(
        Cells.fixed(wire.astype(">i8")), _faults(kind, array, outside, "is outside 00:00..24:00")
    )


def _durations(kind: CqlType, array: Any, _: TextFormat) -> Column:
    if pa.types.is_duration(array.type):
        factor = 10**9 // _PER_SECOND[array.type.unit]
        values = _numbers(array)
        outside = (values > _INT64_MAX // factor) | (values < -(_INT64_MAX // factor))
        nanoseconds = np.where(outside, 0, values) * factor
        nothing = np.zeros(len(values), np.int64)
        faults = _faults(kind, array, outside, "is outside the durations that Cassandra can hold")
        return Column(duration_cells(nothing, nothing, nanoseconds), faults)
    faults = {}
    parts = []
    for name in ("months", "days", "nanoseconds"):
        part = array.field(name)
        for row in np.flatnonzero(part.is_null().to_numpy(zero_copy_only=False)):
            faults[int(row)] = Fault(f".{name}", kind.name, "null; each part needs a number")
        parts.append(part.fill_null(0).to_numpy().astype(np.int64))
    for name, part in zip(("months", "days"), parts, strict=False):
        for row in np.flatnonzero((part < -(2**31)) | (part >= 2**31)):
            faults[int(row)] = Fault(f".{name}", kind.name, f"{part[row]} is outside an int")
    mixed = np.any([p < 0 for p in parts], axis=0) & np.any([p > 0 for p in parts], axis=0)
    for row in np.flatnonzero(mixed):
        words = ", ".join(str(part[row]) for part in parts)
        faults[int(row)] = Fault("", kind.name, f"the parts {words} differ in sign")
    return Column(duration_cells(*parts), faults)


def _binaries(kind: CqlType, array: Any, fmt: TextFormat) -> Column:
    return _from_text(kind, array.cast(pa.binary()), fmt)


def _blobs(_: CqlType, array: Any, __: TextFormat) -> Column:
    return Column(Cells.variable(array.cast(pa.binary())), {})


def _uuids(kind: CqlType, array: Any, _: TextFormat) -> Column:
    column = TextColumn.of(array.cast(pa.binary()))
    odd = column.lengths != 16
    faults = {
        int(row): Fault("", kind.name, f"{column.lengths[row]} bytes where a {kind.name} has 16")
        for row in np.flatnonzero(odd)
    }
    if odd.any():
        column = TextColumn.of(
            pc.if_else(pa.array(odd), pa.scalar(bytes(16), pa.binary()), column.array())
        )
    values = column.data.reshape(-1, 16)
    if kind.name == "timeuuid":
        for row in np.flatnonzero(~odd & (values[:, 6] >> 4 != 1)):
            version = int(values[row, 6]) >> 4
            faults[int(row)] = Fault("", kind.name, f"a uuid of version {version}, not 1")
    return Column(Cells.fixed(values), faults)


def _inets(kind: CqlType, array: Any, _: TextFormat) -> Column:
    column = TextColumn.of(array.cast(pa.binary()))
    odd = (column.lengths != 4) & (column.lengths != 16)
    faults = {
        int(row): Fault("", kind.name, f"{column.lengths[row]} bytes where an address has 4 or 16")
        for row in np.flatnonzero(odd)
    }
    return Column(Cells.variable(column.array()), faults)


def _numbers(array: Any) -> NDArray[Any]:
    """The numbers below a temporal type."""
    width = array.type.bit_width
    found: NDArray[Any] = array.view(pa.int32() if width == 32 else pa.int64()).to_numpy()
    return found


def _is_binary(arrow: pa.DataType) -> bool:
    return bool(pa.types.is_binary(arrow) or pa.types.is_fixed_size_binary(arrow))


def _is_whole_decimal(arrow: pa.DataType) -> bool:
    return bool(pa.types.is_decimal(arrow) and arrow.scale == 0)


def _is_duration(arrow: pa.DataType) -> bool:
    if pa.types.is_struct(arrow):
        fields = {field.name: field.type for field in arrow}
        return fields.keys() == {"months", "days", "nanoseconds"} and all(
            map(pa.types.is_integer, fields.values())
        )
    return bool(pa.types.is_duration(arrow))


_Rule = tuple[Callable[[pa.DataType], bool], Encoder]
_types = pa.types
_TEXT: list[_Rule] = [(_is_binary, _binaries)]
_INTEGER: list[_Rule] = [
    (_types.is_integer, _integers),
    (_types.is_floating, _whole_floats),
    (_is_whole_decimal, _by_text),
]
_EXACT: list[_Rule] = [(_types.is_integer, _by_text), (_types.is_decimal, _by_text)]
_REAL: list[_Rule] = [(_types.is_floating, _floats), (_types.is_integer, _floats_of_integers)]
#: Scalar -> what reads which plain Arrow types; text is read by every type's own encoder.
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
    "boolean": [(_types.is_boolean, _booleans)],
    "timestamp": [
        (_types.is_timestamp, _timestamps),
        (_types.is_date, _timestamps),
        (_types.is_integer, _by_text),
    ],
    "date": [(_types.is_date, _dates), (_types.is_timestamp, _dates)],
    "time": [(_types.is_time, _times)],
    "duration": [(_is_duration, _durations)],
    "uuid": [(_is_binary, _uuids)],
    "timeuuid": [(_is_binary, _uuids)],
    "inet": [(_is_binary, _inets)],
    "blob": [(_is_binary, _blobs)],
}


# Nested types.


def _is_list(arrow: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(arrow)
        or pa.types.is_large_list(arrow)
        or pa.types.is_fixed_size_list(arrow)
    )


def _inner_types(kind: CqlType, arrow: pa.DataType) -> list[tuple[CqlType, pa.DataType]] | None:
    """The element types that must become each other; None: the outer ones do not."""
    if kind.name in ("list", "set", "vector"):
        return [(kind.of[0], arrow.value_type)] if _is_list(arrow) else None
    if kind.name == "map":
        if pa.types.is_map(arrow):
            return [(kind.of[0], arrow.key_type), (kind.of[1], arrow.item_type)]
        if _is_list(arrow) and pa.types.is_struct(arrow.value_type):
            types = [field.type for field in arrow.value_type]
            return list(zip(kind.of, types, strict=True)) if len(types) == 2 else None
        return None
    if not pa.types.is_struct(arrow):
        return None
    fields = {field.name: field.type for field in arrow}
    if kind.name == "tuple":
        same = arrow.num_fields == len(kind.of)
        return list(zip(kind.of, [f.type for f in arrow], strict=True)) if same else None
    if len(fields) != arrow.num_fields or not fields.keys() <= set(kind.fields):
        return None
    types_of = dict(zip(kind.fields, kind.of, strict=True))
    return [(types_of[name], data_type) for name, data_type in fields.items()]


def _encode_list(kind: CqlType, array: Any, fmt: TextFormat) -> Column:
    counts = pc.list_value_length(array).to_numpy().astype(np.int64)
    cells, bad = encode_typed(kind.of[0], array.flatten(), fmt)
    bad = null_faults(cells, kind.of[0], f"a {kind.name}") | bad
    return Column(collection_cells([cells], counts), lift(bad, counts))


def _encode_vector(kind: CqlType, array: Any, fmt: TextFormat) -> Column:
    counts = pc.list_value_length(array).to_numpy().astype(np.int64)
    fits: Mask = counts == kind.size
    if not fits.all():
        cells, bad = _encode_vector(kind, array.filter(pa.array(fits)), fmt)
        rows = np.flatnonzero(fits)
        faults = {int(rows[row]): fault for row, fault in bad.items()}
        for row in np.flatnonzero(~fits):
            reason = f"{counts[row]} elements where the vector has {kind.size}"
            faults[int(row)] = Fault("", kind.name, reason)
        return Column(cells.spread(fits, NULL_LENGTH), faults)
    cells, bad = encode_typed(kind.of[0], array.flatten(), fmt)
    bad = null_faults(cells, kind.of[0], "a vector") | bad
    return Column(vector_cells(kind, cells, len(array)), lift(bad, counts))


def _encode_map(kind: CqlType, array: Any, fmt: TextFormat) -> Column:
    if pa.types.is_map(array.type):
        offsets = array.offsets.to_numpy().astype(np.int64)
        counts = np.diff(offsets)
        run = slice(int(offsets[0]), int(offsets[-1]))
        keys, values = array.keys[run], array.items[run]
    else:
        counts = pc.list_value_length(array).to_numpy().astype(np.int64)
        keys, values = array.flatten().flatten()
    key_cells, bad_keys = encode_typed(kind.of[0], keys, fmt)
    cells, bad = encode_typed(kind.of[1], values, fmt)
    bad_keys = null_faults(key_cells, kind.of[0], "a key") | bad_keys
    bad = null_faults(cells, kind.of[1], "a map") | bad

    def path_of(entry: int, place: int) -> str:
        is_text = pa.types.is_string(keys.type)
        return f"[{shown(str(keys[entry]))}]" if is_text else f"[{place}][1]"

    faults = lift(bad, counts, path_of) | lift(bad_keys, counts, lambda _, place: " key")
    return Column(collection_cells([key_cells, cells], counts), faults)


def _encode_struct(kind: CqlType, array: Any, fmt: TextFormat) -> Column:
    faults: Faults = {}
    columns = []
    for place, of in enumerate(kind.of):
        path = f"[{place}]"
        if kind.name == "udt":
            path = f".{kind.fields[place]}"
            place = array.type.get_field_index(kind.fields[place])
        field = array.field(place) if place >= 0 else pa.nulls(len(array))
        cells, bad = encode_typed(of, field, fmt)
        columns.append(cells)
        for row, fault in bad.items():
            faults.setdefault(row, fault.within(path))
    return Column(fields_cells(columns), faults)


_NESTED: dict[str, Encoder] = {
    "list": _encode_list,
    "set": _encode_list,
    "map": _encode_map,
    "tuple": _encode_struct,
    "udt": _encode_struct,
    "vector": _encode_vector,
}
