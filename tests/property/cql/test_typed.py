"""Cells of typed columns equal those of the same values as text, and those of the driver."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from ringhaul.cql.nested import encode_column
from ringhaul.cql.text import TextFormat
from ringhaul.cql.typed import encode_typed, refusal
from ringhaul.cql.types import CqlType
from tests.property.cql.columns import binary, wire
from tests.property.cql.nested_types import SCALARS, driver_bytes, spelt, to_json, types, values

FORMAT = TextFormat()


def to_arrow(kind: CqlType, value: Any) -> Any:
    """A value as `pa.array` takes it for `kind.arrow()`."""
    if value is None:
        return None
    match kind.name:
        case "decimal" | "varint" | "inet":
            return SCALARS[kind.name][1](value)
        case "uuid" | "timeuuid":
            return value.bytes
        case "duration":
            return dict(zip(("months", "days", "nanoseconds"), value, strict=True))
        case "list" | "set" | "vector":
            return [to_arrow(kind.of[0], item) for item in value]
        case "map":
            return [(to_arrow(kind.of[0], k), to_arrow(kind.of[1], v)) for k, v in value]
        case "tuple" | "udt":
            names = kind.fields or [str(i) for i in range(len(kind.of))]
            found = zip(names, kind.of, value, strict=True)
            return {name: to_arrow(of, item) for name, of, item in found}
        case _:
            return value


def to_text(kind: CqlType, value: Any) -> str | None:
    if value is None:
        return None
    form = to_json(kind, value)
    return SCALARS[kind.name][1](value) if kind.scalar else spelt(form)


@st.composite
def columns(draw: st.DrawFn) -> tuple[CqlType, list[Any]]:
    kind = draw(types)
    return kind, draw(st.lists(st.none() | values(kind), max_size=6))


@given(columns(), st.data())
def test_typed_cells_are_those_of_text_and_the_drivers(
    column: tuple[CqlType, list[Any]], data: st.DataObject
) -> None:
    kind, rows = column
    array = pa.array([to_arrow(kind, row) for row in rows], kind.arrow())
    start = data.draw(st.integers(0, len(rows)))
    array, rows = array[start:], rows[start:]
    assert refusal(kind, array.type) is None

    cells, faults = encode_typed(kind, array, FORMAT, null_length=-2)

    assert faults == {}
    assert wire(cells) == [None if row is None else driver_bytes(kind, row) for row in rows]
    texts, bad = encode_column(
        kind, binary([to_text(kind, row) for row in rows]), FORMAT, null_length=-2
    )
    assert bad == {}
    assert wire(cells) == wire(texts)
    assert cells.lengths.tolist() == texts.lengths.tolist()


@given(columns())
def test_text_in_a_typed_file_is_read_as_in_a_csv_file(column: tuple[CqlType, list[Any]]) -> None:
    kind, rows = column
    texts = pa.array([to_text(kind, row) for row in rows], pa.string())
    for array in (texts, texts.cast(pa.large_string()), texts.dictionary_encode()):
        cells, faults = encode_typed(kind, array, FORMAT)
        assert faults == {}
        assert wire(cells) == [None if row is None else driver_bytes(kind, row) for row in rows]
