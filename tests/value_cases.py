"""Tables of cases: how values of each type are spelt with a set of options, read and written.

One table for each set of options. Unit tests take each case alone; an acceptance test loads each
table as a file, compares every row, unloads it with the same options and compares every field.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

from cassandra.util import Date, Duration, Time

#: What the fields of `pair` in the tests are.
PAIR = (("f1", "int"), ("f2", "text"))
UUID = "123e4567-e89b-12d3-a456-426614174000"
TIMEUUID = "50554d6e-29bb-11e5-b345-feff819cdc9f"


@dataclass(frozen=True)
class Case:
    """A field of a file, the value that it is, and the field that an unload writes for it."""

    kind: str  #: CQL type
    field: str  #: as it is in the file, with its quotes
    value: Any  #: as the driver binds it; None: null
    #: None: `field`.
    written: str | None = None

    @property
    def unloaded(self) -> str:
        return self.field if self.written is None else self.written


@dataclass(frozen=True)
class Bad:
    """A field that a record is rejected for, and a part of the reason."""

    kind: str
    field: str
    reason: str


@dataclass(frozen=True)
class Table:
    """The cases of a set of options."""

    #: Options of load, verify and unload alike, such as `-d ;`.
    both: tuple[str, ...] = ()
    #: Options that only commands have that read.
    reading: tuple[str, ...] = ()
    #: Options that only an unload has.
    writing: tuple[str, ...] = ()
    cases: tuple[Case, ...] = ()
    bad: tuple[Bad, ...] = ()
    #: Python's name of the encoding of the files.
    encoding: str = "utf-8"
    delimiter: str = ","
    #: Lines in the file that are not a record.
    noise: tuple[str, ...] = ()


def ms(text: str) -> int:
    """Milliseconds since 1970 of an ISO 8601 moment with its zone."""
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def day(text: str) -> Date:
    return Date(date.fromisoformat(text))


def at(text: str) -> Time:
    return Time(time.fromisoformat(text))


NOON = ms("2024-02-29T12:34:56.789+00:00")

TABLES: dict[str, Table] = {
    "usual": Table(
        cases=(
            Case("ascii", "plain", "plain"),
            Case("text", '"a, ""b"""', 'a, "b"'),
            Case("text", '""', ""),
            Case("text", "", None),
            Case("text", " x ", " x ", '" x "'),
            Case("varchar", "é漢", "é漢"),
            Case("tinyint", "-128", -128),
            Case("smallint", "+7", 7, "7"),
            Case("int", "007", 7, "7"),
            Case("int", '""', None, ""),
            Case("int", "  ", None, ""),
            Case("bigint", "9223372036854775807", 2**63 - 1),
            Case("varint", "-" + "9" * 40, -(10**40 - 1)),
            Case("decimal", "1.50", Decimal("1.50")),
            Case("decimal", "1e5", Decimal("1E+5"), "1E+5"),
            Case("float", "1.5", 1.5),
            Case("double", "1e-3", 0.001, "0.001"),
            Case("double", "-inf", float("-inf"), "-Infinity"),
            Case("boolean", "Y", True, "true"),
            Case("boolean", "0", False, "false"),
            Case("timestamp", "2024-02-29 12:34:56.789", NOON, "2024-02-29T12:34:56.789Z"),
            Case("date", "2024-02-29", day("2024-02-29")),
            Case("time", "10:00", at("10:00"), "10:00:00.000000000"),
            Case("duration", "P1Y2M", Duration(14, 0, 0), "1y2mo"),
            Case("uuid", UUID.upper(), uuid.UUID(UUID), UUID),
            Case("timeuuid", TIMEUUID, uuid.UUID(TIMEUUID)),
            Case("inet", "2001:DB8::1", "2001:db8::1", "2001:db8::1"),
            Case("blob", "0xCAFE", b"\xca\xfe", "0xcafe"),
            Case("list<int>", '"[1, 2]"', [1, 2], '"[1,2]"'),
            Case("set<text>", "\"{'a'}\"", {"a"}, '"[""a""]"'),
            Case("map<text, int>", '"{""a"": 1}"', {"a": 1}, '"{""a"":1}"'),
            Case("frozen<tuple<int, text>>", "\"(1, 'x')\"", (1, "x"), '"[1,""x""]"'),
            Case("frozen<pair>", "\"{f1: 1, f2: 'x'}\"", (1, "x"), '"{""f1"":1,""f2"":""x""}"'),
            Case("vector<float, 3>", '"[1, 2.5, -0.5]"', [1.0, 2.5, -0.5], '"[1,2.5,-0.5]"'),
        ),
        bad=(
            Bad("ascii", "é", "is not ASCII"),
            Bad("tinyint", "128", "outside -128..127"),
            Bad("int", "7.0", "--accept fractions"),
            Bad("int", "7.5", "--rounding half-even"),
            Bad("int", "true", "--accept booleans reads it as 1"),
            Bad("bigint", "x", "is not a whole number"),
            Bad("bigint", "2000-01-01T00:00:00Z", "--accept moments reads it as 946684800000 (ms)"),
            Bad("varint", "1_000", "is not a whole number"),
            Bad("decimal", "no", "--accept booleans reads it as 0"),
            Bad("float", "1e400", "outside the range of a float"),
            Bad("double", "0x1p3", "--accept hex-floats"),
            Bad("boolean", "maybe", "words for true"),
            Bad("boolean", "1.0", "--accept fractions"),
            Bad("timestamp", "2024-02-29 12:34 CET", "--accept zones"),
            Bad("date", "20240229", "--date-format"),
            Bad("date", "2024-2-9", "--accept dates"),
            Bad("time", "9:00:00", "--accept dates"),
            Bad("duration", "PT1.5S", "--accept fractions"),
            Bad("uuid", UUID.replace("-", ""), "--accept uuids"),
            Bad("timeuuid", UUID.replace("-1", "-4", 1), "version"),
            Bad("inet", "localhost", "is not an IPv4 or IPv6 address"),
            Bad("blob", "CAFE", "0x"),
            Bad("list<int>", '"1,2"', "--accept collections"),
            Bad("frozen<pair>", '"[1]"', "a JSON array where a JSON object belongs"),
            Bad("vector<float, 3>", '"[1, 2]"', "3"),
        ),
    ),
    "european": Table(
        both=(
            *("-d", ";", "--decimal-sep", ",", "--thousands-sep", ".", "--locale", "fr"),
            *("--date-format", "EEEE d MMMM yyyy", "--time-format", "HHmmss"),
            *("--timestamp-format", "dd/MM/yyyy HH:mm:ss.SSS", "--timezone", "Europe/Paris"),
            *("--true-words", "oui", "--false-words", "non", "--blob", "base64", "--null", "NULL"),
            *("--encoding", "cp1252"),
        ),
        writing=("--line-end", "crlf"),
        encoding="cp1252",
        delimiter=";",
        cases=(
            Case("text", "NULL", None),
            Case("text", '"NULL"', "NULL"),
            Case("text", "", "", '""'),
            Case("text", "25 €", "25 €"),
            Case("int", "", None, "NULL"),
            Case("int", "-1.234", -1234),
            Case("tinyint", "7", 7),
            Case("smallint", "32.767", 32767),
            Case("bigint", "1.000.000", 10**6),
            Case("varint", "12345", 12345, "12.345"),
            Case("decimal", "1.234,50", Decimal("1234.50")),
            Case("float", "0,5", 0.5),
            Case("double", "-1.234,25", -1234.25),
            Case("boolean", "OUI", True, "oui"),
            Case("boolean", "non", False),
            Case("timestamp", "29/02/2024 13:34:56.789", NOON),
            Case("timestamp", "2024-02-29T12:34:56.789Z", NOON, "29/02/2024 13:34:56.789"),
            Case("date", "jeudi 29 février 2024", day("2024-02-29")),
            Case("time", "235959", at("23:59:59")),
            Case("blob", "yv4=", b"\xca\xfe"),
            Case("list<int>", "[1000]", [1000]),
        ),
        bad=(
            Bad("int", "12.50", "thousands separator"),
            Bad("decimal", "1,234.50", "decimal separator"),
            Bad("double", "1.5", "decimal separator"),
            Bad("boolean", "true", "words for true (oui)"),
            Bad("date", "jeudi 29 brumaire 2024", "is not a date"),
            Bad("time", "256060", "is past 23:59:59"),
            Bad("timestamp", "31/02/2024 00:00:00.000", "day 31, which the month lacks"),
            Bad("blob", "yv4", "base64"),
        ),
    ),
    "units": Table(
        both=(
            *("--date-format", "d", "--time-format", "ms", "--timestamp-format", "s"),
            *("--epoch", "2000-01-01", "--blob", "any", "-d", "||", "--quote", "'"),
        ),
        reading=(
            *("--accept", "booleans,moments,fractions,hex-floats", "--rounding", "half-even"),
            *("--overflow", "clamp"),
        ),
        delimiter="||",
        cases=(
            Case("date", "59", day("2000-02-29")),
            Case("time", "1500", at("00:00:01.5"), "1500"),
            Case("timestamp", "86400", ms("2000-01-02T00:00:00+00:00")),
            Case("timestamp", "0.5", ms("2000-01-01T00:00:00.5+00:00")),
            Case("tinyint", "true", 1, "1"),
            Case("tinyint", "300", 127, "127"),
            Case("smallint", "FALSE", 0, "0"),
            Case("int", "2000-01-02T00:00:00Z", 86400, "86400"),
            Case("varint", "1999-12-31 23:59:59Z", -1, "-1"),
            Case("int", "2.5", 2, "2"),
            Case("int", "1e3", 1000, "1000"),
            Case("bigint", "1e30", 2**63 - 1, str(2**63 - 1)),
            Case("varint", "yes", 1, "1"),
            Case("decimal", "no", Decimal(0), "0"),
            Case("float", "1e400", 3.4028234663852886e38, "3.4028235e+38"),
            Case("double", "0x1.8p3", 12.0, "12"),
            Case("double", "t", 1.0, "1"),
            Case("boolean", "1.0", True, "true"),
            Case("duration", "PT1.5S", Duration(0, 0, 1_500_000_000), "1s500ms"),
            Case("blob", "0xcafe", b"\xca\xfe"),
            Case("blob", "yv4=", b"\xca\xfe", "0xcafe"),
            # In base64 it would be 0xAA, which reads as another blob.
            Case("blob", "0xd31000", b"\xd3\x10\x00"),
            Case("text", "'it''s || x'", "it's || x"),
            Case("list<int>", "[true,2.5]", [1, 2], "[1,2]"),
        ),
        bad=(
            Bad("int", "maybe", "is not a whole number"),
            Bad("timestamp", "1e3", "is not"),
            Bad("bigint", "2000-01-01T00:00:00.5Z", "is not a whole number"),
            Bad("date", "x", "is not a date"),
            Bad("double", "0x1.8q3", "is not a number"),
        ),
    ),
    "words": Table(
        both=(
            *("--empty-word", "EMPTY", "--comment", "#", "--trim", "quoted", "--null", "-"),
            *("--encoding", "utf-16"),
        ),
        writing=("--quote-all",),
        encoding="utf-16",
        noise=("# no record", "#,,"),
        cases=(
            Case("text", "EMPTY", ""),
            Case("text", '"EMPTY"', "EMPTY"),
            Case("text", "-", None),
            Case("text", '"-"', "-"),
            Case("text", '"# no comment"', "# no comment"),
            Case("text", ' " x ,y " ', "x ,y", '"x ,y"'),
            Case("text", "  x  ", "x", '"x"'),
            Case("ascii", "EMPTY", ""),
            Case("varchar", "\t", "", "EMPTY"),
            Case("blob", '""', b"", '"0x"'),
            Case("int", "EMPTY", None, "-"),
            Case("int", " 7 ", 7, '"7"'),
            Case("double", " ", None, "-"),
            Case("boolean", '" yes "', True, '"true"'),
            Case("uuid", f" {UUID}", uuid.UUID(UUID), f'"{UUID}"'),
            Case("list<text>", '"["""", ""EMPTY""]"', ["", "EMPTY"], '"["""",""EMPTY""]"'),
        ),
        bad=(Bad("int", '"EMPTY"', "is not a whole number"), Bad("int", '"-"', "is not a whole")),
    ),
    "fills": Table(
        reading=("--fill-empty", "7", "--fill-quoted", "8", "--null", "x"),
        writing=("--null", "x"),
        cases=(
            Case("text", "", "7", "7"),
            Case("text", '""', "8", "8"),
            Case("text", "x", None),
            Case("tinyint", "", 7, "7"),
            Case("int", '""', 8, "8"),
            Case("varint", "", 7, "7"),
            Case("decimal", '""', Decimal(8), "8"),
            Case("double", "", 7.0, "7"),
            Case("timestamp", "", 7, "1970-01-01T00:00:00.007Z"),
            Case("bigint", "x", None),
        ),
        bad=(
            Bad("boolean", "", '"7" is not one of the words'),
            Bad("uuid", '""', '"8" is not a UUID'),
            Bad("date", "", '"7" is not a date'),
        ),
    ),
    "minutes": Table(
        both=(
            *("--timestamp-format", "min", "--time-format", "s", "--epoch", "2000-01-01"),
            *("--date-format", "yyyyMMdd"),
        ),
        reading=("--rounding", "floor"),
        cases=(
            Case("timestamp", "123456", ms("2000-01-01T00:00:00+00:00") + 123_456 * 60_000),
            Case("time", "3600", at("01:00")),
            Case("date", "20240229", day("2024-02-29")),
            Case("date", "2024-02-29", day("2024-02-29"), "20240229"),
            Case("int", "-2.5", -3, "-3"),
            Case("bigint", "7.9", 7, "7"),
            Case("list<date>", '"[""20240229""]"', [day("2024-02-29")]),
        ),
        bad=(
            Bad("timestamp", "minute", "is not"),
            Bad("time", "86400", "is"),
            Bad("date", "20240230", "day 30, which the month lacks"),
            Bad("tinyint", "200", "outside -128..127"),
        ),
    ),
    "null words in quotes": Table(
        reading=("--null", "NULL", "--null", "-", "--null-quoted"),
        writing=("--null", "NULL"),
        cases=(
            Case("text", '"NULL"', None, "NULL"),
            Case("text", '"-"', None, "NULL"),
            Case("text", "null", "null"),
            Case("text", "", "", '""'),
            Case("ascii", '""', ""),
            Case("int", '"NULL"', None, "NULL"),
            Case("int", '""', None, "NULL"),
            Case("uuid", "-", None, "NULL"),
            Case("boolean", '"-"', None, "NULL"),
            Case("timestamp", "", None, "NULL"),
            Case("list<text>", '"[""NULL""]"', ["NULL"]),
        ),
        bad=(Bad("int", '"null"', "is not a whole number"), Bad("uuid", "--", "is not a UUID")),
    ),
    "loose": Table(
        reading=("--accept", "all"),
        cases=(
            Case("int", "t", 1, "1"),
            Case("smallint", "1.0", 1, "1"),
            Case("float", "0x1p-1", 0.5, "0.5"),
            Case("date", "2024-2-9", day("2024-02-09"), "2024-02-09"),
            Case("time", "9:00:00", at("09:00"), "09:00:00.000000000"),
            Case("timestamp", "2024-02-29 13:34:56.789[Europe/Paris]", NOON,
                 "2024-02-29T12:34:56.789Z"),
            Case("uuid", "{" + UUID + "}", uuid.UUID(UUID), UUID),
            Case("timeuuid", TIMEUUID.replace("-", ""), uuid.UUID(TIMEUUID), TIMEUUID),
            Case("list<int>", '"1,2"', [1, 2], '"[1,2]"'),
            Case("set<text>", "{ab}", {"ab"}, '"[""ab""]"'),
            Case("set<text>", "\"['bar','foo']\"", ["bar", "foo"], '"[""bar"",""foo""]"'),
            Case("map<int, frozen<list<text>>>", '"1 : [""foo"", ""bar""], 2:[""qix""]"',
                 {1: ["foo", "bar"], 2: ["qix"]}, '"{""1"":[""foo"",""bar""],""2"":[""qix""]}"'),
            Case("frozen<pair>", "\"{'f1':1,'f2':'x'}\"", (1, "x"), '"{""f1"":1,""f2"":""x""}"'),
            Case("frozen<tuple<timestamp, text>>", "\"['2024-02-29T12:34:56.789','+01:00']\"",
                 (NOON, "+01:00"), '"[""2024-02-29T12:34:56.789Z"",""+01:00""]"'),
            Case("map<text, int>", "a = 1", {"a": 1}, '"{""a"":1}"'),
            Case("frozen<tuple<int, text>>", "\"[1,'x']\"", (1, "x"), '"[1,""x""]"'),
            Case("frozen<pair>", '"[1,x]"', (1, "x"), '"{""f1"":1,""f2"":""x""}"'),
            Case("text", '"{""a"": [1, 2]}"', '{"a": [1, 2]}', '"{""a"": [1, 2]}"'),
        ),
        bad=(
            Bad("timestamp", "2024-02-29 13:34 CST", "zone"),
            Bad("list<int>", '"1,y,x"', "is not a whole number"),
            Bad("timeuuid", UUID.replace("-1", "-4", 1), "version"),
        ),
    ),
}  # fmt: skip
