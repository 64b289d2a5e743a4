"""What a refused value's hint says comes out is what comes out when it is followed."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from producer.request.input_format import text_of
from ringhaul.cql.nested import encode_column
from ringhaul.cql.text_format import TextFormat
from ringhaul.cql.types import parse_type
from tests.cases import each
from tests.options import parse_options
from tests.unit.hints.follow import Reading, readings

#: Type -> its value in the spelling of hints, from the bytes of its cell.
SPELT: dict[str, Callable[[bytes], str]] = {
    "date": lambda raw: (date(1970, 1, 1) + timedelta(int.from_bytes(raw) - 2**31)).isoformat(),
    "timestamp": lambda raw: _moment(int.from_bytes(raw, signed=True)),
    "time": lambda raw: _clock(int.from_bytes(raw)),
    "boolean": lambda raw: str(raw[0]),
    "uuid": lambda raw: str(UUID(bytes=raw)),
    "double": lambda raw: f"{struct.unpack('>d', raw)[0]!r}",
    "decimal": lambda raw: str(int.from_bytes(raw[4:], signed=True)),
}
WHOLE = ("tinyint", "int", "bigint", "varint")
NESTED = ("list<int>", "map<text, int>", "list<date>", "set<text>")
TYPES = (*SPELT, *WHOLE, *NESTED, "duration")


def _moment(milliseconds: int) -> str:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
    spec = "milliseconds" if milliseconds % 1000 else "seconds"
    return moment.replace(tzinfo=None).isoformat(timespec=spec) + "Z"


def _clock(nanoseconds: int) -> str:
    seconds, rest = divmod(nanoseconds, 10**9)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{clock}.{rest:09}".rstrip("0").rstrip(".") if rest else clock


def spelt(cql_type: str, raw: bytes) -> str:
    if cql_type in WHOLE:
        return str(int.from_bytes(raw, signed=True))
    return SPELT[cql_type](raw)


def text_format(arguments: tuple[str, ...]) -> TextFormat:
    return text_of(parse_options("load", "-t", "t", "-", *arguments))


def encoded(cql_type: str, text: str, fmt: TextFormat) -> tuple[bytes | None, str]:
    """The cell of a text, or the reason why it is refused."""
    column = encode_column(parse_type(cql_type), pa.array([text.encode()]), fmt, null_length=-1)
    if column.faults:
        return None, column.faults[0].words(cql_type)
    return column.cells.values.to_pylist()[0], ""


def follow(cql_type: str, text: str, given: tuple[str, ...]) -> dict[Reading, str | None]:
    """Each reading that the refusal of a text names, with what comes out; None: it is refused."""
    raw, message = encoded(cql_type, text, text_format(given))
    if raw is not None:
        return {}
    found: dict[Reading, str | None] = {}
    for reading in readings(message):
        raw, again = encoded(cql_type, text, text_format((*given, *reading.arguments)))
        if raw is None:
            assert cql_type in NESTED, (message, again)
            found[reading] = None
        elif cql_type in (*NESTED, "duration"):
            found[reading] = reading.result
        else:
            found[reading] = spelt(cql_type, raw)
    # A hint whose reading the test does not recognise would be followed by people, too.
    assert message.count(" reads it") == len(found), message
    return found


DIGITS = st.integers(0, 10**17).map(str)
TEXTS = st.one_of(
    DIGITS,
    st.integers(1, 120_000).map(str),
    st.dates(date(1800, 1, 1)).map(lambda day: day.strftime("%Y%m%d")),
    st.datetimes(datetime(1800, 1, 1)).map(lambda at: at.strftime("%Y%m%d%H%M%S")),
    st.times().map(lambda at: at.strftime("%H%M%S")),
    st.dates().map(lambda day: f"{day.year:04}-{day.month}-{day.day}"),
    st.builds("{:04}-{}-{}".format, st.integers(1, 9999), st.integers(0, 14), st.integers(0, 33)),
    st.datetimes().map(lambda at: at.isoformat()),
    st.builds("{} {}".format, st.datetimes().map(lambda at: at.isoformat(timespec="minutes")),
              st.sampled_from(["CET", "EST", "Europe/Paris", "XYZ", "cst", "UTC"])),
    st.floats(0, 4e9).map(lambda number: f"{number:.3f}"),
    st.decimals(allow_nan=False, allow_infinity=False, places=3).map(str),
    st.builds("{}.{:03}".format, st.integers(1, 999), st.integers(0, 999)),
    st.builds("{}.{:03}.{:03}".format, st.integers(1, 999), *[st.integers(0, 999)] * 2),
    st.sampled_from(["true", "No", "y", "1.0", "0.0", "1e3", "-2.50e1", "0x1.8p3", "0x10", "-.5",
                     "5:03:00", "9:15", "PT1.5S", "-PT0.25S", "1,2", "{1,2}", "a: 1, b = 2",
                     "['x', y]", "29346", "#NV", "vielleicht"]),
    st.uuids().map(lambda one: one.hex),
    st.uuids().map(lambda one: f"{{{one}}}"),
    st.uuids().map(lambda one: one.urn),
)  # fmt: skip
GIVEN = st.sampled_from([
    (),
    ("--date-format", "dd.MM.yyyy", "--timestamp-format", "dd.MM.yyyy HH:mm"),
    ("--epoch-unit", "s"),
    ("--epoch", "2000-01-01"),
    ("--decimal-sep", ",", "--thousands-sep", "."),
    ("--accept", "fractions"),
    ("--timezone", "Europe/Berlin"),
])  # fmt: skip


@given(cql_type=st.sampled_from(TYPES), text=TEXTS, options=GIVEN)
def test_what_a_hint_says_comes_out(cql_type: str, text: str, options: tuple[str, ...]) -> None:
    for reading, result in follow(cql_type, text, options).items():
        if result is None:
            continue  # an element is refused once the brackets are read
        # A word that a column of doubles takes as a number is shown as the whole number that it is.
        assert reading.result == result or (cql_type == "double" and same(reading.result, result))


def same(one: str | None, other: str | None) -> bool:
    return one is not None and other is not None and float(one) == float(other)


#: The functions whose hints the texts above call for, for `test_every_hint_is_followed`.
MAKERS = {
    f"ringhaul/cql/{maker}"
    for maker in (
        "boolean_numbers.py:number_hint",
        "decimals.py:parse_decimal",
        "durations.py:parse_duration",
        "whole_numbers.py:_fraction_hint",
        "whole_numbers.py:whole_text",
        "identifiers.py:_parse_uuid",
        "moment_numbers.py:_hinted",
        "nested.py:_hint",
        "numbers.py:_double_of_hex",
        "numbers.py:_parse_boolean",
        "numbers.py:parse_real",
        "numbers.py:plain_numbers",
        "numbers.py:refuse",
        "temporal.py:_ambiguous_hint",
        "temporal.py:_date_hint",
        "temporal.py:_of_spreadsheet",
        "temporal.py:_time_hint",
        "temporal.py:_timestamp_hint",
    )
}

#: (type, text, what was meant, whether a hint leads to it).
MEANT = [
    ("date", "29346", "1980-05-05", True),  # Excel
    ("date", "45000", "2023-03-15", True),
    ("date", "19875", "2024-06-01", True),  # days since 1970
    ("date", "20240531", "2024-05-31", True),
    ("date", "1717113600", "2024-05-31", True),
    ("date", "1717113600000", "2024-05-31", True),
    ("date", "1717113601", "2024-05-31", False),  # not at midnight
    ("date", "20241331", "2024-12-31", False),
    ("date", "2024-5-1", "2024-05-01", True),
    ("date", "2024-13-1", "2024-01-13", False),
    ("timestamp", "1767226407.435", "2026-01-01T00:13:27.435Z", True),
    ("timestamp", "45000.5", "2023-03-15T12:00:00Z", True),
    ("timestamp", "20240531", "2024-05-31T00:00:00Z", True),
    ("timestamp", "20240531120000", "2024-05-31T12:00:00Z", True),
    ("timestamp", "2024-05-31T10:00 Europe/Paris", "2024-05-31T08:00:00Z", True),
    ("timestamp", "2024-05-31T10:00 XYZ", "2024-05-31T10:00:00Z", False),
    ("time", "093000", "09:30:00", True),
    ("time", "34200", "09:30:00", True),
    ("time", "34200000", "09:30:00", True),
    ("time", "5:03:00", "05:03:00", True),
    ("bigint", "1767226407.435", "1767226407435", False),  # milliseconds are meant
    ("bigint", "1.234", "1234", True),
    ("int", "1.000", "1000", True),
    ("int", "7.0", "7", True),
    ("bigint", "2024-05-31", "1717113600000", True),
    ("int", "2024-05-31", "1717113600", True),
    ("tinyint", "2024-05-31", "31", False),
]


@each(("cql_type", "text", "meant", "leads"), MEANT)
def test_a_hint_leads_to_what_was_meant(cql_type: str, text: str, meant: str, leads: bool) -> None:
    assert (meant in follow(cql_type, text, ()).values()) is leads


def test_seconds_with_a_fraction_are_not_rounded_in_a_column_of_whole_numbers() -> None:
    _, message = encoded("bigint", "1767226407.435", TextFormat())
    assert "--" not in message
    assert "as seconds since 1970 it is 2026-01-01T00:13:27.435Z" in message


def test_a_pattern_that_was_given_is_not_asked_for() -> None:
    for kind, pattern in (("date", "dd.MM.yyyy"), ("time", "HH.mm"), ("timestamp", "dd.MM.yyyy")):
        _, message = encoded(kind, "vielleicht", text_format((f"--{kind}-format", pattern)))
        assert message.endswith(f", nor one that --{kind}-format {pattern} reads")
        assert "PATTERN" not in message


def test_a_nested_value_is_read_as_its_hint_says() -> None:
    for cql_type, text in (("list<int>", "1,2"), ("map<text, int>", "a: 1, b = 2")):
        (reading,) = follow(cql_type, text, ())
        loose, _ = encoded(cql_type, text, text_format(reading.arguments))
        as_json, _ = encoded(cql_type, json.dumps(_plain(reading.result)), TextFormat())
        assert loose == as_json


def _plain(result: str | None) -> Any:
    return json.loads(result or "")
