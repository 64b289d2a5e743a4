"""Clustering values as bytes sort like the values themselves."""

from __future__ import annotations

import math
import struct
import uuid
from collections.abc import Callable
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np

from ringhaul.sstables.comparable import comparable
from tests.cases import each


def signed(kind: str) -> tuple[Callable[[Any], bytes], Callable[[Any], Any]]:
    return (lambda value: struct.pack(f">{kind}", value)), (lambda value: value)


def by_float(value: float) -> tuple[Any, ...]:
    """Java's `Double.compare`: NaN above all, -0.0 below 0.0."""
    return (1,) if math.isnan(value) else (0, value, math.copysign(1, value))


def by_uuid(value: uuid.UUID) -> tuple[Any, ...]:
    version = value.bytes[6] >> 4
    first = (value.time_hi_version, value.time_mid, value.time_low)
    return (version, *(first if version == 1 else ()), value.bytes)


def by_time(value: uuid.UUID) -> tuple[Any, ...]:
    signed_rest = [byte - 256 if byte > 127 else byte for byte in value.bytes[8:]]
    return (value.time, *signed_rest)


def varint(value: int) -> bytes:
    return value.to_bytes(
        (value if value >= 0 else ~value).bit_length() // 8 + 1, "big", signed=True
    )


def decimal_bytes(value: Decimal) -> bytes:
    sign, digits, exponent = value.as_tuple()
    unscaled = int("".join(map(str, digits))) * (-1) ** sign
    return struct.pack(">i", -int(exponent)) + varint(unscaled)


DECIMALS = [
    Decimal(text) * sign
    for text in ("0", "0.000", "1", "1.0", "1.00", "1.01", "10", "1E+3", "1000", "999.9", "1E-400")
    for sign in (1, -1)
] + [Decimal("12.3456789012345678901234567890"), Decimal("-12.34"), Decimal("-12.3")]
UUIDS = [uuid.UUID(int=n * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 2**128) for n in range(1, 400)]
ONES = [uuid.UUID(int=u.int & ~(0xF << 76) | 1 << 76) for u in UUIDS]
SAME_TIME = [uuid.UUID(int=ONES[0].int & ~0xFFFFFFFF | n * 0x01FE7F80 % 2**32) for n in range(300)]
FLOATS = [0.0, -0.0, 1.5, -1.5, math.inf, -math.inf, 2.0**-149, -(2.0**-149), math.nan, 3e38]
VARINTS = [
    n * sign for n in (0, 1, 127, 128, 255, 256, 2**63, 2**64 + 5, 10**80) for sign in (1, -1)
]
INTS = {"b": 7, "h": 15, "i": 31, "q": 63}
CASES: list[tuple[str, list[Any], Callable[[Any], bytes], Callable[[Any], Any]]] = [
    *(
        (name, [-(2 ** INTS[kind]), 2 ** INTS[kind] - 1, 0, -1, 1, 100, -100], *signed(kind))
        for name, kind in (
            ("tinyint", "b"), ("smallint", "h"), ("int", "i"), ("bigint", "q"), ("timestamp", "q"),
        )
    ),
    ("float", FLOATS, lambda value: struct.pack(">f", value), by_float),
    ("double", FLOATS, lambda value: struct.pack(">d", value), by_float),
    ("uuid", UUIDS + ONES + SAME_TIME, lambda value: value.bytes, by_uuid),
    ("timeuuid", ONES + SAME_TIME, lambda value: value.bytes, by_time),
    ("text", ["", "a", "a\0", "ab", "ä", "\U0010ffff"], str.encode, str.encode),
    ("varint", VARINTS, varint, lambda value: value),
    ("decimal", DECIMALS, decimal_bytes, lambda value: value),
    # Unsigned: days from -2^31 on.
    ("date", [0, 2**31, 2**32 - 1], lambda value: struct.pack(">I", value), lambda value: value),
]  # fmt: skip


@each(("name", "values", "encode", "rank"), CASES, ids=[name for name, *_ in CASES])
def test_bytes_sort_like_values(
    name: str, values: list[Any], encode: Callable[[Any], bytes], rank: Callable[[Any], Any]
) -> None:
    # Given values, and an empty one, which is the smallest of each type
    raw = [encode(value) for value in values] + [b""]

    # When they become bytes that compare
    data, offsets = comparable(
        name,
        np.frombuffer(b"".join(raw), np.uint8).copy(),
        np.cumsum([0, *map(len, raw)]).astype(np.int32),
    )

    # Then they have the order of the values, and only equal values have equal bytes
    found = [bytes(data[a:b]) for a, b in pairwise(offsets)]
    assert found[-1] == b""
    ranks = {}
    for value, key in zip(values, found[:-1], strict=True):
        assert ranks.setdefault(key, rank(value)) == rank(value)
    assert [ranks[key] for key in sorted(ranks)] == sorted(ranks.values())
    assert len(set(ranks.values())) == len(ranks)
