"""Convert Python values, as functions of rows return them, to cells and to Arrow columns.

A `str` is parsed like a field of a CSV file; any other value is converted by its type, whatever the
options for the format of fields.
"""

from __future__ import annotations

import datetime
import ipaddress
import json
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from ringhaul.cql.cells import Cells
from ringhaul.cql.column import merge_variable
from ringhaul.cql.join import Column, Fault, Faults
from ringhaul.cql.long_numbers import digits_of
from ringhaul.cql.nested import encode_column, encode_json
from ringhaul.cql.text_format import TextFormat
from ringhaul.cql.types import TEXTS, CqlType


def encode_values(
    kind: CqlType, values: Sequence[Any], fmt: TextFormat, *, null_length: int
) -> Column:
    """Encode a column of Python values; None becomes a cell of length `null_length`."""
    is_text = np.fromiter(
        (value is None or isinstance(value, str) for value in values), np.bool_, len(values)
    )
    if is_text.all():
        return _encode_texts(kind, values, fmt, null_length)
    if not is_text.any():
        return _encode_others(kind, values, fmt, null_length)
    rows: list[np.ndarray[Any, np.dtype[np.intp]]] = []
    columns: list[Column] = []
    for mask, encode in ((is_text, _encode_texts), (~is_text, _encode_others)):
        chosen = np.flatnonzero(mask)
        rows.append(chosen)
        columns.append(encode(kind, [values[int(row)] for row in chosen], fmt, null_length))
    lengths = np.empty(len(values), ">i4")
    faults: Faults = {}
    for chosen, column in zip(rows, columns, strict=True):
        lengths[chosen] = column.cells.lengths
        faults |= {int(chosen[row]): fault for row, fault in column.faults.items()}
    merged = merge_variable(
        [(chosen, column.cells.values) for chosen, column in zip(rows, columns, strict=True)]
    )
    return Column(Cells(None, lengths, merged), faults)


def arrow_column(values: Sequence[Any]) -> pa.Array:
    """Return an Arrow array of the values, of their common type; without such a type, of text."""
    there = [value for value in values if value is not None]
    if not there:
        return pa.nulls(len(values), pa.string())
    # Arrow would choose a type for mixed values that changes them: 1 and 2.5 are not 1.0 and 2.5.
    forms = {frozenset(value) if isinstance(value, dict) else type(value) for value in there}
    if len(forms) == 1:
        with suppress(pa.ArrowException, OverflowError, TypeError, ValueError):
            return pa.array(values)
    texts = [None if value is None else _text_of(value) for value in values]
    return pa.array(texts, pa.string())


def _encode_texts(
    kind: CqlType, values: Sequence[Any], fmt: TextFormat, null_length: int
) -> Column:
    try:
        array = pa.array(values, pa.string()).cast(pa.binary())
    except UnicodeEncodeError:
        # Half of a surrogate pair: its bytes are not UTF-8, and the value is refused for that.
        raw = [None if v is None else v.encode("utf-8", "surrogatepass") for v in values]
        array = pa.array(raw, pa.binary())
    return encode_column(kind, array, fmt, null_length=null_length)


def _encode_others(
    kind: CqlType, values: Sequence[Any], fmt: TextFormat, null_length: int
) -> Column:
    faults: Faults = {}
    plain: list[Any] = []
    for row, value in enumerate(values):
        try:
            plain.append(json_value(value, kind))
        except (TypeError, ValueError) as error:
            plain.append(None)
            faults[row] = Fault("", kind.name, str(error))
    cells, more = encode_json(
        kind, plain, _plain_format(fmt.timezone, fmt.clock_changes), null_length=null_length
    )
    return Column(cells, more | faults)


@lru_cache
def _plain_format(timezone: str, clock_changes: str) -> TextFormat:
    return TextFormat(timezone=timezone, clock_changes=clock_changes, epoch_unit="ms")


def json_value(value: Any, kind: CqlType | None) -> Any:
    """Return the value in the form that `parse_json` returns: numbers are texts.

    `kind`: the target type, which decides what bytes mean. Raises `TypeError` or `ValueError` for
    anything that is not a value of a column.
    """
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, int):
        return digits_of(value)  # `str` refuses more than some thousand digits
    if isinstance(value, float | Decimal | np.number):
        return str(value)
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        microseconds = value // datetime.timedelta(microseconds=1)
        return f"{'-' if microseconds < 0 else ''}{abs(microseconds)}us"
    if isinstance(value, uuid.UUID | ipaddress.IPv4Address | ipaddress.IPv6Address):
        return str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return _bytes_text(bytes(value), kind)
    if isinstance(value, Mapping):
        return _mapping(value, kind)
    if isinstance(value, list | tuple | set | frozenset | np.ndarray):
        return [json_value(item, _inner(kind, place)) for place, item in enumerate(value)]
    raise TypeError(f"a {type(value).__name__} is not a value of a column")


def _mapping(value: Mapping[Any, Any], kind: CqlType | None) -> Any:
    if kind is not None and kind.name == "map":
        keys, items = kind.of
        return [[json_value(k, keys), json_value(v, items)] for k, v in value.items()]
    of: Mapping[str, CqlType] = {}
    if kind is not None and kind.name == "udt":
        of = dict(zip(kind.fields, kind.of, strict=True))
    return {str(name): json_value(item, of.get(str(name))) for name, item in value.items()}


def _inner(kind: CqlType | None, place: int) -> CqlType | None:
    """Return the type of an element. The elements of a map given as a list are pairs."""
    if kind is None or not kind.of:
        return None
    if kind.name == "map":
        return CqlType("tuple", kind.of)
    return kind.of[place] if kind.name == "tuple" and place < len(kind.of) else kind.of[0]


def _bytes_text(raw: bytes, kind: CqlType | None) -> str:
    name = kind.name if kind is not None else "blob"
    if name in ("uuid", "timeuuid"):
        return str(uuid.UUID(bytes=raw))
    if name == "inet":
        return str(ipaddress.ip_address(raw))
    if name in TEXTS:
        return raw.decode()
    return "0x" + raw.hex()


def _text_of(value: Any) -> str:
    """Return a value as text, for a column whose values have several types."""
    plain = json_value(value, None)
    if isinstance(plain, str):
        return plain
    return json.dumps(plain, ensure_ascii=False)
