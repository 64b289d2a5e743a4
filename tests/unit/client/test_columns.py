"""Python values as columns: nothing of a value is lost, and types that differ are refused."""

from __future__ import annotations

import ipaddress
import re
import uuid
from collections import deque, namedtuple
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from ringhaul.client.columns import column
from ringhaul.client.errors import UsageError
from tests.cases import each

DAY, NOON = date(2024, 1, 1), datetime(2024, 1, 1, 12)
EAST = timezone(timedelta(hours=2))
Point = namedtuple("Point", "x y")
ONE = uuid.UUID(int=1)


class Word(str):
    pass


class Level(IntEnum):
    HIGH = 3


class Color(Enum):
    RED = "red"


@dataclass
class Pair:
    a: int


@each(
    ("values", "wanted"),
    [
        ([None, pd.NA, pd.NaT], None),
        ([1, None, Level.HIGH, np.int16(4)], [1, None, 3, 4]),
        ([2**63, -(2**63) - 1, 1], [Decimal(2**63), Decimal(-(2**63) - 1), Decimal(1)]),
        ([10**75, None], [Decimal(10**75), None]),
        ([1, 1.5, pd.NA], [1.0, 1.5, None]),
        ([1, Decimal("1.25"), Decimal("1E+3")], [Decimal(1), Decimal("1.25"), Decimal(1000)]),
        ([True, np.bool_(False)], [True, False]),
        ([Word("x"), "é", np.str_("y")], ["x", "é", "y"]),
        ([b"x", bytearray(b"y"), memoryview(b"z")], [b"x", b"y", b"z"]),
        ([ONE, None], [ONE, None]),
        ([ipaddress.ip_address("1.2.3.4"), ipaddress.ip_address("::1")], ["1.2.3.4", "::1"]),
        ([DAY, NOON], [datetime(2024, 1, 1), NOON]),
        ([NOON.replace(tzinfo=EAST), NOON.replace(tzinfo=UTC)], [NOON.replace(hour=10), NOON]),
        ([np.datetime64("2024-01-01"), DAY], [DAY, DAY]),
        ([np.datetime64(NOON, "ns"), pd.Timestamp(NOON), np.datetime64("NaT")], [NOON, NOON, None]),
        ([time(1, 2)], [time(1, 2)]),
        ([timedelta(days=1), np.timedelta64(1, "h")], [timedelta(days=1), timedelta(hours=1)]),
        ([[1], (2, 3), None, {5, 4}, deque([6]), []], [[1], [2, 3], None, [4, 5], [6], []]),
        ([["x"], frozenset("ba")], [["x"], ["a", "b"]]),
        ([np.array([1, 2]), None, np.array([3])], [[1, 2], None, [3]]),
        ([np.ones((1, 2)), [[0.0]]], [[[1.0, 1.0]], [[0.0]]]),
        ([{"a": 1}, {"b": [2]}, None], [{"a": 1, "b": None}, {"a": None, "b": [2]}, None]),
        ([[{"a": 1}], [{"b": "x"}]], [[{"a": 1, "b": None}], [{"a": None, "b": "x"}]]),
        ([{1: "x"}, {}, None], [[(1, "x")], [], None]),
        ([Point(1, "x")], [{"x": 1, "y": "x"}]),
    ],
)
def test_values_come_back(values: list[Any], wanted: list[Any] | None) -> None:
    found = column(values, "c", 1)
    assert isinstance(found, pa.Array) and len(found) == len(values)
    kept = [
        one.astimezone(UTC).replace(tzinfo=None) if isinstance(one, datetime) else one
        for one in found.to_pylist()
    ]
    assert kept == (wanted or [None] * len(values))


def test_nanoseconds_of_a_duration_stay() -> None:
    found = column([pd.Timedelta(days=1, nanoseconds=7), None, timedelta(seconds=-1)], "c")
    assert found.cast(pa.int64()).to_pylist() == [86_400_000_000_007, None, -1_000_000_000]


def test_nan_is_a_value_and_in_pandas_a_missing_one() -> None:
    assert str(column([float("nan"), 1.0], "c").to_pylist()) == "[nan, 1.0]"
    assert column([float("nan"), "x"], "c", nan_is_null=True).to_pylist() == [None, "x"]


@each(
    ("values", "words"),
    [
        ([1, "x"], "'c' has values of different types: int in record 5, str in record 6; give"),
        ([True, 2], "bool in record 5, int in record 6"),
        (["x", b"y"], "str in record 5, bytes in record 6"),
        ([1.5, Decimal(1)], "float in record 5, Decimal in record 6"),
        ([1.5, 2**53 + 1], "record 6: the whole number 9007199254740993 is among floats"),
        ([[1], [2, "x"]], "'c[]' has values of different types: int, str.*as a dictionary"),
        ([{"a": 1}, {"a": "x"}], "'c.a' has values .* int in record 5, str in record 6"),
        ([NOON, NOON.replace(tzinfo=UTC)], "times with a zone and others without"),
        ([DAY, NOON.replace(tzinfo=UTC)], "times with a zone and others without"),
        ([None, time(1, tzinfo=UTC)], "record 6: a time of day has no zone"),
        ([Decimal("NaN")], "record 5: NaN is no decimal"),
        ([Decimal("1e60"), Decimal("1e-60")], "needs 121 digits.*as text"),
        ([10**80], "needs 81 digits.*as text"),
        (["\ud800"], "record 5: half a surrogate pair"),
        ([Color.RED], "record 5: a value of the type Color cannot be loaded: give its .value"),
        ([Pair(1)], "dataclasses.asdict"),
        ([pd.Period("2024-01")], "to_timestamp"),
        ([pd.Interval(0, 1)], "its .left and .right"),
        ([1j], "its .real and .imag"),
        ([None, object()], "record 6: a value of the type object"),
        ([{f"k{n}": 1} for n in range(1001)], "more than 1,000 different keys: for a map"),
        ([np.timedelta64(1, "Y")], "record 5"),
    ],
)
def test_values_that_differ_in_kind_are_refused(values: list[Any], words: str) -> None:
    with pytest.raises(UsageError, match=words.replace("[]", re.escape("[]"))):
        column(values, "c", 5)
