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

from ringhaul.cql.cells import NULL_LENGTH
from ringhaul.cql.column import TextColumn
from ringhaul.cql.moments import day_text, moment_text, whole_days
from ringhaul.cql.nested import parse_cell
from ringhaul.cql.numbers import plain_numbers
from ringhaul.cql.text import encode_text
from ringhaul.cql.text_format import TextFormat
from ringhaul.cql.types import CqlType

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_NUMBERS = (*_INTEGERS, "varint", "decimal", "float", "double")


def record_json(
    batch: pa.RecordBatch,
    row: int,
    kinds: Sequence[CqlType | None],
    fmt: TextFormat,
) -> bytes:
    """One row as a JSON object by the names of its fields, which `load --format jsonl` reads.

    `kinds`: for each column the CQL type it is meant for, which decides how bytes are spelt; None:
    nobody knows. `fmt`: how numbers are spelt that stand in the file as text; JSON has its own way.
    """
    record = {
        name: _json(column[row], kind, fmt)
        for name, column, kind in zip(batch.schema.names, batch.columns, kinds, strict=True)
    }
    present = {name: value for name, value in record.items() if value is not None}
    return json.dumps(present, ensure_ascii=False).encode("utf-8", "backslashreplace")


def _json(value: Any, kind: CqlType | None, fmt: TextFormat) -> Any:
    """A JSON form of an Arrow scalar: exact, whatever it holds; not all of it need be loadable."""
    arrow = value.type
    if not value.is_valid:
        return None
    if isinstance(arrow, pa.BaseExtensionType):
        return _json(value.value, kind, fmt)
    if pa.types.is_dictionary(arrow):
        return _json(value.dictionary[value.index.as_py()], kind, fmt)
    if pa.types.is_integer(arrow) or pa.types.is_boolean(arrow):
        return value.as_py()
    if pa.types.is_floating(arrow):
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
    if kind is not None and kind.name in _NUMBERS and _is_text(arrow) and not fmt.plain_numbers:
        return _number_json(text, kind.name, fmt)
    return text if kind is None or kind.scalar else _cell_json(text, kind)


def _float_json(number: float, kind: CqlType | None) -> Any:
    if kind is not None and kind.name in _INTEGERS and number.is_integer():
        return int(number)  # 5.0 and 1e+17 are no spellings of whole numbers
    return number if math.isfinite(number) else str(number)


def _number_json(text: str, cql_type: str, fmt: TextFormat) -> str | list[str]:
    """A number that stands in the file as text, for JSON, which knows no other separators.

    What is misspelt stays as it is. If JSON would take it for a number all the same, it stands in a
    list, and is refused again: 1.5 must not slip in where 1,5 was wanted.
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


def _struct_json(value: Any, kind: CqlType | None, fmt: TextFormat) -> Any:
    names = value.type.names
    if kind is not None and kind.name == "duration":
        parts = [value[name].as_py() or 0 for name in ("months", "days", "nanoseconds")]
        sign = "-" if min(parts) < 0 else ""
        months, days, nanoseconds = (abs(part) for part in parts)
        return f"{sign}{months}mo{days}d{nanoseconds}ns"
    if kind is not None and kind.name == "udt":
        of = dict(zip(kind.fields, kind.of, strict=True))
        return {name: _json(value[name], of.get(name), fmt) for name in names}
    return [_json(value[i], _inner(kind, i), fmt) for i in range(len(names))]


def _inner(kind: CqlType | None, place: int) -> CqlType | None:
    return kind.of[place] if kind is not None and place < len(kind.of) else None


def _pair(kind: CqlType) -> CqlType:
    """The entry of a map that is a list of structs."""
    return CqlType("tuple", kind.of)


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


def _bytes_text(raw: bytes, name: str) -> str:
    if name == "inet":
        return str(ipaddress.ip_address(raw)) if len(raw) in (4, 16) else "0x" + raw.hex()
    return str(uuid.UUID(bytes=raw)) if len(raw) == 16 else "0x" + raw.hex()
