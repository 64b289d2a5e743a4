"""Spelled values load as the same cells; nested ones are JSON that other readers accept."""

import json
import math
import struct
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringhaul.cql.spell import digits as digit_kernels
from ringhaul.cql.spell import json_of, json_strings, kernels, text_of
from ringhaul.cql.types import CqlType
from tests.cases import each
from tests.property.cql.arrow_values import SCALARS, TEXTS, column, plain, types, values_of
from tests.property.cql.columns import encode

# Otherwise short columns of doubles are spelled without the kernels.
assert digit_kernels and kernels


def big_endian(form: str) -> Callable[[Any], bytes]:
    return lambda value: struct.pack(f">{form}", value)


#: Type -> the cell of a value, for types whose Arrow form is not text.
WIRE: dict[str, Callable[[Any], bytes]] = {
    "ascii": str.encode,
    "text": str.encode,
    "varchar": str.encode,
    "tinyint": big_endian("b"),
    "smallint": big_endian("h"),
    "int": big_endian("i"),
    "bigint": big_endian("q"),
    "float": big_endian("f"),
    "double": big_endian("d"),
    "boolean": big_endian("?"),
    "timestamp": big_endian("q"),
    "date": lambda days: struct.pack(">I", days + 2**31),
    "time": big_endian("q"),
    "uuid": bytes,
    "timeuuid": bytes,
    "blob": bytes,
}


def sliced(array: pa.Array, drawn: int) -> pa.Array:
    """The same values as a slice of a longer array."""
    return pa.concat_arrays([array[:drawn], array, array[drawn:]])[drawn : drawn + len(array)]


@pytest.mark.parametrize("name", sorted(WIRE))
@settings(max_examples=150)
@given(data=st.data())
def test_scalars_are_read_back_as_the_same_cells(name: str, data: st.DataObject) -> None:
    cql_type = CqlType(name)
    values = data.draw(st.lists(st.none() | SCALARS[name], max_size=8))
    array = sliced(column(cql_type, values), data.draw(st.integers(0, len(values))))
    texts = text_of(cql_type, array)
    assert texts.type == pa.string()
    texts.validate(full=True)
    expected = [None if value is None else WIRE[name](value) for value in values]
    nan = WIRE[name](math.nan) if name in ("float", "double") else None
    assert encode(name, texts.to_pylist(), null_length=-1) == [
        nan if isinstance(value, float) and math.isnan(value) else cell
        for value, cell in zip(values, expected, strict=True)
    ]


@settings(max_examples=300)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_doubles_are_the_shortest_that_round_trip(values: list[float]) -> None:
    for value, text in zip(values, text_of(CqlType("double"), pa.array(values)), strict=True):
        found = text.as_py()
        assert math.copysign(1, float(found)) == math.copysign(1, value)
        assert float(found) == value
        assert digits(found) == digits(repr(value))


@pytest.mark.parametrize("name", ["tinyint", "smallint", "int", "bigint", "counter"])
def test_whole_numbers_at_every_count_of_digits(name: str) -> None:
    powers = [10**digits for digits in range(19)]
    array_type = CqlType(name).arrow()
    most = 2 ** (array_type.bit_width - 1)
    near = {-most, most - 1, *(sign * n + d for n in powers for sign in (1, -1) for d in (-1, 0))}
    values = [value for value in near if -most <= value < most]
    texts = text_of(CqlType(name), sliced(pa.array([*values, None], array_type), 3))
    assert texts.to_pylist() == [*map(str, values), None]


#: Doubles made from decimals, at and beyond the bounds of what the kernel spells.
DECIMALS = st.builds(
    lambda digits, scale: float(f"{digits}e-{scale}"),
    st.integers(-(10**16), 10**16),
    st.integers(0, 9),
)


@settings(max_examples=400)
@given(data=st.data(), values=st.lists(st.none() | DECIMALS, min_size=1))
def test_doubles_with_few_decimals_are_spelled_as_arrow_does(
    data: st.DataObject, values: list[float | None]
) -> None:
    array = sliced(pa.array(values, pa.float64()), data.draw(st.integers(0, len(values))))
    texts = text_of(CqlType("double"), array)
    texts.validate(full=True)
    assert texts.to_pylist() == array.cast(pa.string()).to_pylist()


@each(
    "value",
    [0.0, -0.0, 1e-6, -1e-6, 5e-7, 0.1, 1 / 3, 25.272, -99.99, 100.0, 999999999.0, 999999999.999999,
     1e9, 1000000000.5, 1e10, 123456.7890125, 5e-324, 1.7976931348623157e308],
)  # fmt: skip
def test_doubles_at_the_bounds(value: float) -> None:
    for near in (value, math.nextafter(value, math.inf), math.nextafter(value, -math.inf)):
        array = pa.array([near, 0.5, None])
        expected = array.cast(pa.string()) if math.isfinite(near) else None
        texts = text_of(CqlType("double"), array).to_pylist()
        assert expected is None or texts == expected.to_pylist()
        assert struct.pack("d", float(texts[0])) == struct.pack("d", near)


def digits(text: str) -> str:
    mantissa = text.lower().split("e")[0].replace("-", "").replace(".", "")
    return mantissa.strip("0")


@settings(max_examples=200)
@given(st.lists(SCALARS["duration"], min_size=1))
def test_durations_read_as_cassandra_reads_them(values: list[dict[str, int]]) -> None:
    texts = text_of(CqlType("duration"), column(CqlType("duration"), values)).to_pylist()
    assert [parsed_duration(text) for text in texts] == [tuple(v.values()) for v in values]


def parsed_duration(text: str) -> tuple[int, int, int]:
    """The grammar of Cassandra's format: units in order, each at most once."""
    sizes = {"y": (0, 12), "mo": (0, 1), "d": (1, 1)}
    scale = {"h": 3600 * 10**9, "m": 60 * 10**9, "s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}
    sizes |= {unit: (2, size) for unit, size in scale.items()}
    sign, rest = (-1, text[1:]) if text[0] == "-" else (1, text)
    found, order = [0, 0, 0], list(sizes)
    while rest:
        number = rest[: len(rest) - len(rest.lstrip("0123456789"))]
        rest = rest[len(number) :]
        unit = rest[: len(rest) - len(rest.lstrip("abcdefghijklmnopqrstuvwxyz"))]
        rest = rest[len(unit) :]
        assert number and str(int(number)) == number
        order = order[order.index(unit) + 1 :]
        part, size = sizes[unit]
        found[part] += sign * size * int(number)
    return found[0], found[1], found[2]


def test_the_extremes_of_a_duration() -> None:
    values = [{"months": -(2**31), "days": -(2**31), "nanoseconds": -(2**63)}]
    (text,) = text_of(CqlType("duration"), column(CqlType("duration"), values)).to_pylist()
    assert parsed_duration(text) == (-(2**31), -(2**31), -(2**63))


def spelled(cql_type: CqlType, value: Any) -> str:
    text: str = text_of(cql_type, column(cql_type, [value]))[0].as_py()
    return text


@settings(max_examples=400)
@given(st.data())
def test_nested_values_are_the_json_that_json_loads_reads(data: st.DataObject) -> None:
    cql_type = data.draw(types())
    values: Sequence[Any] = data.draw(st.lists(st.none() | values_of(cql_type), max_size=4))
    array = sliced(column(cql_type, values), data.draw(st.integers(0, len(values))))
    texts = json_of(cql_type, array)
    texts.validate(full=True)
    assert len(texts) == len(values)
    for value, text in zip(values, texts.to_pylist(), strict=True):
        if value is None:
            assert text is None
            continue
        assert "\n" not in text and "\r" not in text
        found = json.loads(text)
        assert json.dumps(found) == json.dumps(plain(cql_type, value, spelled))


@settings(max_examples=300)
@given(st.lists(st.none() | TEXTS))
def test_json_strings_are_what_json_loads_reads(values: list[str | None]) -> None:
    texts = json_strings(pa.array(values, pa.string())).to_pylist()
    assert [None if text is None else json.loads(text) for text in texts] == values
