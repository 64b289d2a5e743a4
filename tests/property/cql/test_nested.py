"""For nested values from JSON our cells are the bytes that the driver's serialisers write."""

from __future__ import annotations

from typing import Any

import numpy as np
from cassandra import marshal
from hypothesis import given
from hypothesis import strategies as st

from ringhaul.cql.nested import encode_column, encode_json, parse_json
from ringhaul.cql.text import TextFormat
from ringhaul.cql.types import CqlType
from ringhaul.cql.vints import signed_vints, unsigned_vints
from tests.property.cql.columns import binary, encode, wire
from tests.property.cql.nested_types import (
    PROTOCOL,
    SCALARS,
    driver_bytes,
    duration_text,
    durations,
    nested_types,
    spelt,
    to_json,
    to_literal,
    types,
    values,
)

FORMAT = TextFormat()


@given(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 300)))
def test_unsigned_vints_are_the_drivers(numbers: list[int]) -> None:
    packed = unsigned_vints(np.array(numbers, np.uint64)).to_pylist()
    assert packed == [marshal.uvint_pack(number) for number in numbers]


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-200, 200)))
def test_signed_vints_are_the_drivers(numbers: list[int]) -> None:
    packed = signed_vints(np.array(numbers, np.int64)).to_pylist()
    assert packed == [marshal.vints_pack([number]) for number in numbers]


@given(st.lists(st.none() | durations))
def test_durations_are_the_drivers(found: list[tuple[int, int, int] | None]) -> None:
    cells = encode("duration", [None if d is None else duration_text(d) for d in found])
    driver_type, driver_value = SCALARS["duration"][2:]
    assert cells == [
        None if d is None else driver_type.to_binary(driver_value(d), PROTOCOL) for d in found
    ]


@st.composite
def columns(draw: st.DrawFn, kinds: st.SearchStrategy[CqlType]) -> tuple[CqlType, list[Any]]:
    kind = draw(kinds)
    return kind, draw(st.lists(st.none() | values(kind), max_size=6))


@given(columns(nested_types), st.booleans(), st.booleans())
def test_cells_of_json_text_are_what_the_driver_writes(
    column: tuple[CqlType, list[Any]], as_object: bool, as_number: bool
) -> None:
    kind, rows = column
    forms = [to_json(kind, row, as_object=as_object, as_number=as_number) for row in rows]
    texts = [None if row is None else spelt(form) for row, form in zip(rows, forms, strict=True)]

    cells, bad = encode_column(kind, binary(texts), FORMAT, null_length=-2)

    assert bad == {}
    assert wire(cells) == [None if row is None else driver_bytes(kind, row) for row in rows]


@given(columns(nested_types), st.booleans())
def test_cells_of_literals_are_what_the_driver_writes(
    column: tuple[CqlType, list[Any]], bare: bool
) -> None:
    kind, rows = column
    texts = [None if row is None else to_literal(kind, row, bare=bare) for row in rows]

    cells, bad = encode_column(kind, binary(texts), FORMAT, null_length=-2)

    assert bad == {}
    assert wire(cells) == [None if row is None else driver_bytes(kind, row) for row in rows]


@given(columns(types))
def test_any_type_can_be_the_value_of_a_json_object(column: tuple[CqlType, list[Any]]) -> None:
    kind, rows = column
    parsed = [parse_json(spelt(to_json(kind, row)).encode()) for row in rows]

    cells, faults = encode_json(kind, parsed, FORMAT, null_length=-1)

    assert faults == {}
    assert wire(cells) == [None if row is None else driver_bytes(kind, row) for row in rows]


#: JSON that is valid for no type.
MISFITS = st.sampled_from(["[[[[[[]]]]]]", '{"no such": 1}', "[", '"\\ud800"', "[null]", "tru"])


@given(columns(nested_types), MISFITS, st.data())
def test_a_bad_value_rejects_only_its_row(
    column: tuple[CqlType, list[Any]], misfit: str, data: st.DataObject
) -> None:
    kind, rows = column
    texts: list[str | None] = [None if row is None else spelt(to_json(kind, row)) for row in rows]
    at = data.draw(st.integers(0, len(rows)))
    texts.insert(at, misfit)

    cells, bad = encode_column(kind, binary(texts), FORMAT, null_length=-2)

    assert list(bad) in ([at], [])
    found = wire(cells)
    assert len(found) == len(rows) + 1
    del found[at]
    assert found == [None if row is None else driver_bytes(kind, row) for row in rows]
