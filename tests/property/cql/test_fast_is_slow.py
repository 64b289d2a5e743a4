"""The fast pass over a column reads each value exactly like the slow parser of one value."""

import re
import struct
from collections.abc import Callable
from decimal import Decimal, localcontext

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ringhaul.cql import addresses, decimals, numbers, temporal
from ringhaul.cql.text import TextFormat
from tests.property.cql.columns import encode

FORMATTED = TextFormat(
    timestamp_formats=("%d/%m/%Y %H:%M", "%y%m%d%H%M%S%f", "%d %b %Y %I:%M %p %z"),
    timezone="America/St_Johns",  # its clocks have changed at one minute past midnight
    epoch_unit="us",
)


def integer(bits: int) -> Callable[[str], bytes]:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    return lambda text: numbers._parse_integer(text, low, high, TextFormat()).to_bytes(
        bits // 8, "big", signed=True
    )


def uuid_of(text: str) -> bytes:
    if not re.fullmatch(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", text):
        raise ValueError
    return bytes.fromhex(text.replace("-", ""))


def blob_of(text: str) -> bytes:
    if text and not re.fullmatch(r"0[xX]([0-9a-fA-F]{2})*", text):
        raise ValueError
    return bytes.fromhex(text[2:])


def boolean_of(text: str) -> bytes:
    return struct.pack("?", numbers._parse_boolean(text, TextFormat()))


SLOW: dict[str, Callable[[str], bytes]] = {
    "tinyint": integer(8),
    "int": integer(32),
    "bigint": integer(64),
    "varint": decimals.parse_varint,
    "decimal": decimals.parse_decimal,
    "float": lambda text: struct.pack(">f", numbers.parse_real(text, "float")),
    "double": lambda text: struct.pack(">d", numbers.parse_real(text, "double")),
    "boolean": boolean_of,
    "timestamp": lambda text: struct.pack(">q", temporal.parse_timestamp(text, TextFormat())),
    "date": lambda text: struct.pack(">I", temporal.parse_date(text)),
    "time": lambda text: struct.pack(">q", temporal.parse_time(text)),
    "uuid": uuid_of,
    "inet": addresses.parse_address,
    "blob": blob_of,
}

digits = st.text("0123456789", max_size=4)
number_like = st.one_of(
    st.text("0123456789+-.eE", max_size=8),
    st.from_regex(r"[+-]?[0-9]{0,20}\.?[0-9]{0,20}([eE][+-]?[0-9]{1,3})?", fullmatch=True),
    st.sampled_from(["1_000", "0x1f", "1f", "--1", "+-1", "-+1", "٣", "1e", "nan", "-nan", "-"]),
)
ip4_like = st.lists(
    st.one_of(st.integers(0, 300).map(str), st.just(""), digits), min_size=3, max_size=5
).map(".".join)
ip6_like = st.lists(
    st.one_of(st.just(""), st.text("0123456789abcdefABCDEF", max_size=5)), min_size=1, max_size=10
).map(":".join)
clock_like = st.from_regex(r"[0-2][0-9]:[0-6][0-9](:[0-6][0-9](\.[0-9]{0,10})?)?", fullmatch=True)
date_like = st.from_regex(r"[+-]?[0-9]{4,7}-[01][0-9]-[0-3][0-9]", fullmatch=True)
zone_like = st.sampled_from(["", "Z", "z", " UTC", "+01", "-0330", "+05:45", "+19:00", "+01:60"])
moment_like = st.one_of(
    st.builds(
        lambda d, s, c, z: d + s + c + z, date_like, st.sampled_from("T t"), clock_like, zone_like
    ),
    st.builds(lambda d, z: d + z, date_like, zone_like),
    st.from_regex(r"-?[0-9]{1,20}", fullmatch=True),
)
LIKE: dict[str, st.SearchStrategy[str]] = {
    "boolean": st.sampled_from(["true", "TRUE", "tRuE", "0", "1", "no", "Y", "", "2", "truee"]),
    "timestamp": moment_like,
    "date": st.one_of(date_like, moment_like),
    "time": st.one_of(clock_like, moment_like),
    "uuid": st.one_of(
        st.uuids().map(str), st.text("0123456789abcdefABCDEFg-", min_size=36, max_size=36)
    ),
    "inet": st.one_of(ip4_like, ip6_like, st.ip_addresses().map(str)),
    "blob": st.one_of(
        st.binary().map(lambda value: "0x" + value.hex()), st.text("0xX1aAfFg", max_size=6)
    ),
}


def slow(parse: Callable[[str], bytes], text: str) -> bytes | None:
    try:
        return parse(text)
    except ValueError:
        return None


def assert_same(
    cql_type: str, texts: list[str], parse: Callable[[str], bytes], fmt: TextFormat
) -> None:
    """Check the whole column and each value alone, so a bad neighbour does not choose the path."""
    expected = [slow(parse, text) for text in texts]
    whole = encode(cql_type, texts, fmt)
    alone = [encode(cql_type, [text], fmt)[0] for text in texts]
    assert [cell if isinstance(cell, bytes) else None for cell in whole] == expected, texts
    assert whole == alone


@pytest.mark.parametrize("cql_type", SLOW)
@given(data=st.data())
def test_fast_and_slow_agree(cql_type: str, data: st.DataObject) -> None:
    like = LIKE.get(cql_type, number_like)
    texts = data.draw(st.lists(like, min_size=1, max_size=6))

    assert_same(cql_type, texts, SLOW[cql_type], TextFormat())


@given(
    st.lists(
        st.one_of(
            moment_like,
            st.from_regex(r"[0-3]?[0-9]/[01]?[0-9]/[0-9]{4} [0-2]?[0-9]:[0-9]{2}", fullmatch=True),
            st.from_regex(r"[0-9]{12,21}", fullmatch=True),
            st.builds(
                lambda day, month, rest: f"{day} {month} 2024 {rest}",
                st.integers(0, 32),
                st.sampled_from(["Jan", "feb", "DEC", "Foo"]),
                st.sampled_from(["12:00 am +0100", "01:30 PM Z", "13:00 pm Z", "0:10 AM -03:30"]),
            ),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_fast_and_slow_agree_on_patterns_and_zones(texts: list[str]) -> None:
    def parse(text: str) -> bytes:
        return struct.pack(">q", temporal.parse_timestamp(text, FORMATTED))

    assert_same("timestamp", texts, parse, FORMATTED)


#: Timestamp patterns that contain digits, and texts that they write.
OWN_DIGITS = {
    "%d.%m.%Y 00:00:00": "31.01.2024 00:00:00",
    "20%y-%m-%d": "2024-01-02",
    "%Y-%d-%m": "2024-02-01",
    "%Y-%d-%m 00:00:00": "2024-02-01 00:00:00",
    "%Y-%m-%dT%H:%M:%S.000Z": "2024-01-02T03:04:05.000Z",
    "Q1 %d/%m/%Y": "Q1 03/05/2024",
    "%d/%m/%y0": "03/05/240",
    "%Y-%m-%d%z3%f": "2024-01-02+0130300",
    "%m%d2%Y1": "0102220241",
}


@st.composite
def texts_of_patterns_with_digits(draw: st.DrawFn) -> tuple[TextFormat, list[str]]:
    patterns = draw(st.lists(st.sampled_from(sorted(OWN_DIGITS)), min_size=1, max_size=2))
    texts = []
    for _ in range(draw(st.integers(1, 6))):
        text = OWN_DIGITS[draw(st.sampled_from(patterns))]
        for _ in range(draw(st.integers(0, 2))):
            place = draw(st.sampled_from([i for i, c in enumerate(text) if c.isdigit()]))
            text = text[:place] + draw(st.sampled_from("0123")) + text[place + 1 :]
        texts.append(text)
    return TextFormat(timestamp_formats=tuple(patterns), epoch_unit="s"), texts


@given(texts_of_patterns_with_digits())
@example((TextFormat(timestamp_formats=("%d.%m.%Y 00:00:00",)),
          ["31.01.2024 10:30:00", "31.01.2024 00:00:00", "30.01.2024 23:59:59"]))  # fmt: skip
@example((TextFormat(timestamp_formats=("%Y-%m-%d%z3%f",)),
          ["2024-01-02+0131300", "2024-01-02+0131200"]))  # fmt: skip
def test_fast_and_slow_agree_on_patterns_that_contain_digits(
    column: tuple[TextFormat, list[str]],
) -> None:
    fmt, texts = column

    def parse(text: str) -> bytes:
        return struct.pack(">q", temporal.parse_timestamp(text, fmt))

    assert_same("timestamp", texts, parse, fmt)


@given(st.datetimes().map(lambda moment: moment.isoformat(sep=" ", timespec="seconds")))
def test_zones_with_changing_clocks(text: str) -> None:
    def parse(text: str) -> bytes:
        return struct.pack(">q", temporal.parse_timestamp(text, FORMATTED))

    assert_same("timestamp", [text], parse, FORMATTED)


@given(st.integers(0, 0x7F7FFFFE), st.sampled_from(["at", "above", "below"]), st.booleans())
def test_a_float_is_rounded_once(bits: int, where: str, negative: bool) -> None:
    """Texts at the middle of two adjacent float32s, or just beside it, go to the nearest one."""
    low, high = (struct.unpack(">f", struct.pack(">I", b))[0] for b in (bits, bits + 1))
    with localcontext(prec=400):  # a float32 has at most 149 digits after the point
        middle = (Decimal(low) + Decimal(high)) / 2
        hair = Decimal(low) * Decimal("1e-60") + Decimal("1e-250")
        exact = middle + {"at": Decimal(0), "above": hair, "below": -hair}[where]
    even = bits if bits % 2 == 0 else bits + 1
    expected = {"at": even, "above": bits + 1, "below": bits}[where]
    text = ("-" if negative else "") + format(exact, "f")
    wire = struct.pack(">I", expected | (0x80000000 if negative else 0))

    assert encode("float", [text]) == [wire]
    assert encode("float", [text, "NaN", "x"])[0] == wire
    assert struct.pack(">f", numbers.parse_real(text, "float")) == wire
