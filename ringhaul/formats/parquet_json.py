"""One row of a Parquet file as a JSON object: what is kept of a record that cannot be loaded.

Exact whatever the row holds, and in the forms that `load --format jsonl` reads, so that a record
can be mended and loaded again; the value at fault is there as it is.
"""

from __future__ import annotations

import ipaddress
import json
import math
import uuid
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ringhaul.cql.moments import day_text, moment_text, whole_days
from ringhaul.cql.nested import parse_cell
from ringhaul.cql.types import CqlType

_INTEGERS = ("tinyint", "smallint", "int", "bigint")


def record_json(batch: pa.RecordBatch, row: int, kinds: Sequence[CqlType | None]) -> bytes:
    """One row as a JSON object by the names of its fields, which `load --format jsonl` reads.

    `kinds`: for each column the CQL type it is meant for, which decides how bytes are spelt; None:
    nobody knows.
    """
    record = {
        name: _json(column[row], kind)
        for name, column, kind in zip(batch.schema.names, batch.columns, kinds, strict=True)
    }
    present = {name: value for name, value in record.items() if value is not None}
    return json.dumps(present, ensure_ascii=False).encode("utf-8", "backslashreplace")


def _json(value: Any, kind: CqlType | None) -> Any:
    """A JSON form of an Arrow scalar: exact, whatever it holds; not all of it need be loadable."""
    arrow = value.type
    if not value.is_valid:
        return None
    if isinstance(arrow, pa.BaseExtensionType):
        return _json(value.value, kind)
    if pa.types.is_dictionary(arrow):
        return _json(value.dictionary[value.index.as_py()], kind)
    if pa.types.is_integer(arrow) or pa.types.is_boolean(arrow):
        return value.as_py()
    if pa.types.is_floating(arrow):
        return _float_json(float(value.as_py()), kind)
    if pa.types.is_map(arrow):
        keys, items = _inner(kind, 0), _inner(kind, 1)
        entries = value.values  # one struct per entry
        return [[_json(e[0], keys), _json(e[1], items)] for e in entries or []]
    if hasattr(value, "values") and not pa.types.is_struct(arrow):
        of = _pair(kind) if kind is not None and kind.name == "map" else _inner(kind, 0)
        return [_json(item, of) for item in value.values]
    if pa.types.is_struct(arrow):
        return _struct_json(value, kind)
    if kind is not None and kind.name in ("uuid", "timeuuid", "inet") and _is_bytes(arrow):
        return _bytes_text(bytes(value.as_py()), kind.name)
    if _is_bytes(arrow):
        raw = bytes(value.as_py())
        is_text = kind is not None and kind.name in ("ascii", "text", "varchar")
        return raw.decode("utf-8", "backslashreplace") if is_text else "0x" + raw.hex()
    if pa.types.is_temporal(arrow) and not pa.types.is_interval(arrow):
        return _temporal_text(value, kind)
    try:
        text = str(pc.cast(value, pa.string()).as_py())
    except (pa.ArrowException, UnicodeDecodeError):
        return str(value)
    return text if kind is None or kind.scalar else _cell_json(text, kind)


def _float_json(number: float, kind: CqlType | None) -> Any:
    if kind is not None and kind.name in _INTEGERS and number.is_integer():
        return int(number)  # 5.0 and 1e+17 are no spellings of whole numbers
    return number if math.isfinite(number) else str(number)


def _temporal_text(value: Any, kind: CqlType | None) -> str:
    arrow = value.type
    number = value.cast(pa.int32() if arrow.bit_width == 32 else pa.int64()).as_py()
    if kind is not None and kind.name == "date":
        days = whole_days(arrow, number)
        if days is not None:
            return day_text(days)
    return moment_text(arrow, number)


def _cell_json(text: str, kind: CqlType) -> Any:
    """A nested value that stands in the file as text: what that says, or the text."""
    try:
        return parse_cell(kind, text.encode(), _DECODER)
    except ValueError:
        return text


def _kept_int(digits: str) -> int | str:
    """A number where JSON would write it with the same digits, else a string of them."""
    plain = len(digits) <= 18 and str(int(digits)) == digits
    return int(digits) if plain else digits


def _kept_float(digits: str) -> float | str:
    return float(digits) if repr(float(digits)) == digits else digits


_DECODER = json.JSONDecoder(parse_float=_kept_float, parse_int=_kept_int, parse_constant=str)


def _struct_json(value: Any, kind: CqlType | None) -> Any:
    names = value.type.names
    if kind is not None and kind.name == "duration":
        parts = [value[name].as_py() or 0 for name in ("months", "days", "nanoseconds")]
        sign = "-" if min(parts) < 0 else ""
        months, days, nanoseconds = (abs(part) for part in parts)
        return f"{sign}{months}mo{days}d{nanoseconds}ns"
    if kind is not None and kind.name == "udt":
        of = dict(zip(kind.fields, kind.of, strict=True))
        return {name: _json(value[name], of.get(name)) for name in names}
    return [_json(value[i], _inner(kind, i)) for i in range(len(names))]


def _inner(kind: CqlType | None, place: int) -> CqlType | None:
    return kind.of[place] if kind is not None and place < len(kind.of) else None


def _pair(kind: CqlType) -> CqlType:
    """The entry of a map that is a list of structs."""
    return CqlType("tuple", kind.of)


def _is_bytes(arrow: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(arrow)
        or pa.types.is_large_binary(arrow)
        or pa.types.is_binary_view(arrow)
        or pa.types.is_fixed_size_binary(arrow)
    )


def _bytes_text(raw: bytes, name: str) -> str:
    if name == "inet":
        return str(ipaddress.ip_address(raw)) if len(raw) in (4, 16) else "0x" + raw.hex()
    return str(uuid.UUID(bytes=raw)) if len(raw) == 16 else "0x" + raw.hex()
