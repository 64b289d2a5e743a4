"""Clustering values as bytes that compare, unsigned and byte by byte, as Cassandra compares them.

Types that Cassandra compares by their bytes stay as they are. An empty value is the smallest of
its type. Classes: the `compareCustom` of the types in `org.apache.cassandra.db.marshal`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringhaul.cql.types import CqlType

Array = NDArray[Any]

#: Types that Cassandra compares byte by byte; values of `boolean` are one byte, 0 or 1.
_BY_BYTES = {"ascii", "text", "varchar", "blob", "inet", "date", "time", "boolean"}


def _signed(values: Array) -> Array:
    """Return big-endian two's complement with the sign bit inverted."""
    out = values.copy()
    out[:, 0] ^= 0x80
    return out


def _float(values: Array) -> Array:
    """Return IEEE 754 numbers in the order of `Double.compare`: -0.0 below 0.0, NaN the largest."""
    out = values.copy()
    width = values.shape[1]
    numbers = np.ascontiguousarray(values).view(f">f{width}").reshape(-1)
    negative = (values[:, 0] & 0x80) != 0
    out[negative] ^= 0xFF
    out[~negative, 0] ^= 0x80
    out[np.isnan(numbers)] = 0xFF
    return out


def _time_first(values: Array) -> Array:
    """Return version 1 UUIDs with the high bits of their time first: version and time_hi, time_mid,
    time_low."""
    return values[:, [6, 7, 4, 5, 0, 1, 2, 3, *range(8, 16)]]


def _uuid(values: Array) -> Array:
    """Return UUIDs by version, then version 1 by time and other versions by their bytes."""
    version = values[:, 6] >> 4
    out = np.empty((len(values), 17), np.uint8)
    out[:, 0] = version
    out[:, 1:] = values
    by_time = version == 1
    out[by_time, 1:] = _time_first(values[by_time])
    return out


def _timeuuid(values: Array) -> Array:
    """Return timeuuids by time without the version, then by the other bytes as signed numbers."""
    out = _time_first(values)
    out[:, 0] &= 0x0F
    out[:, 8:] ^= 0x80
    return out


def _varints(data: Array, offsets: Array) -> tuple[Array, Array]:
    """Return varints with their sign and length before them: two's complement of one sign and
    length compares by bytes. They must be as short as they can be, as all encoders make them."""
    sizes = np.diff(offsets).astype(np.int64)
    given = np.flatnonzero(sizes)
    ends = offsets + _VARINT_HEAD * np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes > 0)])
    data = data[offsets[0] : offsets[-1]]
    out = np.empty(len(data) + _VARINT_HEAD * len(given), np.uint8)
    heads = (ends[:-1])[given] - offsets[0]
    out[
        np.arange(len(data)) + np.repeat(np.arange(1, len(given) + 1), sizes[given]) * _VARINT_HEAD
    ] = data
    negative = out[heads + _VARINT_HEAD] >= 0x80
    rank = np.where(negative, 2**31 - sizes[given], 2**31 + sizes[given]).astype(">u4")
    out[heads[:, None] + np.arange(_VARINT_HEAD)] = rank.view(np.uint8).reshape(-1, _VARINT_HEAD)
    return out, (ends - offsets[0]).astype(np.int32)


def _decimals(data: Array, offsets: Array) -> tuple[Array, Array]:
    """Return decimals by sign, decimal exponent and digits without zeros at their end, so that 1.0
    and 1.00 are equal, as for Cassandra."""
    text = data.tobytes()
    found = [_decimal(text[start:end]) for start, end in pairwise(offsets.tolist())]
    ends = np.cumsum([0, *map(len, found)]).astype(np.int32)
    return np.frombuffer(b"".join(found), np.uint8).copy(), ends


def _decimal(value: bytes) -> bytes:
    if not value:
        return b""
    scale = int.from_bytes(value[:4], "big", signed=True)
    unscaled = int.from_bytes(value[4:], "big", signed=True)
    if not unscaled:
        return b"\x80"
    digits = str(abs(unscaled))
    exponent = len(digits) - scale + 2**63
    found = b"\xc0" + exponent.to_bytes(8, "big") + digits.rstrip("0").encode()
    if unscaled > 0:
        return found
    # More digits make a negative number smaller.
    return bytes(255 - byte for byte in found) + b"\xff"


#: Bytes before a varint.
_VARINT_HEAD = 4
#: Type -> function from the data and offsets of values to bytes that compare.
_OF_ANY_WIDTH = {"varint": _varints, "decimal": _decimals}
#: Bytes of the largest decimal that is sorted here, some 4,000 digits: more would take long.
DECIMAL_BYTES_MAX = 1600

#: Type -> width of a value, and values (uint8 of shape (rows, width)) -> bytes that compare.
_CHANGED: dict[str, tuple[int, Callable[[Array], Array]]] = {
    "tinyint": (1, _signed),
    "smallint": (2, _signed),
    "int": (4, _signed),
    "bigint": (8, _signed),
    "timestamp": (8, _signed),
    "float": (4, _float),
    "double": (8, _float),
    "uuid": (16, _uuid),
    "timeuuid": (16, _timeuuid),
}


def has_order(kind: CqlType) -> bool:
    """Return whether a node puts something in order in values of a frozen type."""
    return kind.name in ("set", "map") or (kind.name == "list" and has_order(kind.of[0]))


def structure(kind: CqlType) -> str:
    """Return a type as text for `nested.py`, with user-defined types as tuples of their fields."""
    if not kind.of:
        return kind.name
    words = [structure(of) for of in kind.of] + ([str(kind.size)] if kind.size else [])
    return f"{'tuple' if kind.name == 'udt' else kind.name}<{', '.join(words)}>"


def is_comparable(kind: CqlType) -> bool:
    """Return whether values of a type can be sorted here."""
    if kind.of:
        return all(map(is_comparable, kind.of))
    name = kind.name
    return name in _BY_BYTES or name in _CHANGED or name in _OF_ANY_WIDTH


def comparable(name: str, data: Array, offsets: Array) -> tuple[Array, Array]:
    """Return values as bytes that compare, laid out like the argument.

    `data`: uint8, value i from `offsets[i]` to `offsets[i + 1]` (int32). Raises `KeyError` for a
    type that cannot be sorted. `name`: a scalar type; other types: `nested.py`.
    """
    if name in _BY_BYTES:
        return data, offsets
    if name in _OF_ANY_WIDTH:
        return _OF_ANY_WIDTH[name](data, offsets)
    width, change = _CHANGED[name]
    sizes = np.diff(offsets)
    given = sizes > 0
    changed = change(data[offsets[0] : offsets[-1]].reshape(-1, width))
    ends = np.cumsum(np.where(given, changed.shape[1], 0), dtype=np.int32)
    return changed.reshape(-1), np.concatenate([np.zeros(1, np.int32), ends])
