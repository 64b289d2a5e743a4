"""Values of every type that Cassandra accepts: the extremes of each scalar, and strategies.

A server accepts them all, unlike those of `pages`, which are made for a reader only.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Collection
from decimal import Decimal
from typing import Any, Final

from cassandra.marshal import uvint_pack
from cassandra.util import Duration, Time
from hypothesis import strategies as st

from ringhaul.cql.join import fixed_in_vector
from ringhaul.cql.types import CqlType
from tests.property.cql.pages import PROTOCOL, Pairs, driver_type

DAY_NS = 86_400 * 10**9
INT32, INT64 = 2**31 - 1, 2**63 - 1
NAN, INFINITY = float("nan"), float("inf")


class _Empty:
    def __repr__(self) -> str:
        return "EMPTY"


#: A value without bytes, of a type other than text: see `ringhaul.cql.empties`.
EMPTY: Final = _Empty()
TEXTS = [
    *("", " ", "\t", "null", "NULL", "\\N", "NaN", "{}", "[1,2]", "a,b", '"', '""', "'"),
    *("\\", "\\n", "\n", "\r", "two\r\nlines\n", "\ufeffmark", "\x00", "a\x00b", " blanks "),
    *("\x1f\x7f\x85\u2028\u2029", "日本 👩‍👩‍👧\U0010ffff", "e\u0301", "# no comment", "x" * 20_000),
    *("-- no comment", "#", "--", "// no", "0x", "\u202e\u2066turned\u2069\u202c", "\x1b[31m\x1a"),
    *("\x00\r\n\"'\\", '\\"', '"\r', "\r\r\n\n", "\\."),
]  # fmt: skip

#: Scalar type -> hand-picked values, as the driver binds them.
EXTREMES: dict[str, list[Any]] = {
    "ascii": [text for text in TEXTS if text.isascii()],
    "text": TEXTS,
    "varchar": TEXTS[::-1],
    "tinyint": [-128, 127, 0, -1],
    "smallint": [-(2**15), 2**15 - 1, 0, -1],
    "int": [-INT32 - 1, INT32, 0, -1],
    "bigint": [-INT64 - 1, INT64, 0, 2**53 + 1],
    "varint": [0, -1, 127, 128, -128, -129, INT64, -INT64 - 1, 2**64, -(10**200), 10**4999],
    "decimal": [
        *map(Decimal, ("0", "0.0", "0.000", "1.50", "1.5", "-1.5", "1E+3", "1E-7", "-1E-6")),
        *(Decimal((0, (0,), 5)), Decimal((1, (7,) * 60, -30)), Decimal((0, (3,) * 19, -19))),
        *(Decimal((0, (1,), INT32)), Decimal((1, (9, 9), -INT32)), Decimal(INT64)),
    ],
    "float": [
        *(0.0, -0.0, NAN, INFINITY, -INFINITY, 2.0**-149, -(2.0**-126), 3.4028234663852886e38),
        *(0.1, 1 / 3, 16777216.0, 1e10, 1e-5),
    ],
    "double": [
        *(0.0, -0.0, NAN, INFINITY, -INFINITY, 5e-324, 2.2250738585072014e-308),
        *(1.7976931348623157e308, 0.1, 1 / 3, 2.0**53 + 2, 1e22, 1e23, 1e-5, 123456789012345680.0),
    ],
    "boolean": [True, False],
    #: As milliseconds: the driver's own datetime ends with year 9999.
    "timestamp": [
        *(0, -1, 1, 999, -INT64 - 1, INT64, -62_167_219_200_000, -62_167_219_200_001),
        *(253_402_300_799_999, 253_402_300_800_000, 951_868_799_999, 1_717_150_000_123),
    ],
    #: As days from -2^31 on.
    "date": [0, 2**32 - 1, 2**31, 2**31 - 1, 2**31 - 719_528, 2**31 - 719_529, 2**31 + 2_932_897],
    "time": [Time(value) for value in (0, DAY_NS - 1, 1, 10**9, 43_200 * 10**9 + 5)],
    "duration": [
        Duration(*parts)
        for parts in (
            *((0, 0, 0), (INT32, INT32, INT64), (-INT32 - 1, -INT32 - 1, -INT64 - 1)),
            *((1, 0, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1), (14, 0, 86_400 * 10**9), (-12, 0, -1)),
        )
    ],
    "uuid": [uuid.UUID(int=value) for value in (0, 2**128 - 1, 0x123E4567E89B42D3A456426614174000)],
    "timeuuid": [
        uuid.UUID(int=value & ~(0xF << 76) | 1 << 76)
        for value in (0, 2**128 - 1, 0xA8F167F0EBE711E99C24F0DEF1F4E0A2)
    ],
    "inet": [
        *("0.0.0.0", "255.255.255.255", "::", "::1", "::ffff:1.2.3.4", "::1.2.3.4", "1::"),
        *("2001:db8:0:0:1:0:0:1", "1:0:2:0:3:0:4:0", "fe80::1", "ffff:" * 7 + "ffff"),
    ],
    "blob": [b"", b"\0", b"\xff" * 3, bytes(range(256)), b"\xab" * 20_000],
}  # fmt: skip


def short(value: Any) -> bool:
    """Whether the value is none of the long extremes."""
    if isinstance(value, str | bytes):
        return len(value) < 1000
    return not isinstance(value, int) or value.bit_length() < 1000


def _integers(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


_DURATIONS = st.builds(
    lambda sign, *parts: Duration(*(sign * part for part in parts)),
    st.sampled_from([1, -1]),
    st.integers(0, INT32),
    st.integers(0, INT32),
    st.integers(0, INT64),
)
_DECIMALS = st.builds(
    lambda sign, digits, exponent: Decimal((sign, tuple(map(int, str(digits))), exponent)),
    st.integers(0, 1),
    _integers(64).map(abs) | st.integers(0, 10**40),
    st.integers(-25, 25) | st.integers(-INT32, INT32),
)
_UUIDS = st.binary(min_size=16, max_size=16).map(lambda data: uuid.UUID(bytes=data))

#: Scalar type -> any value of it.
SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "ascii": st.text(st.characters(max_codepoint=127), max_size=8),
    "text": st.text(max_size=8),
    "varchar": st.text(max_size=8),
    "tinyint": _integers(8),
    "smallint": _integers(16),
    "int": _integers(32),
    "bigint": _integers(64),
    "varint": _integers(64) | _integers(200),
    "decimal": _DECIMALS,
    "float": st.floats(width=32).map(lambda value: NAN if value != value else value),
    "double": st.floats().map(lambda value: NAN if value != value else value),
    "boolean": st.booleans(),
    "timestamp": _integers(64) | _integers(43),
    "date": st.integers(0, 2**32 - 1) | _integers(21).map(lambda days: days + 2**31),
    "time": st.integers(0, DAY_NS - 1).map(Time),
    "duration": _DURATIONS,
    "uuid": _UUIDS,
    "timeuuid": _UUIDS.map(lambda value: uuid.UUID(int=value.int & ~(0xF << 76) | 1 << 76)),
    "inet": st.ip_addresses().map(str),
    "blob": st.binary(max_size=8),
}  # fmt: skip
for _name, _values in SCALARS.items():
    SCALARS[_name] = _values | st.sampled_from([v for v in EXTREMES[_name] if short(v)])

#: Names of fields that are difficult in files and statements.
UDT_FIELDS = ["x", "Y z", 'u"v', "w,", "é", "token", "0", "\\"]


def _containers(inner: st.SearchStrategy[CqlType], keyable: bool) -> st.SearchStrategy[CqlType]:
    """Types that contain `inner`. CQL allows no duration in a set or in the key of a map."""
    ordered = inner if keyable else inner.filter(lambda kind: not _has_duration(kind))
    names = st.lists(st.sampled_from(UDT_FIELDS), min_size=1, max_size=3, unique=True)
    return st.one_of(
        inner.map(lambda of: CqlType("list", (of,))),
        ordered.map(lambda of: CqlType("set", (of,))),
        st.tuples(ordered, inner).map(lambda of: CqlType("map", of)),
        st.lists(inner, min_size=1, max_size=3).map(lambda of: CqlType("tuple", tuple(of))),
        names.flatmap(
            lambda names: st.tuples(*[inner] * len(names)).map(
                lambda of: CqlType("udt", of, tuple(names))
            )
        ),
        st.tuples(inner, st.integers(1, 3)).map(lambda t: CqlType("vector", (t[0],), size=t[1])),
    )


def _has_duration(kind: CqlType) -> bool:
    return kind.name == "duration" or any(map(_has_duration, kind.of))


def types(keyable: bool = False, depth_max: int = 2) -> st.SearchStrategy[CqlType]:
    """Scalars and containers of them up to a depth; `keyable`: only types that a key may have."""
    found = st.sampled_from([name for name in SCALARS if not (keyable and name == "duration")])
    by_depth = [found.map(CqlType)]
    for _ in range(depth_max):
        by_depth.append(_containers(st.sampled_from(by_depth[:]).flatmap(_itself), keyable))
    # A scalar as often as a container: most keys are scalars.
    return st.sampled_from([by_depth[0]] * depth_max + by_depth[1:]).flatmap(_itself)


def _itself(found: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return found


def values(
    kind: CqlType, empties: Collection[str] = (), *, bound: bool = False
) -> st.SearchStrategy[Any]:
    """Values as the driver binds them. Nulls are only where Cassandra accepts them.

    `empties`: the types with some `EMPTY` values; `bound`: except direct elements of a list,
    which the server refuses.
    """

    def inner(place: int) -> st.SearchStrategy[Any]:
        of = kind.of[place]
        alone = kind.name == "vector" or (bound and kind.name == "list")
        return values(of, () if alone and of.scalar else empties)

    match kind.name:
        case "list":
            return st.lists(inner(0), max_size=3)
        case "set":
            return st.lists(inner(0), max_size=3, unique_by=repr)
        case "map":
            pairs = st.tuples(inner(0), inner(1))
            return st.lists(pairs, max_size=3, unique_by=lambda pair: repr(pair[0])).map(Pairs)
        case "vector":
            return st.lists(inner(0), min_size=kind.size, max_size=kind.size)
        case "tuple" | "udt":
            return st.tuples(*(st.none() | inner(place) for place in range(len(kind.of))))
        case _:
            found = SCALARS[kind.name]
            return found | st.just(EMPTY) if kind.name in empties else found


def cell_of(kind: CqlType, value: Any) -> bytes | None:
    """The cell of a value on the wire (native protocol, section 6): the driver has no `EMPTY`."""
    if value is None:
        return None
    if value is EMPTY:
        return b""
    match kind.name:
        case "list" | "set":
            return _counted([(kind.of[0], item) for item in value], len(value))
        case "map":
            parts = [part for pair in value.items() for part in zip(kind.of, pair, strict=True)]
            return _counted(parts, len(value))
        case "tuple" | "udt":
            return b"".join(_sized(cell_of(*part)) for part in zip(kind.of, value, strict=True))
        case "vector":
            items = [cell_of(kind.of[0], item) or b"" for item in value]
            fixed = fixed_in_vector(kind.of[0])
            return b"".join(item if fixed else uvint_pack(len(item)) + item for item in items)
        case _:
            found: bytes = driver_type(kind).to_binary(value, PROTOCOL)
            return found


def _counted(parts: list[tuple[CqlType, Any]], count: int) -> bytes:
    return struct.pack(">i", count) + b"".join(_sized(cell_of(*part)) for part in parts)


def _sized(cell: bytes | None) -> bytes:
    return struct.pack(">i", -1) if cell is None else struct.pack(">i", len(cell)) + cell
