"""For every scalar type our cells are the bytes that the driver's serialisers write."""

import ipaddress
import math
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from cassandra import cqltypes, util
from hypothesis import given
from hypothesis import strategies as st

from tests.property.cql.columns import encode

PROTOCOL = 4
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def integers(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def float32_text(value: float) -> str:
    return repr(value)


uuids = st.integers(0, 2**128 - 1).map(lambda value: uuid.UUID(int=value))
time_uuids = uuids.map(lambda value: uuid.UUID(int=value.int & ~(0xF << 76) | 1 << 76))
decimals = st.builds(
    lambda digits, sign, exponent: Decimal((sign, digits, exponent)),
    st.lists(st.integers(0, 9), min_size=1, max_size=40).map(tuple),
    st.integers(0, 1),
    st.one_of(st.integers(-20, 20), st.integers(-(2**31) + 50, 2**31 - 50)),
)
# The driver goes through float seconds: only whole milliseconds near today are exact.
moments = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)).map(
    lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000)
)
addresses = st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6))

#: Type -> (values, their text, the driver's type, the value as the driver takes it).
Case = tuple[st.SearchStrategy[Any], Callable[[Any], str], Any, Callable[[Any], Any]]
CASES: dict[str, Case] = {
    "ascii": (
        st.text(st.characters(max_codepoint=127)),
        str,
        cqltypes.AsciiType,
        lambda value: value,
    ),
    "text": (st.text(), str, cqltypes.UTF8Type, lambda value: value),
    "varchar": (st.text(), str, cqltypes.VarcharType, lambda value: value),
    "blob": (st.binary(), lambda value: "0x" + value.hex(), cqltypes.BytesType, bytes),
    "tinyint": (integers(8), str, cqltypes.ByteType, int),
    "smallint": (integers(16), str, cqltypes.ShortType, int),
    "int": (integers(32), str, cqltypes.Int32Type, int),
    "bigint": (integers(64), str, cqltypes.LongType, int),
    "varint": (
        st.one_of(integers(16), integers(64), integers(300)),
        str,
        cqltypes.IntegerType,
        int,
    ),
    "decimal": (decimals, str, cqltypes.DecimalType, lambda value: value),
    "float": (st.floats(width=32, allow_nan=False), float32_text, cqltypes.FloatType, float),
    "double": (st.floats(allow_nan=False), repr, cqltypes.DoubleType, float),
    "boolean": (st.booleans(), str, cqltypes.BooleanType, bool),
    "timestamp": (
        moments,
        lambda value: value.isoformat(timespec="milliseconds"),
        cqltypes.DateType,
        lambda value: value,
    ),
    "date": (
        st.dates(),
        lambda value: value.isoformat(),
        cqltypes.SimpleDateType,
        util.Date,
    ),
    "time": (
        st.integers(0, 86_400 * 10**9 - 1),
        lambda value: str(util.Time(value)),
        cqltypes.TimeType,
        util.Time,
    ),
    "uuid": (uuids, str, cqltypes.UUIDType, lambda value: value),
    "timeuuid": (time_uuids, str, cqltypes.TimeUUIDType, lambda value: value),
    "inet": (addresses, str, cqltypes.InetAddressType, str),
}


@pytest.mark.parametrize("cql_type", CASES)
@given(data=st.data())
def test_cells_are_what_the_driver_writes(cql_type: str, data: st.DataObject) -> None:
    strategy, spell, driver_type, driver_value = CASES[cql_type]
    values = data.draw(st.lists(st.none() | strategy, max_size=12))
    texts = [None if value is None else spell(value) for value in values]

    encoded = encode(cql_type, texts)

    for value, cell in zip(values, encoded, strict=True):
        if value is None:
            assert cell is None
            continue
        assert cell == driver_type.to_binary(driver_value(value), PROTOCOL)


@pytest.mark.parametrize("cql_type", sorted(CASES.keys() - {"timestamp", "date", "inet"}))
@given(data=st.data())
def test_the_driver_reads_the_value_back(cql_type: str, data: st.DataObject) -> None:
    strategy, spell, driver_type, driver_value = CASES[cql_type]
    value = data.draw(strategy)

    (cell,) = encode(cql_type, [spell(value)])

    assert isinstance(cell, bytes)
    if cell:  # the driver reads an empty value as None by default
        assert driver_type.from_binary(cell, PROTOCOL) == driver_value(value)


@given(moments)
def test_the_driver_reads_timestamps_back(moment: datetime) -> None:
    (cell,) = encode("timestamp", [moment.isoformat(sep=" ", timespec="milliseconds")])

    milliseconds = int.from_bytes(cell, "big", signed=True)
    assert EPOCH + timedelta(milliseconds=milliseconds) == moment
    read = cqltypes.DateType.from_binary(cell, PROTOCOL)
    assert read.replace(tzinfo=UTC) == moment


@given(addresses)
def test_the_driver_reads_addresses_back(address: ipaddress.IPv4Address) -> None:
    (cell,) = encode("inet", [str(address)])

    assert ipaddress.ip_address(cqltypes.InetAddressType.from_binary(cell, PROTOCOL)) == address


@given(st.dates())
def test_the_driver_reads_dates_back(day: Any) -> None:
    (cell,) = encode("date", [day.isoformat()])

    assert cqltypes.SimpleDateType.from_binary(cell, PROTOCOL).date() == day


@pytest.mark.parametrize("cql_type", ["float", "double"])
def test_spellings_of_nan_and_infinity(cql_type: str) -> None:
    driver_type = CASES[cql_type][2]
    texts = ["NaN", "nan", "Infinity", "inf", "+Inf", "-Infinity", "-inf"]
    values = [math.nan, math.nan, math.inf, math.inf, math.inf, -math.inf, -math.inf]

    assert encode(cql_type, texts) == [driver_type.to_binary(v, PROTOCOL) for v in values]
