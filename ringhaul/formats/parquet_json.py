"""One row of a Parquet file as a JSON object, to keep a record that cannot be loaded.

Exact whatever the row holds, and in the forms that a load of JSON Lines reads, so that a record
can be repaired and loaded again; the value at fault is kept unchanged. A value that JSON would
accept although its column refuses it is put in a list, which is refused as well.
"""

from __future__ import annotations

import base64
import ipaddress
import json
import math
import uuid
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ringhaul.cql.cells import NULL_LENGTH
from ringhaul.cql.column import TextColumn
from ringhaul.cql.moments import day_text, moment_text, whole_days
from ringhaul.cql.nested import parse_cell
from ringhaul.cql.numbers import plain_numbers
from ringhaul.cql.spelt_json import unique_names
from ringhaul.cql.text import encode_text
from ringhaul.cql.text_format import TextFormat
from ringhaul.cql.typed import encode_typed
from ringhaul.cql.typed.column import udt_names
from ringhaul.cql.typed.numbers import EXACT_MAX
from ringhaul.cql.typed.temporal import INTERVAL_BYTES, interval_parts
from ringhaul.cql.typed.texts import texts_of
from ringhaul.cql.types import TEXTS, CqlType
from ringhaul.cql.whole_numbers import whole_text

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_NUMBERS = (*_INTEGERS, "varint", "decimal", "float", "double")
_FRACTIONS = TextFormat(accept=("fractions",))
_MS_UTC = pa.timestamp("ms", "UTC")


def record_json(
    batch: pa.RecordBatch,
    row: int,
    kinds: Sequence[CqlType | None],
    fmt: TextFormat,
) -> bytes:
    """Return one row as a JSON object by field name, which a load of JSON Lines reads.

    `kinds`: the CQL type that each column is meant for, which decides how bytes are written; None:
    not known. `fmt`: how blobs are written, and how the file writes numbers that it has as text;
    these are converted to JSON's own form.
    """
    record = {
        name: _json(column[row], kind, fmt)
        for name, column, kind in zip(batch.schema.names, batch.columns, kinds, strict=True)
    }
    present = {name: value for name, value in record.items() if value is not None}
    return json.dumps(present, ensure_ascii=False).encode("utf-8", "backslashreplace")


def _json(value: Any, kind: CqlType | None, fmt: TextFormat) -> Any:
    """Return a JSON form of an Arrow scalar: exact whatever it holds, but not always loadable."""
    arrow = value.type
    if not value.is_valid:
        return None
    if isinstance(arrow, pa.BaseExtensionType):
        return _json(value.value, kind, fmt)
    if pa.types.is_dictionary(arrow):
        return _json(value.dictionary[value.index.as_py()], kind, fmt)
    if pa.types.is_boolean(arrow):
        return value.as_py()
    if pa.types.is_integer(arrow):
        return _integer_json(value, kind, fmt)
    if pa.types.is_floating(arrow):
        if kind is not None and kind.name in (*TEXTS, "decimal", "varint"):
            text = str(texts_of(pa.array([value.as_py()], arrow))[0])
            return _whole_json(text) if kind.name == "varint" else text
        return _float_json(float(value.as_py()), kind)
    if pa.types.is_map(arrow):
        keys, items = _inner(kind, 0), _inner(kind, 1)
        entries = value.values  # one struct per entry
        return [[_json(e[0], keys, fmt), _json(e[1], items, fmt)] for e in entries or []]
    if hasattr(value, "values") and not pa.types.is_struct(arrow):
        of = _pair(kind) if kind is not None and kind.name == "map" else _inner(kind, 0)
        return [_json(item, of, fmt) for item in value.values]
    if pa.types.is_struct(arrow):
        return _struct_json(value, kind, fmt)
    if kind is not None and kind.name == "duration" and _is_interval(arrow):
        parts = interval_parts(pa.array([value.as_py()], arrow))
        return _duration_json([int(part[0]) for part in parts])
    if _is_bytes(arrow):
        return _bytes_json(bytes(value.as_py()), "" if kind is None else kind.name, fmt)
    if pa.types.is_temporal(arrow) and not pa.types.is_interval(arrow):
        return _temporal_text(value, kind)
    try:
        text = str(pc.cast(value, pa.string()).as_py())
    except UnicodeDecodeError:
        return _refused_text(value.as_buffer().to_pybytes(), kind)
    except pa.ArrowException:
        return str(value)
    if pa.types.is_decimal(arrow) and kind is not None and kind.name in (*_INTEGERS, "varint"):
        return _whole_json(text)
    if kind is not None and kind.name in _NUMBERS and _is_text(arrow) and not fmt.plain_numbers:
        return _number_json(text, kind.name, fmt)
    return text if kind is None or kind.scalar else _cell_json(text, kind)


def _integer_json(value: Any, kind: CqlType | None, fmt: TextFormat) -> Any:
    number, name = value.as_py(), "" if kind is None else kind.name
    if name in EXACT_MAX and abs(number) > EXACT_MAX[name]:
        return [number]  # JSON rounds such numbers
    if name == "timestamp" and fmt.timestamp_formats:
        # A number is not text, and must not be tried on these patterns.
        cells, faults = encode_typed(CqlType(name), pa.array([number], value.type), fmt)
        assert cells.fixed_values is not None
        return [number] if faults else moment_text(_MS_UTC, int(cells.fixed_values[0]))
    return number


def _float_json(number: float, kind: CqlType | None) -> Any:
    if kind is not None and kind.name in _INTEGERS and number.is_integer():
        return int(number)  # 5.0 and 1e+17 are not accepted as integers
    return number if math.isfinite(number) else str(number)


def _whole_json(text: str) -> str:
    """Return a decimal without its fraction of zero: JSON's whole numbers have none."""
    try:
        return whole_text(text, _FRACTIONS)
    except ValueError:
        return text


def _number_json(text: str, cql_type: str, fmt: TextFormat) -> str | list[str]:
    """Convert a number that is text in the file to JSON, which has fixed separators.

    Invalid text stays unchanged. If JSON would still take it for a number, it is put in a list,
    which is refused again: 1.5 must not slip in where 1,5 was wanted.
    """
    column, misspelt = plain_numbers(_one(text), cql_type, fmt)
    if not misspelt:
        return bytes(column.array()[0].as_py()).decode()
    _, bad = encode_text(cql_type, _one(text).array(), TextFormat(), null_length=NULL_LENGTH)
    return text if bad else [text]


def _one(text: str) -> TextColumn:
    return TextColumn.of(pa.array([text.encode()], pa.binary())).trimmed()


def _temporal_text(value: Any, kind: CqlType | None) -> str:
    arrow = value.type
    number = value.cast(pa.int32() if arrow.bit_width == 32 else pa.int64()).as_py()
    if kind is not None and kind.name == "date":
        days = whole_days(arrow, number)
        if days is not None:
            return day_text(days)
    return moment_text(arrow, number)


def _cell_json(text: str, kind: CqlType) -> Any:
    """Return a nested value that is text in the file, parsed, or the text if it is invalid."""
    try:
        return parse_cell(kind, text.encode(), _DECODER)
    except ValueError:
        return text


def _kept_int(digits: str) -> int | str:
    """Return a number if JSON would write it with the same digits, else a string of them."""
    plain = len(digits) <= 18 and str(int(digits)) == digits
    return int(digits) if plain else digits


def _kept_float(digits: str) -> float | str:
    return float(digits) if repr(float(digits)) == digits else digits


_DECODER = json.JSONDecoder(
    parse_float=_kept_float,
    parse_int=_kept_int,
    parse_constant=str,
    object_pairs_hook=unique_names,
)


def _struct_json(value: Any, kind: CqlType | None, fmt: TextFormat) -> Any:
    names = value.type.names
    if kind is not None and kind.name == "duration":
        return _duration_json([value[name].as_py() for name in ("months", "days", "nanoseconds")])
    if kind is not None and kind.name == "udt":
        of = dict(zip(kind.fields, kind.of, strict=True))
        meant = udt_names(kind, names) or {}
        return {name: _json(value[name], of.get(meant.get(name, name)), fmt) for name in names}
    if kind is not None and kind.name == "map":
        there = {name: _json(value[name], _inner(kind, 1), fmt) for name in names}
        return {name: item for name, item in there.items() if item is not None}
    return [_json(value[i], _inner(kind, i), fmt) for i in range(len(names))]


def _duration_json(parts: Sequence[int | None]) -> str | list[str]:
    known = [part or 0 for part in parts]
    if None in parts or min(known) < 0 < max(known):
        named = zip(parts, ("mo", "d", "ns"), strict=True)
        return ["".join(f"{part}{unit}" for part, unit in named if part is not None)]
    months, days, nanoseconds = map(abs, known)
    return f"{'-' if min(known) < 0 else ''}{months}mo{days}d{nanoseconds}ns"


def _inner(kind: CqlType | None, place: int) -> CqlType | None:
    return kind.of[place] if kind is not None and place < len(kind.of) else None


def _pair(kind: CqlType) -> CqlType:
    """Return the entry of a map that is a list of structs."""
    return CqlType("tuple", kind.of)


def _is_interval(arrow: pa.DataType) -> bool:
    if pa.types.is_fixed_size_binary(arrow):
        return bool(arrow.byte_width == INTERVAL_BYTES)
    return bool(pa.types.is_interval(arrow))


def _is_text(arrow: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(arrow)
        or pa.types.is_large_string(arrow)
        or pa.types.is_string_view(arrow)
    )


def _is_bytes(arrow: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(arrow)
        or pa.types.is_large_binary(arrow)
        or pa.types.is_binary_view(arrow)
        or pa.types.is_fixed_size_binary(arrow)
    )


def _bytes_json(raw: bytes, name: str, fmt: TextFormat) -> str | list[str]:
    if name in TEXTS:
        try:
            return raw.decode()
        except UnicodeDecodeError:
            return [raw.decode("utf-8", "backslashreplace")]
    if name == "inet" and len(raw) in (4, 16):
        return str(ipaddress.ip_address(raw))
    if name in ("uuid", "timeuuid") and len(raw) == 16:
        return str(uuid.UUID(bytes=raw))
    if name == "blob" and fmt.blob == "base64":
        return base64.b64encode(raw).decode()
    return "0x" + raw.hex()


def _refused_text(raw: bytes, kind: CqlType | None) -> Any:
    """Return text that is not UTF-8 in a form that no column accepts."""
    text = raw.decode("utf-8", "backslashreplace")
    arrays = kind is not None and kind.name in ("list", "set", "tuple", "vector")
    return {"": text} if arrays else [text]
