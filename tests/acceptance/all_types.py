"""Rows with a column of every CQL type, nested types included, in the form of each file format."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

import pyarrow as pa
from cassandra.cluster import Session
from cassandra.util import Date, Duration, Time

from ringhaul.cql.types import Fields, parse_type
from tests.acceptance.oracle import create_table

USER_TYPES: dict[str, Fields] = {
    "point": (("x", "int"), ("label", "text")),
    "path": (("points", "frozen<list<frozen<point>>>"), ("tags", "frozen<set<text>>")),
}
TYPES = {
    "id": "int",
    "c_ascii": "ascii",
    "c_text": "text",
    "c_tinyint": "tinyint",
    "c_smallint": "smallint",
    "c_bigint": "bigint",
    "c_varint": "varint",
    "c_decimal": "decimal",
    "c_float": "float",
    "c_double": "double",
    "c_boolean": "boolean",
    "c_timestamp": "timestamp",
    "c_date": "date",
    "c_time": "time",
    "c_duration": "duration",
    "c_uuid": "uuid",
    "c_timeuuid": "timeuuid",
    "c_inet": "inet",
    "c_blob": "blob",
    "n_list": "list<int>",
    "n_set": "set<text>",
    "n_map": "map<text, bigint>",
    "n_odd_map": "map<frozen<tuple<int, text>>, frozen<list<decimal>>>",
    "n_tuple": "tuple<int, text, frozen<list<double>>>",
    "n_point": "point",
    "n_path": "frozen<path>",
    "n_vector": "vector<float, 3>",
    "n_texts": "vector<text, 2>",
    "n_deep": "map<uuid, frozen<map<int, frozen<set<timestamp>>>>>",
    "n_durations": "list<duration>",
}
KINDS = {name: parse_type(cql, USER_TYPES) for name, cql in TYPES.items()}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TEXTS = ["", "plain", 'with "quotes", commas', "zwei\nZeilen", "日本 \N{GRINNING FACE}", "\t\\"]


class Value(NamedTuple):
    """One value as each format and the driver represent it."""

    json: Any  #: as in JSON; digits of decimals as text
    arrow: Any  #: as `pa.array` takes it
    driver: Any  #: as the driver reads it


def same(value: Any) -> Value:
    return Value(value, value, value)


def rows(count: int) -> Iterator[dict[str, Value | None]]:
    """Yield distinct rows in which every column is null now and then."""
    for number in range(count):
        row: dict[str, Value | None] = {}
        for place, (name, value) in enumerate(_values(number).items()):
            missing = name != "id" and (number * 7 + place) % 11 == 0
            row[name] = None if missing else value
        yield row


def _values(number: int) -> dict[str, Value]:
    sign = -1 if number % 2 else 1
    text = TEXTS[number % len(TEXTS)]
    big = sign * (2**63 - 1 - number)
    huge = sign * (10**30 + number)
    exact = f"{sign * number}.{number:04}0"
    real = sign * (number + 0.1) * 10.0 ** (number % 40 - 20)
    moment = EPOCH + timedelta(milliseconds=sign * number * 86_400_123)
    moment_text = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    day = date(2024, 2, 29) + timedelta(days=sign * number * 97)
    nanos = number * 1_000_000_007 % (86_400 * 10**9)
    uid = UUID(int=number * 0x1234567890ABCDEF1234567890 % 2**128)
    time_uid = UUID(int=uid.int & ~(0xF << 76) & ~(0x3 << 62) | 1 << 76 | 1 << 63)
    address = f"10.0.{number % 256}.7" if number % 3 else f"2001:db8::{number + 1:x}"
    blob = bytes(range(number % 50))
    months, days, ns = sign * number, sign * 3 * number, sign * 5 * number * 10**9
    duration_text = f"{'-' if sign < 0 else ''}{number}mo{3 * number}d{5 * number}s"
    duration = {"months": months, "days": days, "nanoseconds": ns}
    point_json = {"x": number, "label": text}
    floats = [float(number), -0.5, 1.5 * 2**40]
    deep_moment = EPOCH + timedelta(seconds=number)
    deep_naive = deep_moment.replace(tzinfo=None)
    return {
        "id": same(number),
        "c_ascii": same(f"a{number}"),
        "c_text": same(text),
        "c_tinyint": same(sign * (number % 128)),
        "c_smallint": same(sign * (32_767 - number)),
        "c_bigint": same(big),
        "c_varint": Value(str(huge), str(huge), huge),
        "c_decimal": Value(exact, exact, Decimal(exact)),
        "c_float": same(sign * number * 0.25),
        "c_double": same(real),
        "c_boolean": same(number % 3 == 0),
        "c_timestamp": Value(moment_text, moment, moment.replace(tzinfo=None)),
        "c_date": Value(day.isoformat(), day, Date(day)),
        "c_time": Value(str(Time(nanos)), nanos, Time(nanos)),
        "c_duration": Value(duration_text, duration, Duration(months, days, ns)),
        "c_uuid": Value(str(uid), uid.bytes, uid),
        "c_timeuuid": Value(str(time_uid), time_uid.bytes, time_uid),
        "c_inet": same(address),
        "c_blob": Value("0x" + blob.hex(), blob, blob),
        "n_list": same([number, -number, 7]),
        "n_set": Value(["a", f"b{number}"], ["a", f"b{number}"], {"a", f"b{number}"}),
        "n_map": Value({"k": big, text: 1}, [("k", big), (text, 1)], {"k": big, text: 1}),
        "n_odd_map": Value(
            [[[number, text], [exact]]],
            [({"0": number, "1": text}, [exact])],
            {(number, text): [Decimal(exact)]},
        ),
        "n_tuple": Value(
            [number, None, [real]], {"0": number, "1": None, "2": [real]}, (number, None, [real])
        ),
        "n_point": Value(point_json, point_json, (number, text)),
        "n_path": Value(
            {"points": [point_json, {"x": 1}], "tags": [f"t{number}"]},
            {"points": [point_json, {"x": 1}], "tags": [f"t{number}"]},
            ([(number, text), (1, None)], {f"t{number}"}),
        ),
        "n_vector": same(floats),
        "n_texts": same([text, "x" * (number * 3)]),
        "n_deep": Value(
            {str(uid): {str(number): [deep_moment.isoformat().replace("+00:00", "Z")]}},
            [(uid.bytes, [(number, [deep_moment])])],
            {uid: {number: {deep_naive}}},
        ),
        "n_durations": Value([duration_text], [duration], [Duration(months, days, ns)]),
    }


def make_table(session: Session, keyspace: str, name: str = "t") -> str:
    """Create a table with a column of every type and return its full name."""
    for user_type, fields in USER_TYPES.items():
        columns = ", ".join(f"{field} {cql}" for field, cql in fields)
        session.execute(f"CREATE TYPE IF NOT EXISTS {keyspace}.{user_type} ({columns})")
    columns = ", ".join(f"{column} {cql}" for column, cql in TYPES.items())
    return create_table(session, keyspace, f"{columns}, PRIMARY KEY (id)", name)


def json_line(row: dict[str, Value | None]) -> str:
    return json.dumps(
        {name: value.json for name, value in row.items() if value is not None}, ensure_ascii=False
    )


def arrow_table(found: list[dict[str, Value | None]]) -> pa.Table:
    """Return the rows as an Arrow table with the types of `ringhaul.cql.types`."""
    return pa.table(
        {
            name: pa.array(
                [None if (value := row[name]) is None else value.arrow for row in found],
                kind.arrow(),
            )
            for name, kind in KINDS.items()
        }
    )


def assert_rows(session: Session, table: str, expected: list[dict[str, Value | None]]) -> None:
    """Assert that the table holds exactly these rows."""
    stored = {row.id: row for row in session.execute(f"SELECT * FROM {table}")}
    assert len(stored) == len(expected)
    for row in expected:
        assert row["id"] is not None
        found = stored[row["id"].driver]
        for name, value in row.items():
            wanted = None if value is None else value.driver
            assert plain(getattr(found, name)) == plain(wanted), f"{name} of row {found.id}"


def plain(value: Any) -> Any:
    """Convert the driver's containers to Python's, so that they compare equal."""
    if isinstance(value, (str, bytes, type(None))):
        return value
    if hasattr(value, "_asdict") or isinstance(value, tuple):
        return tuple(plain(item) for item in value)
    if hasattr(value, "items"):
        return sorted((repr(plain(key)), plain(item)) for key, item in value.items())
    if type(value).__name__ in ("SortedSet", "set", "frozenset"):
        return sorted(map(repr, map(plain, value)))
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, Decimal):
        return value.as_tuple()
    return value
