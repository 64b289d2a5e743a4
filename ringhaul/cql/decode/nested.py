"""Decode a column of cells of any type to Arrow, a nested type by the columns of its parts."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ringhaul.cql.decode.cells import (
    Int32s,
    Page,
    count_elements,
    find_elements,
    find_fields,
    find_items,
)
from ringhaul.cql.decode.hostile_page import HostilePage, checked
from ringhaul.cql.decode.scalars import DECODERS, Decode, Fixed, validity
from ringhaul.cql.empties import EMPTIABLE, EMPTY, marked_type
from ringhaul.cql.spell import text_of
from ringhaul.cql.types import CqlType

#: Types whose elements have no lengths in a vector, because the server declares their length as
#: fixed. It does not do so for tinyint, smallint, date and time.
_SIDE_BY_SIDE = {
    "boolean",
    "int",
    "bigint",
    "float",
    "double",
    "timestamp",
    "uuid",
    "timeuuid",
}


class Empties:
    """Records whether there were empty values without an Arrow form (`cql/empties.py`)."""

    met = False


class Leaves(NamedTuple):
    """How to decode the scalars within a type."""

    #: Records empty values, if given.
    empties: Empties | None = None
    #: Whether to decode to the marked form of the column.
    marked: bool = False

    def arrow(self, cql_type: CqlType) -> pa.DataType:
        return (marked_type(cql_type) if self.marked else cql_type).arrow()

    def decoder(self, name: str) -> Decode:
        if name not in EMPTIABLE:
            return DECODERS[name]
        if self.marked:
            return _marked(name)
        return DECODERS[name] if self.empties is None else _noting(name, self.empties)


PLAIN = Leaves()


def decoder_of(cql_type: CqlType, leaves: Leaves = PLAIN) -> Decode:
    """Return the decoder for cells of this type."""
    match cql_type.name:
        case "list" | "set":
            return _lists(cql_type, leaves)
        case "map":
            return _maps(cql_type, leaves)
        case "tuple" | "udt":
            return _structs(cql_type, leaves)
        case "vector" if _innermost(cql_type).name in _SIDE_BY_SIDE:
            return _dense_vectors(cql_type)
        case "vector":
            return _vectors(cql_type, leaves)
        case _:
            return leaves.decoder(cql_type.name)


def _noting(name: str, empties: Empties) -> Decode:
    plain = DECODERS[name]

    def decode(page: Page, starts: Int32s, lengths: Int32s) -> pa.Array:
        array = plain(page, starts, lengths)
        if array.null_count and not lengths.all():
            empties.met = True
        return array

    return decode


def _marked(name: str) -> Decode:
    plain = DECODERS[name]

    def decode(page: Page, starts: Int32s, lengths: Int32s) -> pa.Array:
        text = text_of(CqlType(name), plain(page, starts, lengths))
        return pc.if_else(pa.array(lengths == 0), EMPTY, text)

    return decode


def _lists(cql_type: CqlType, leaves: Leaves) -> Decode:
    data_type = leaves.arrow(cql_type)
    of_elements = decoder_of(cql_type.of[0], leaves)

    def decode(page: Page, starts: Int32s, lengths: Int32s) -> pa.Array:
        offsets, inner_starts, inner_lengths = _elements(cql_type, page, starts, lengths)
        elements = of_elements(page, inner_starts[0], inner_lengths[0])
        buffers = [_valid(lengths), pa.py_buffer(offsets)]
        return pa.Array.from_buffers(data_type, len(starts), buffers, children=[elements])

    return decode


def _maps(cql_type: CqlType, leaves: Leaves) -> Decode:
    data_type = leaves.arrow(cql_type)
    entry_type = pa.struct([data_type.key_field, data_type.item_field])
    of_keys, of_values = (decoder_of(inner, leaves) for inner in cql_type.of)

    def decode(page: Page, starts: Int32s, lengths: Int32s) -> pa.Array:
        offsets, inner_starts, inner_lengths = _elements(cql_type, page, starts, lengths)
        keys = of_keys(page, inner_starts[0], inner_lengths[0])
        if keys.null_count:
            if (inner_lengths[0] < 0).any():
                raise HostilePage("a map has a null key")
            # Arrow has no empty keys of these types; a filler value stands for them.
            keys = pc.fill_null(keys, _least(keys.type))
        values = of_values(page, inner_starts[1], inner_lengths[1])
        entries = pa.Array.from_buffers(entry_type, len(keys), [None], children=[keys, values])
        buffers = [_valid(lengths), pa.py_buffer(offsets)]
        return pa.Array.from_buffers(data_type, len(starts), buffers, children=[entries])

    return decode


def _elements(
    cql_type: CqlType, page: Page, starts: Int32s, lengths: Int32s
) -> tuple[Int32s, Int32s, Int32s]:
    """Return Arrow's offsets of lists, sets or maps, and starts and lengths of their elements, with
    one row for each part."""
    per = len(cql_type.of)
    offsets = np.empty(len(starts) + 1, np.int32)
    total = count_elements(page, starts, lengths, per, offsets)
    checked(total, f"a {cql_type.name}")
    inner_starts = np.empty((per, total), np.int32)
    inner_lengths = np.empty((per, total), np.int32)
    found = find_elements(page, starts, lengths, offsets, inner_starts, inner_lengths)
    checked(found, f"a {cql_type.name}")
    return offsets, inner_starts, inner_lengths


def _structs(cql_type: CqlType, leaves: Leaves) -> Decode:
    """Return a decoder of tuples or user-defined types. Missing fields at the end are null; if all
    are missing, the cell has zero bytes, but is not null.

    A user-defined type may have got more fields since its table's schema was read.
    """
    data_type = leaves.arrow(cql_type)
    of_fields = [decoder_of(inner, leaves) for inner in cql_type.of]
    may_have_more = cql_type.name == "udt"

    def decode(page: Page, starts: Int32s, lengths: Int32s) -> pa.Array:
        inner_starts = np.empty((len(of_fields), len(starts)), np.int32)
        inner_lengths = np.empty((len(of_fields), len(starts)), np.int32)
        found = find_fields(page, starts, lengths, may_have_more, inner_starts, inner_lengths)
        checked(found, f"a {cql_type.name}")
        fields = [
            of_field(page, inner_starts[i], inner_lengths[i])
            for i, of_field in enumerate(of_fields)
        ]
        present = lengths >= 0
        buffers = [None if present.all() else validity(present)]
        return pa.Array.from_buffers(data_type, len(starts), buffers, children=fields)

    return decode


def _vectors(cql_type: CqlType, leaves: Leaves) -> Decode:
    """Return a decoder of vectors whose elements vary in size, each after its length."""
    data_type = leaves.arrow(cql_type)
    of_elements = decoder_of(cql_type.of[0], leaves)

    def decode(page: Page, starts: Int32s, lengths: Int32s) -> pa.Array:
        inner_starts = np.empty(len(starts) * cql_type.size, np.int32)
        inner_lengths = np.empty(len(starts) * cql_type.size, np.int32)
        found = find_items(page, starts, lengths, cql_type.size, inner_starts, inner_lengths)
        checked(found, "a vector")
        elements = of_elements(page, inner_starts, inner_lengths)
        buffers = [_valid(lengths)]
        return pa.Array.from_buffers(data_type, len(starts), buffers, children=[elements])

    return decode


def _dense_vectors(cql_type: CqlType) -> Decode:
    """Return a decoder of vectors of fixed-size elements, or of such vectors: a cell holds just the
    elements' bytes."""
    scalar = _innermost(cql_type)
    fixed = DECODERS[scalar.name]
    assert isinstance(fixed, Fixed)
    levels: list[CqlType] = []  # innermost first
    inner = cql_type
    count = 1
    while inner.name == "vector":
        levels.insert(0, inner)
        count *= inner.size
        inner = inner.of[0]

    def decode(page: Page, starts: Int32s, lengths: Int32s) -> pa.Array:
        array = fixed.side_by_side(page, starts, lengths, count)
        for level in levels:
            valid = _valid(lengths) if level is cql_type else None
            array = pa.Array.from_buffers(
                level.arrow(), len(array) // level.size, [valid], children=[array]
            )
        return array

    return decode


def _innermost(cql_type: CqlType) -> CqlType:
    """Return the element type inside nested vectors."""
    while cql_type.name == "vector":
        cql_type = cql_type.of[0]
    return cql_type


def _valid(lengths: Int32s) -> pa.Buffer | None:
    """Return the validity bits of cells; an empty cell counts as null."""
    present = lengths > 0
    return None if present.all() else validity(present)


def _least(data_type: pa.DataType) -> Any:
    """Return a filler value of an Arrow type, where Arrow allows no null."""
    if pa.types.is_fixed_size_binary(data_type):
        return pa.scalar(bytes(data_type.byte_width), data_type)
    if pa.types.is_string(data_type):
        return pa.scalar("", data_type)
    return pa.scalar(0, pa.int64()).cast(data_type)
