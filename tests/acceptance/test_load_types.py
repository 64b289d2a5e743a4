"""Every scalar type, at its limits and in each accepted form, compared as stored bytes."""

from __future__ import annotations

import struct
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from uuid import UUID

import pytest
from cassandra.cluster import Session

from tests.acceptance.command import Ringhaul
from tests.acceptance.oracle import assert_report, assert_table, create_table, read_stored

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def int8(value: int) -> bytes:
    return struct.pack(">b", value)


def int16(value: int) -> bytes:
    return struct.pack(">h", value)


def int32(value: int) -> bytes:
    return struct.pack(">i", value)


def int64(value: int) -> bytes:
    return struct.pack(">q", value)


def varint(value: int) -> bytes:
    """Return the shortest two's complement, found by trial."""
    size_bytes = 1
    while True:
        try:
            return value.to_bytes(size_bytes, "big", signed=True)
        except OverflowError:
            size_bytes += 1


def decimal(unscaled: int, scale: int) -> bytes:
    return int32(scale) + varint(unscaled)


def moment(*fields: int, ms: int = 0) -> bytes:
    """Return a UTC date and time as milliseconds, in integer arithmetic."""
    since = datetime(*fields, tzinfo=UTC) - EPOCH  # type: ignore[misc]
    return int64(since // timedelta(milliseconds=1) + ms)


def day(days_since_1970: int) -> bytes:
    return struct.pack(">I", days_since_1970 + 2**31)


def clock(hours: int, minutes: int, seconds: int, nanoseconds: int = 0) -> bytes:
    return int64(((hours * 60 + minutes) * 60 + seconds) * 10**9 + nanoseconds)


#: CQL type -> (text in the file, bytes as stored). Quotes are part of the text.
CASES: dict[str, list[tuple[str, bytes]]] = {
    "ascii": [
        ("plain", b"plain"),
        ('""', b""),
        ('" a, ""b"" "', b' a, "b" '),
        ("~" * 300, b"~" * 300),
        ("\x01\x7f", b"\x01\x7f"),
    ],
    "text": [
        ("žluťoučký kůň", "žluťoučký kůň".encode()),
        ('""', b""),
        ("'", b"'"),
        ("NULL", b"NULL"),
        (" two  blanks ", b" two  blanks "),
        ("👩‍👩‍👧\U0010ffff", "👩‍👩‍👧\U0010ffff".encode()),
        ('"line one\nline two\r\n"', b"line one\nline two\r\n"),
        ("a" * 70_000, b"a" * 70_000),
    ],
    "varchar": [("ß", b"\xc3\x9f"), ('""', b""), ("\ufeffno mark", "\ufeffno mark".encode())],
    "tinyint": [("-128", int8(-128)), ("127", int8(127)), (" +7 ", int8(7)), ("-0", int8(0))],
    "smallint": [("-32768", int16(-32768)), ("32767", int16(32767)), ("007", int16(7))],
    "int": [
        ("-2147483648", int32(-(2**31))),
        ("2147483647", int32(2**31 - 1)),
        ('"12"', int32(12)),
        ("0", int32(0)),
    ],
    "bigint": [
        ("-9223372036854775808", int64(-(2**63))),
        ("9223372036854775807", int64(2**63 - 1)),
        ("-1", int64(-1)),
    ],
    "varint": [
        ("127", b"\x7f"),
        ("128", b"\x00\x80"),
        ("-128", b"\x80"),
        ("-129", b"\xff\x7f"),
        (str(2**63), b"\x00\x80" + bytes(7)),
        (str(-(10**200)), varint(-(10**200))),
        ("9" * 5000, varint(10**5000 - 1)),
    ],
    "float": [
        ("3.4028234663852886e38", bytes.fromhex("7f7fffff")),
        ("1e-45", bytes.fromhex("00000001")),
        ("-0.0", bytes.fromhex("80000000")),
        ("16777217", bytes.fromhex("4b800000")),
        ("NaN", bytes.fromhex("7fc00000")),
        ("-Infinity", bytes.fromhex("ff800000")),
    ],
    "double": [
        ("1.7976931348623157e308", bytes.fromhex("7fefffffffffffff")),
        ("5e-324", bytes.fromhex("0000000000000001")),
        ("0.1", bytes.fromhex("3fb999999999999a")),
        ("-0", bytes.fromhex("8000000000000000")),
        ("inf", bytes.fromhex("7ff0000000000000")),
        ("nan", bytes.fromhex("7ff8000000000000")),
        ("9007199254740993", bytes.fromhex("4340000000000000")),
    ],
    "decimal": [
        ("1.50", decimal(150, 2)),
        ("1.5", decimal(15, 1)),
        ("-0.000", decimal(0, 3)),
        ("1e400", decimal(1, -400)),
        ("-12.34E-5", decimal(-1234, 7)),
        (f"{'7' * 60}.{'1' * 60}", decimal(int("7" * 60 + "1" * 60), 60)),
        ("1e-2147483647", decimal(1, 2**31 - 1)),
    ],
    "boolean": [("true", b"\1"), ("F", b"\0"), ("1", b"\1"), ("No", b"\0"), (" yes ", b"\1")],
    "timestamp": [
        ("2024-02-29T23:59:59.999Z", moment(2024, 2, 29, 23, 59, 59, ms=999)),
        ("2024-02-29 23:59:59.999999", moment(2024, 2, 29, 23, 59, 59, ms=999)),
        ("1969-12-31T23:59:59.9999Z", int64(-1)),
        ("2024-05-31", moment(2024, 5, 31)),
        ("2024-05-31 10:20", moment(2024, 5, 31, 10, 20)),
        ("2024-05-31T10:20:30+05:45", moment(2024, 5, 31, 4, 35, 30)),
        ("2024-05-31 10:20:30.1-0800", moment(2024, 5, 31, 18, 20, 30, ms=100)),
        ("0001-01-01T00:00:00Z", moment(1, 1, 1)),
        ("9999-12-31T23:59:59.999Z", moment(9999, 12, 31, 23, 59, 59, ms=999)),
        ("+10000-01-01T00:00:00Z", int64(253_402_300_800_000)),
        ("1717150000123", int64(1_717_150_000_123)),
        ("9223372036854775807", int64(2**63 - 1)),
        ("-9223372036854775808", int64(-(2**63))),
        ("+292278994-08-17T07:12:55.807Z", int64(2**63 - 1)),
        ("-292275055-05-16T16:47:04.192Z", int64(-(2**63))),
    ],
    "date": [
        ("1970-01-01", day(0)),
        ("2024-02-29", day(19_782)),
        ("0001-01-01", day(-719_162)),
        ("-5877641-06-23", bytes(4)),
        ("+5881580-07-11", b"\xff" * 4),
    ],
    "time": [
        ("00:00", clock(0, 0, 0)),
        ("23:59:59.999999999", clock(23, 59, 59, 999_999_999)),
        ("08:30:05", clock(8, 30, 5)),
        ("08:30:05.5", clock(8, 30, 5, 500_000_000)),
    ],
    "uuid": [
        ("00000000-0000-0000-0000-000000000000", bytes(16)),
        ("FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF", b"\xff" * 16),
        (
            "123e4567-e89b-42d3-a456-426614174000",
            UUID("123e4567-e89b-42d3-a456-426614174000").bytes,
        ),
    ],
    "timeuuid": [
        (
            "a8f167f0-ebe7-11e9-9c24-f0def1f4e0a2",
            UUID("a8f167f0-ebe7-11e9-9c24-f0def1f4e0a2").bytes,
        ),
        (
            "00000000-0000-1000-8080-808080808080",
            UUID("00000000-0000-1000-8080-808080808080").bytes,
        ),
    ],
    "inet": [
        ("0.0.0.0", bytes(4)),
        ("255.255.255.255", b"\xff" * 4),
        ("::1", ip_address("::1").packed),
        ("2001:DB8::ff00:42:8329", ip_address("2001:db8::ff00:42:8329").packed),
        (
            "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            b"\xff" * 16,
        ),
    ],
    "blob": [
        ("0x", b""),
        ('""', b""),
        ("0x00ff", b"\x00\xff"),
        ("0xDEADbeef", bytes.fromhex("deadbeef")),
        ("0x" + "ab" * 5000, b"\xab" * 5000),
    ],
}
TYPES = {f"c_{cql}": cql for cql in CASES}
#: One row for each case of the type with the most cases; the last row has only nulls.
ROWS = max(map(len, CASES.values())) + 1


def expected_row(row: int) -> dict[str, bytes | None]:
    """Map column -> stored bytes of the case with that number, None if the type has no more."""
    return {
        name: CASES[cql][row][1] if row < len(CASES[cql]) else None for name, cql in TYPES.items()
    }


def write_cases(path: Path) -> None:
    lines = ["id," + ",".join(TYPES)]
    for row in range(ROWS):
        texts = (CASES[cql][row][0] if row < len(CASES[cql]) else "" for cql in TYPES.values())
        lines.append(f"{row}," + ",".join(texts))
    path.write_bytes("\n".join(lines).encode())


@pytest.mark.parametrize("strategy", ["pipeline", "token-batch"])
@pytest.mark.parametrize("nulls", ["unset", "tombstone"])
def test_every_scalar_type_is_stored_exactly(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str, strategy: str, nulls: str
) -> None:
    # Given a table with a column of every scalar type, and a file with the limits of each type
    columns = ", ".join(f"{name} {cql}" for name, cql in TYPES.items())
    table = create_table(cassandra_session, keyspace, f"id int PRIMARY KEY, {columns}")
    write_cases(fleet.cwd / "types.csv")

    # When it is loaded
    done = fleet.run("load", "types.csv", "-t", table, "--json", "--strategy", strategy,
                     "--nulls", nulls)  # fmt: skip

    # Then every value of every row is stored as expected, byte by byte
    assert_report(done, rows=ROWS)
    found = read_stored(cassandra_session, table, "id", TYPES)
    for row in range(ROWS):
        assert found[row] == expected_row(row), f"row {row}"
    assert len(found) == ROWS


#: Types whose every value Cassandra accepts in a key.
KEY_TYPES = [cql for cql in CASES if cql not in ("text", "varint")]


@pytest.mark.parametrize("place", ["partition", "clustering"])
def test_every_scalar_type_can_be_a_key(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str, place: str
) -> None:
    # Given a table whose partition or clustering key has a column of every type
    names = [f"c_{cql}" for cql in KEY_TYPES]
    columns = ", ".join(f"c_{cql} {cql}" for cql in KEY_TYPES)
    key = f"({', '.join(names)}), id" if place == "partition" else f"id, {', '.join(names)}"
    table = create_table(
        cassandra_session, keyspace, f"id int, {columns}, v text, PRIMARY KEY ({key})"
    )
    # and a file that cycles through the cases of every type
    lines = [f"id,{','.join(names)},v"]
    expected = {}
    for row in range(ROWS):
        cases = {f"c_{cql}": CASES[cql][row % len(CASES[cql])] for cql in KEY_TYPES}
        lines.append(f"{row},{','.join(text for text, _ in cases.values())},value {row}")
        expected[row] = {name: stored for name, (_, stored) in cases.items()} | {
            "v": f"value {row}".encode()
        }
    (fleet.cwd / "keys.csv").write_text("\n".join(lines), newline="")

    # When it is loaded
    done = fleet.run("load", "keys.csv", "-t", table, "--json")

    # Then each row is found by its key, with all of its values
    assert_report(done, rows=ROWS)
    types = {f"c_{cql}": cql for cql in KEY_TYPES} | {"v": "text"}
    assert read_stored(cassandra_session, table, "id", types) == expected


def test_one_bad_value_rejects_one_record(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str
) -> None:
    # Given good records, and between them one bad value for each type
    bad = {
        "ascii": "é",
        "tinyint": "128",
        "smallint": "-32769",
        "int": "12.50",
        "bigint": "9223372036854775808",
        "varint": "0x10",
        "float": "1e39",
        "double": "1_000",
        "decimal": "1e2147483649",
        "boolean": "maybe",
        "timestamp": "2023-02-29",
        "date": "2024-13-01",
        "time": "24:00",
        "uuid": "123e4567-e89b-42d3-a456-42661417400",
        "timeuuid": "123e4567-e89b-42d3-a456-426614174000",
        "inet": "256.0.0.1",
        "blob": "beef",
    }
    names = [f"c_{cql}" for cql in bad]
    columns = ", ".join(f"c_{cql} {cql}" for cql in bad)
    table = create_table(cassandra_session, keyspace, f"id int PRIMARY KEY, {columns}")
    lines = [f"id,{','.join(names)}"]
    good: dict[int, dict[str, bytes | None]] = {}
    for number, cql in enumerate(bad):
        values = [text if name == cql else "" for name, text in bad.items()]
        lines.append(f"{number},{','.join(values)}")
        lines.append(f"{number + 100},{','.join(CASES[name][0][0] for name in bad)}")
        good[number + 100] = {f"c_{name}": CASES[name][0][1] for name in bad}
    (fleet.cwd / "bad.csv").write_text("\n".join(lines) + "\n")

    # When it is loaded
    done = fleet.run("load", "bad.csv", "-t", table, "--json")

    # Then all good records are in the table, and every bad one is reported with its column
    summary = assert_report(done, rows=len(bad), rejected=len(bad))
    assert summary["reject_reasons"] == {f"cast c_{cql}": 1 for cql in bad}
    types = {f"c_{cql}": cql for cql in bad}
    assert read_stored(cassandra_session, table, "id", types) == good


EXISTING = [(1, "kept", 10), (2, "kept", 20), (3, "kept", 30)]


@pytest.mark.parametrize(
    ("nulls", "third"),
    [("unset", (3, "kept", 33)), ("tombstone", (3, None, 33))],
)
def test_a_missing_value_keeps_or_deletes_the_old_one(
    fleet: Ringhaul,
    cassandra_session: Session,
    keyspace: str,
    nulls: str,
    third: tuple[int, str | None, int],
) -> None:
    # Given existing rows
    table = create_table(cassandra_session, keyspace, "id int PRIMARY KEY, a text, b int")
    for row in EXISTING:
        cassandra_session.execute(f"INSERT INTO {table} (id, a, b) VALUES (%s, %s, %s)", row)
    # and a file with an empty string for one, a new value for another, nothing for the last
    (fleet.cwd / "new.csv").write_text('id,a,b\n1,"",11\n2,new,\n3,,33\n4,,\n')

    # When it is loaded
    done = fleet.run("load", "new.csv", "-t", table, "--json", "--nulls", nulls)

    # Then the empty string replaces the value, and the missing one follows --nulls
    assert_report(done, rows=4)
    second = (2, "new", 20 if nulls == "unset" else None)
    assert_table(
        cassandra_session, table, "id, a, b", [(1, "", 11), second, third, (4, None, None)]
    )


def test_formats_of_numbers_booleans_blobs_and_times_can_be_chosen(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str
) -> None:
    # Given a file such as a European spreadsheet writes
    types = {"b": "boolean", "d": "decimal", "f": "double", "i": "int", "x": "blob",
             "t": "timestamp", "e": "timestamp"}  # fmt: skip
    columns = ", ".join(f"{name} {cql}" for name, cql in types.items())
    table = create_table(cassandra_session, keyspace, f"id int PRIMARY KEY, {columns}")
    (fleet.cwd / "eu.csv").write_text(
        "id;b;d;f;i;x;t;e\n"
        "1;ja;1.234,50;-0,5;1.000;3q2+7w==;31.05.2024 12:00:00;1717150000\n"
        "2;NEIN;0,1;2;-7;;31.12.2024 12:00:00;-1\n"
    )

    # When it is loaded with the matching options
    done = fleet.run(
        *("load", "eu.csv", "-t", table, "--json", "-d", ";"),
        *("--true-words", "ja,j", "--false-words", "nein,n"),
        *("--decimal-sep", ",", "--thousands-sep", ".", "--blob", "base64"),
        *("--timestamp-format", "%d.%m.%Y %H:%M:%S", "--timezone", "Europe/Paris"),
        *("--epoch-unit", "s"),
    )

    # Then summer and winter time, separators and words are read correctly
    assert_report(done, rows=2)
    assert read_stored(cassandra_session, table, "id", types) == {
        1: {
            "b": b"\1",
            "d": decimal(123_450, 2),
            "f": struct.pack(">d", -0.5),
            "i": int32(1000),
            "x": bytes.fromhex("deadbeef"),
            "t": moment(2024, 5, 31, 10),
            "e": int64(1_717_150_000_000),
        },
        2: {
            "b": b"\0",
            "d": decimal(1, 1),
            "f": struct.pack(">d", 2.0),
            "i": int32(-7),
            "x": None,
            "t": moment(2024, 12, 31, 11),
            "e": int64(-1000),
        },
    }


@pytest.mark.parametrize(
    ("unit", "text"), [("ms", "1717150000123"), ("us", "{}999"), ("ns", "{}999999")]
)
def test_finer_epochs_are_floored_to_milliseconds(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str, unit: str, text: str
) -> None:
    # Given whole numbers in a unit, after 1970 and before it
    table = create_table(cassandra_session, keyspace, "id int PRIMARY KEY, t timestamp")
    late = text.format("1717150000123")
    (fleet.cwd / "epoch.csv").write_text(f"id,t\n1,{late}\n2,-1\n")

    # When they are loaded as that unit
    done = fleet.run("load", "epoch.csv", "-t", table, "--json", "--epoch-unit", unit)

    # Then the millisecond that contains them is stored
    assert_report(done, rows=2)
    assert read_stored(cassandra_session, table, "id", {"t": "timestamp"}) == {
        1: {"t": int64(1_717_150_000_123)},
        2: {"t": int64(-1)},
    }
