"""One row of a Parquet file as a JSON object: what is kept of a record that cannot be loaded.

Exact whatever the row holds, and in the forms that `load --format jsonl` reads, so that a record
can be mended and loaded again; the value at fault is there as it is.
"""

from __future__ import annotations

import ipaddress
import json
import uuid
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ringhaul.cql.types import CqlType

_PER_DAY = {"s": 86_400, "ms": 86_400 * 10**3, "us": 86_400 * 10**6, "ns": 86_400 * 10**9}
_FRACTION_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}


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
        number = value.as_py()
        text = str(number)
        return number if text.lstrip("-") not in ("inf", "nan") else text
    if pa.types.is_map(arrow):
        keys, items = _inner(kind, 0), _inner(kind, 1)
        entries = value.values  # one struct per entry
        return [[_json(e[0], keys), _json(e[1], items)] for e in entries or []]
    if hasattr(value, "values") and not pa.types.is_struct(arrow):
        return [_json(item, _inner(kind, 0)) for item in value.values]
    if pa.types.is_struct(arrow):
        return _struct_json(value, kind)
    if kind is not None and kind.name in ("uuid", "timeuuid", "inet") and _is_bytes(arrow):
        return _bytes_text(bytes(value.as_py()), kind.name)
    if _is_bytes(arrow):
        raw = bytes(value.as_py())
        is_text = kind is not None and kind.name in ("ascii", "text", "varchar")
        return raw.decode("utf-8", "backslashreplace") if is_text else "0x" + raw.hex()
    if pa.types.is_date32(arrow):
        return _day_text(value.cast(pa.int32()).as_py())
    if pa.types.is_date64(arrow):
        return _moment_text(value.cast(pa.int64()).as_py(), "ms")
    if pa.types.is_timestamp(arrow):
        zone = "Z" if arrow.tz is not None else ""
        return _moment_text(value.cast(pa.int64()).as_py(), arrow.unit) + zone
    if pa.types.is_duration(arrow):
        unit = arrow.unit
        number = value.cast(pa.int64()).as_py()
        return f"{'-' if number < 0 else ''}{abs(number)}{unit}"
    try:
        return str(pc.cast(value, pa.string()).as_py())
    except (pa.ArrowException, UnicodeDecodeError):
        return str(value)


def _day_text(days: int) -> str:
    """An ISO date of any year, by days from 1970-01-01."""
    # Eras of 400 years from a 1 March: the leap day is the last of its year.
    era, day = divmod(days + 719_468, 146_097)
    year = (day - day // 1460 + day // 36_524 - day // 146_096) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153
    day += 1 - (153 * month + 2) // 5
    month += 3 if month < 10 else -9
    year += era * 400 + (month <= 2)
    sign = "" if 0 <= year <= 9999 else "+-"[year < 0]
    return f"{sign}{abs(year):04}-{month:02}-{day:02}"


def _moment_text(number: int, unit: str) -> str:
    """An ISO date and time, by seconds or less from 1970."""
    days, rest = divmod(number, _PER_DAY[unit])
    digits = _FRACTION_DIGITS[unit]
    seconds, fraction = divmod(rest, 10**digits)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{_day_text(days)}T{clock}" + (f".{fraction:0{digits}}" if digits else "")


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
