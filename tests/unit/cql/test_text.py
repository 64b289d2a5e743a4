"""Texts that each type accepts, and the reason given for those that it refuses."""

import struct
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pytest

from ringhaul.cql.text import ENCODERS, TextFormat, encode_text, supported
from ringhaul.ledger.kinds import JobKind
from tasks.command_line import spelled_as
from tests.cases import each

DEFAULT = TextFormat()


def cell(cql_type: str, text: str | bytes, fmt: TextFormat = DEFAULT) -> bytes:
    raw = text.encode() if isinstance(text, str) else text
    cells, bad = encode_text(cql_type, pa.array([raw], pa.binary()), fmt, null_length=-2)
    assert bad == []
    value: bytes = cells.values[0].as_py()
    assert cells.lengths.tolist() == [len(value)]
    return value


def reason(cql_type: str, text: str | bytes, fmt: TextFormat = DEFAULT) -> str:
    """The reason for one bad value; it is the same between good values of the type."""
    raw = text.encode() if isinstance(text, str) else text
    alone = encode_text(cql_type, pa.array([raw], pa.binary()), fmt, null_length=-2)[1]
    around = pa.array([None, None, raw], pa.binary())
    among = encode_text(cql_type, around, fmt, null_length=-2)[1]
    assert [row for row, _ in alone] == [0]
    assert [row for row, _ in among] == [2]
    assert alone[0].reason == among[0].reason
    return alone[0].reason


@contextmanager
def unbounded_digits() -> Iterator[None]:
    bound = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        yield
    finally:
        sys.set_int_max_str_digits(bound)


def number(cql_type: str, text: str, fmt: TextFormat = DEFAULT) -> int:
    return int.from_bytes(cell(cql_type, text, fmt), "big", signed=cql_type != "date")


@each(
    ("cql_type", "text", "expected"),
    [
        ("text", "", b""),
        ("text", "  päd ", "  päd ".encode()),
        ("ascii", " a ", b" a "),
        ("blob", "", b""),
        ("blob", "0x", b""),
        ("blob", " 0XcaFE ", b"\xca\xfe"),
        ("int", " 007\t", b"\0\0\0\7"),
        ("int", "+5", b"\0\0\0\5"),
        ("int", "-0", b"\0\0\0\0"),
        ("bigint", "-9223372036854775808", b"\x80" + b"\0" * 7),
        ("varint", "-128", b"\x80"),
        ("varint", "128", b"\0\x80"),
        ("varint", "9" * 5000, (10**5000 - 1).to_bytes(2077, "big")),
        ("decimal", "1.50", b"\0\0\0\2\0\x96"),
        ("decimal", "15E-1", b"\0\0\0\1\x0f"),
        ("decimal", "1E+2147483648", b"\x80\0\0\0\1"),
        ("decimal", "-.5", b"\0\0\0\1\xfb"),
        ("double", "1e-400", b"\0" * 8),
        ("double", "-0.0", b"\x80" + b"\0" * 7),
        ("boolean", "Yes", b"\1"),
        ("boolean", "f", b"\0"),
        ("inet", "::", b"\0" * 16),
        ("inet", "::ffff:10.0.0.1", b"\0" * 10 + b"\xff\xff\x0a\0\0\1"),
        ("inet", "255.0.255.0", b"\xff\0\xff\0"),
        (
            "uuid",
            "123E4567-e89b-12d3-a456-426614174000",
            bytes.fromhex("123e4567e89b12d3a456426614174000"),
        ),
    ],
)
def test_accepted(cql_type: str, text: str, expected: bytes) -> None:
    assert cell(cql_type, text) == expected


#: `{}` stands for the value in double quotes.
REFUSED = [
    ("int", "12,50", "{} is not a whole number"),
    ("int", "", "{} is not a whole number"),
    ("int", "0x1f", "{} is not a whole number"),
    ("int", "1_000", "{} is not a whole number"),
    ("int", "1.0", "{} is not a whole number; --accept fractions reads it as 1"),
    ("int", "٣", "{} is not a whole number"),
    ("tinyint", "300", "300 is outside -128..127"),
    ("tinyint", "9" * 100, f"{'9' * 64}... is outside -128..127"),
    ("int", "2147483648", "2147483648 is outside -2147483648..2147483647"),
    ("bigint", str(2**63), f"{2**63} is outside {-(2**63)}..{2**63 - 1}"),
    ("varint", "1e3", "{} is not a whole number; --accept fractions reads it as 1000"),
    ("decimal", "1,5", "{} is not a decimal number"),
    ("decimal", "1E+2147483649", "{} has a scale outside -2147483648..2147483647"),
    ("decimal", "NaN", "{} is not a decimal number"),
    ("double", "1e400", "{} is outside the range of a double"),
    ("double", "1_0.5", "{} is not a number"),
    ("double", "-nan", "{} is not a number"),
    ("float", "3.5e38", "{} is outside the range of a float"),
    (
        "boolean",
        "2",
        "{} is not one of the words for true (true, t, yes, y, 1) or false (false, f, no, n, 0)",
    ),
    (
        "uuid",
        "f" * 32,
        "{} is not a UUID such as 123e4567-e89b-12d3-a456-426614174000; --accept uuids reads it as "
        "ffffffff-ffff-ffff-ffff-ffffffffffff",
    ),
    ("timeuuid", "123e4567-e89b-42d3-a456-426614174000", "{} is not a UUID of version 1"),
    ("inet", "10.0.0.256", "{} is not an IPv4 or IPv6 address"),
    ("inet", "10.0.0.010", "{} is not an IPv4 or IPv6 address"),
    ("inet", "fe80::1%eth0", "{} is not an IPv4 or IPv6 address"),
    ("inet", "1:::2", "{} is not an IPv4 or IPv6 address"),
    ("blob", "cafe", "{} is not 0x and pairs of hexadecimal digits"),
    ("blob", "0xabc", "{} is not 0x and pairs of hexadecimal digits"),
    ("ascii", "aé", "byte 2 (0xc3) is not ASCII"),
    (
        "text",
        b"ab\xff",
        "invalid UTF-8 at byte 3 (0xff); give --encoding if the file is in another encoding",
    ),
    ("date", "2023-02-29", "{} has day 29, which the month lacks"),
    ("date", "2023-13-01", "{} has month 13"),
    (
        "date",
        "1.2.2024",
        "{} is not a date such as 2024-05-31; --date-format PATTERN reads other spellings",
    ),
    ("date", "+5881580-07-12", "{} is outside -5877641-06-23..+5881580-07-11"),
    ("time", "24:00", "{} is past 23:59:59"),
    ("time", "12:00:00.1234567891", "{} has more than 9 digits after the second"),
    ("timestamp", "", "{} is not a timestamp such as 2024-05-31T23:59:59.123Z"),
    ("timestamp", "2024-01-01T00:00:60Z", "{} is past 23:59:59"),
    ("timestamp", "2024-01-01 00:00+19:00", '"+19:00" is outside the offsets -18:00..+18:00'),
    ("timestamp", str(2**63), "{} is outside the timestamps that Cassandra can hold"),
]


@each(("cql_type", "text", "expected"), REFUSED)
def test_refused(cql_type: str, text: str | bytes, expected: str) -> None:
    assert reason(cql_type, text) == f"cast {cql_type}: " + expected.replace("{}", f'"{text!s}"')


@pytest.mark.parametrize("size", [639, 640, 641, 1280, 1281, 2561, 7000])
def test_numbers_of_many_digits_are_exact(size: int) -> None:
    digits = ("9081726354" * (size // 10 + 1))[:size]
    with unbounded_digits():
        value = int(digits)
    assert number("varint", digits) == value
    assert number("varint", f"-{digits}") == -value
    assert number("varint", f"+{'0' * size}7") == 7
    scale, unscaled = cell("decimal", f"-{digits}.5")[:4], cell("decimal", f"-{digits}.5")[4:]
    assert scale == b"\0\0\0\1"
    assert int.from_bytes(unscaled, "big", signed=True) == -(value * 10 + 5)


def test_a_number_of_a_million_digits_takes_seconds() -> None:
    """Some 1.5 s here; reading it digit by digit takes two minutes."""
    started = time.process_time()
    assert number("varint", "1" + "0" * 1_000_000) == 10**1_000_000
    assert time.process_time() - started < 30


def test_a_reason_is_one_short_line() -> None:
    shown = "a\\nb" + "c" * 61 + "..."

    assert reason("date", "a\nb" + "c" * 100) == (
        f'cast date: "{shown}" is not a date such as 2024-05-31'
    )


@each(
    ("text", "milliseconds"),
    [
        ("1970-01-01", 0),
        ("1970-01-01T00:00Z", 0),
        ("1970-01-01 00:00:00.001", 1),
        ("1970-01-01 00:00:00,001", 1),
        ("1969-12-31T23:59:59.9999Z", -1),
        ("2024-05-31T23:59:59.123456789+0200", 1717192799123),
        ("2024-05-31 23:59:59.123000 UTC", 1717199999123),
        ("2024-05-31T23:59:59-03:30", 1717212599000),
        ("2024-05-31+0200", 1717106400000),
        ("0000-02-29T00:00:00Z", -62162121600000),
        ("9999-12-31T23:59:59.999Z", 253402300799999),
        ("+10000-01-01T00:00:00Z", 253402300800000),
        ("-0001-12-31T00:00:00Z", -62167305600000),
        ("+292278994-08-17T07:12:55.807Z", 2**63 - 1),
        ("-292275055-05-16T16:47:04.192Z", -(2**63)),
        ("1717192799123", 1717192799123),
        ("-9223372036854775808", -(2**63)),
    ],
)
def test_timestamps_are_exact(text: str, milliseconds: int) -> None:
    assert number("timestamp", text) == milliseconds


@pytest.mark.parametrize(
    "text", ["+292278994-08-17T07:12:55.808Z", "-292275055-05-16T16:47:04.191Z"]
)
def test_timestamps_one_millisecond_too_far(text: str) -> None:
    assert "outside the timestamps that Cassandra can hold" in reason("timestamp", text)


@pytest.mark.parametrize(
    ("unit", "text", "milliseconds"),
    [
        ("s", "1717192799", 1717192799000),
        ("s", "9223372036854775", 9223372036854775000),
        ("us", "1717192799123999", 1717192799123),
        ("us", "-1", -1),
        ("ns", "1717192799123999999", 1717192799123),
    ],
)
def test_epoch_units_are_floored(unit: str, text: str, milliseconds: int) -> None:
    assert number("timestamp", text, TextFormat(epoch_unit=unit)) == milliseconds


OTHERWISE = "--timestamp-format PATTERN reads other spellings"


@pytest.mark.parametrize(
    ("text", "as_ms", "as_date"),
    [
        ("1900", "1970-01-01T00:00:01.900Z", OTHERWISE),
        ("2026", "1970-01-01T00:00:02.026Z", OTHERWISE),
        (
            "20260131",
            "1970-01-01T05:37:40.131Z",
            "--timestamp-format yyyyMMdd reads it as 2026-01-31T00:00:00Z",
        ),
        (
            "20260131120000",
            "2612-01-08T06:12:00Z",
            "--timestamp-format yyyyMMddHHmmss reads it as 2026-01-31T12:00:00Z",
        ),
    ],
)
def test_a_number_that_reads_as_a_date_is_not_guessed(text: str, as_ms: str, as_date: str) -> None:
    assert reason("timestamp", text) == (
        f'cast timestamp: "{text}" may be a date or milliseconds since 1970; say which: '
        f"--epoch-unit ms reads it as {as_ms}, {as_date}"
    )
    assert number("timestamp", text, TextFormat(epoch_unit="ms")) == int(text)
    with spelled_as(JobKind.LOOKUP):
        of_values = reason("timestamp", text)
    assert "--values-epoch-unit ms reads it as" in of_values
    assert ", --values-timestamp-format " in of_values


@pytest.mark.parametrize("text", ["1", "1899", "-2026", "1767225600000"])
def test_other_whole_numbers_are_milliseconds(text: str) -> None:
    assert number("timestamp", text) == int(text)


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2024-01-15 12:00:00", "2024-01-15 11:00:00Z"),
        ("2024-07-15 12:00:00", "2024-07-15 10:00:00Z"),
        (
            "2024-10-27 02:30:00",
            "2024-10-27 00:30:00Z",
        ),  # the hour occurs twice that night: the first one counts
        ("2024-07-15 12:00:00Z", "2024-07-15 12:00:00Z"),  # the text has its own zone
        ("+12024-07-15 12:00:00", "+12024-07-15 10:00:00Z"),
    ],
)
def test_timestamps_without_a_zone_are_in_the_zone_of_the_format(text: str, utc: str) -> None:
    assert number("timestamp", text, TextFormat(timezone="Europe/Paris")) == number(
        "timestamp", utc
    )


@pytest.mark.parametrize(
    ("pattern", "text", "iso"),
    [
        ("%d/%m/%Y %H:%M", "3/2/2024 4:05", "2024-02-03 04:05"),
        ("%Y%m%d", "20240203", "2024-02-03"),
        ("%m/%d/%y %I:%M:%S %p", "02/03/69 12:00:01 am", "1969-02-03 00:00:01"),
        ("%d/%b/%Y:%T %z", "03/Feb/2024:04:05:06 +0100", "2024-02-03 03:05:06"),
        ("%A, %d %B %Y", "Saturday, 3 february 2024", "2024-02-03"),
        ("%Y-%m-%d %H.%M.%S.%f", "2024-02-03 04.05.06.7", "2024-02-03 04:05:06.700"),
        ("%Y年%m月%d日", "2024年2月3日", "2024-02-03"),
        ("%F %%", "2024-02-03 %", "2024-02-03"),
    ],
)
def test_timestamp_patterns(pattern: str, text: str, iso: str) -> None:
    fmt = TextFormat(timestamp_formats=("%d.%m.%Y", pattern))

    assert number("timestamp", text, fmt) == number("timestamp", iso)
    assert number("timestamp", iso, fmt) == number("timestamp", iso)


def test_the_first_pattern_that_fits_reads_a_timestamp() -> None:
    fmt = TextFormat(timestamp_formats=("%d/%m/%Y", "%m/%d/%Y"))

    assert number("timestamp", "02/03/2024", fmt) == number("timestamp", "2024-03-02")
    assert number("timestamp", "02/13/2024", fmt) == number("timestamp", "2024-02-13")


def test_dates_over_their_whole_range() -> None:
    assert number("date", "1970-01-01") == 2**31
    assert number("date", "-5877641-06-23") == 0
    assert number("date", "+5881580-07-11") == 2**32 - 1
    assert "outside" in reason("date", "-5877641-06-22")


def test_times() -> None:
    assert number("time", "00:00") == 0
    assert number("time", "23:59:59.999999999") == 86_400 * 10**9 - 1
    assert number("time", "01:02:03.5") == 3723_500_000_000


def test_numbers_with_separators() -> None:
    fmt = TextFormat(decimal_sep=",", thousands_sep=".")

    assert number("int", "-1.234.567", fmt) == -1234567
    assert number("int", "1234567", fmt) == 1234567
    assert cell("double", "1.234,5", fmt) == struct.pack(">d", 1234.5)
    assert cell("double", "NaN", fmt) == struct.pack(">d", float("nan"))
    assert cell("decimal", "1.234,50", fmt) == cell("decimal", "1234.50")
    expected = 'is not a number with decimal separator "," and thousands separator "."'
    assert reason("double", "12.50", fmt) == f'cast double: "12.50" {expected}'
    assert reason("int", "1.2345", fmt) == f'cast int: "1.2345" {expected}'
    assert reason("varint", "", fmt) == 'cast varint: "" is not a whole number'
    # A leading zero group is not a thousands separator: the number is in the other notation
    for text in ("0.125", "-0.125", "001.234", "012.345,6"):
        assert reason("decimal", text, fmt) == f'cast decimal: "{text}" {expected}'
    assert cell("decimal", "0,125", fmt) == cell("decimal", "0.125")


def test_a_point_at_the_end_of_a_value_before_a_minus() -> None:
    texts = pa.array([b"1.", b"-2", b"x"], pa.binary())
    cells, bad = encode_text("decimal", texts, DEFAULT, null_length=-2)

    assert [row for row, _ in bad] == [2]
    assert cells.values[:2].to_pylist() == [cell("decimal", "1"), cell("decimal", "-2")]


def test_boolean_words() -> None:
    fmt = TextFormat(true_words=("Ja",), false_words=("Nein",))

    assert [cell("boolean", word, fmt) for word in ("ja", "JA", "nEIN")] == [b"\1", b"\1", b"\0"]
    assert reason("boolean", "true", fmt) == (
        'cast boolean: "true" is not one of the words for true (Ja) or false (Nein)'
    )


def test_base64_blobs() -> None:
    fmt = TextFormat(blob="base64")

    assert cell("blob", "yv4=", fmt) == b"\xca\xfe"
    assert cell("blob", "", fmt) == b""
    assert reason("blob", "yv4", fmt).startswith('cast blob: "yv4" is not base64: ')


def test_bytes_of_two_values_that_are_utf8_only_together() -> None:
    halves = pa.array([b"\xc3", b"\xa9"], pa.binary())

    assert [row for row, _ in encode_text("text", halves, DEFAULT, null_length=-2)[1]] == [0, 1]


@each("cql_type", ENCODERS)
@each("null_length", [-1, -2])
def test_nulls_take_no_bytes(cql_type: str, null_length: int) -> None:
    cells, bad = encode_text(
        cql_type, pa.array([None, None], pa.binary()), DEFAULT, null_length=null_length
    )

    assert bad == []
    assert cells.lengths.tolist() == [null_length, null_length]
    assert cells.values.to_pylist() == [b"", b""]


@each("cql_type", ENCODERS)
def test_a_column_without_rows(cql_type: str) -> None:
    cells, bad = encode_text(cql_type, pa.array([], pa.binary()), DEFAULT, null_length=-2)

    assert (len(cells), bad, cells.values.to_pylist()) == (0, [], [])


@each("cql_type", ENCODERS)
def test_a_slice_reads_as_its_own_column(cql_type: str) -> None:
    """Arrow slices share buffers: neither the values before nor those after may be read."""
    values = [b"1", None, b"x\xff", b"0xab", None, b"1", b"2024-01-01", b"\xff"]
    whole = pa.array(values, pa.binary())
    for start, end in ((1, 7), (2, 4), (3, 6), (5, 5)):
        sliced = encode_text(cql_type, whole[start:end], DEFAULT, null_length=-1)
        copied = encode_text(
            cql_type, pa.array(values[start:end], pa.binary()), DEFAULT, null_length=-1
        )
        assert sliced[1] == copied[1]
        good = [row for row in range(end - start) if row not in {bad.row for bad in copied[1]}]
        for cells in (sliced[0], copied[0]):
            assert len(cells) == end - start
        assert [sliced[0].values[row].as_py() for row in good] == [
            copied[0].values[row].as_py() for row in good
        ]


def test_supported() -> None:
    assert supported("timeuuid")
    assert not supported("list<int>")
