"""A column of cells of any type, as Arrow: nested types by the columns of their parts."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ringhaul.cql.decode.cells import (
    Int32s,
    Page,
    count_elements,
    find_elements,
    find_fields,
    find_items,
)
from ringhaul.cql.decode.hostile import HostilePage, checked
from ringhaul.cql.decode.scalars import DECODERS, Decode, Fixed, validity
from ringhaul.cql.types import CqlType

#: Types that lie in a vector side by side, without lengths: those that the server calls fixed in
#: length. It does not call tinyint, smallint, date and time so.
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


def decoder_of(cql_type: CqlType) -> Decode:
    """What decodes cells of this type."""
    match cql_type.name:
        case "list" | "set":
            return _lists(cql_type)
        case "map":
            return _maps(cql_type)
        case "tuple" | "udt":
            return _structs(cql_type)
        case "vector" if _innermost(cql_type).name in _SIDE_BY_SIDE:
            return _dense_vectors(cql_type)
        case "vector":
            return _vectors(cql_type)
        case _:
            return DECODERS[cql_type.name]


def _lists(cql_type: CqlType) -> Decode:
    data_type = cql_type.arrow()
    of_elements = decoder_of(cql_type.of[0])

    def decode(page: Page, starts: Int32s, lengths: Int32s) -> pa.Array:
        offsets, inner_starts, inner_lengths = _elements(cql_type, page, starts, lengths)
        elements = of_elements(page, inner_starts[0], inner_lengths[0])
        buffers = [_valid(lengths), pa.py_buffer(offsets)]
        return pa.Array.from_buffers(data_type, len(starts), buffers, children=[elements])

    return decode


def _maps(cql_type: CqlType) -> Decode:
    data_type = cql_type.arrow()
    entry_type = pa.struct([data_type.key_field, data_type.item_field])
    of_keys, of_values = (decoder_of(inner) for inner in cql_type.of)

    def decode(page: Page, starts: Int32s, lengths: Int32s) -> pa.Array:
        offsets, inner_starts, inner_lengths = _elements(cql_type, page, starts, lengths)
        keys = of_keys(page, inner_starts[0], inner_lengths[0])
        if keys.null_count:
            raise HostilePage("a map has a key without a value")
        values = of_values(page, inner_starts[1], inner_lengths[1])
        entries = pa.Array.from_buffers(entry_type, len(keys), [None], children=[keys, values])
        buffers = [_valid(lengths), pa.py_buffer(offsets)]
        return pa.Array.from_buffers(data_type, len(starts), buffers, children=[entries])

    return decode


def _elements(
    cql_type: CqlType, page: Page, starts: Int32s, lengths: Int32s
) -> tuple[Int32s, Int32s, Int32s]:
    """Arrow's offsets of lists, sets or maps; starts and lengths, a row for each part."""
    per = len(cql_type.of)
    offsets = np.empty(len(starts) + 1, np.int32)
    total = count_elements(page, starts, lengths, per, offsets)
    checked(total, f"a {cql_type.name}")
    inner_starts = np.empty((per, total), np.int32)
    inner_lengths = np.empty((per, total), np.int32)
    found = find_elements(page, starts, lengths, offsets, inner_starts, inner_lengths)
    checked(found, f"a {cql_type.name}")
    return offsets, inner_starts, inner_lengths


def _structs(cql_type: CqlType) -> Decode:
    """A tuple's or user-defined type's later fields may be missing: they are null.

    A user-defined type may have got more fields since its table's schema was read.
    """
    data_type = cql_type.arrow()
    of_fields = [decoder_of(inner) for inner in cql_type.of]
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
        buffers = [_valid(lengths)]
        return pa.Array.from_buffers(data_type, len(starts), buffers, children=fields)

    return decode


def _vectors(cql_type: CqlType) -> Decode:
    """Elements that vary in size, each behind its length."""
    data_type = cql_type.arrow()
    of_elements = decoder_of(cql_type.of[0])

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
    """Elements of fixed size, or vectors of such: the cell is nothing but their words."""
    scalar = _innermost(cql_type)
    fixed = DECODERS[scalar.name]
    assert isinstance(fixed, Fixed)
    levels: list[CqlType] = []  # from the inside out
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
    """The type within all vectors."""
    while cql_type.name == "vector":
        cql_type = cql_type.of[0]
    return cql_type


def _valid(lengths: Int32s) -> pa.Buffer | None:
    """Bits for cells that are not null; one that is empty counts as null."""
    present = lengths > 0
    return None if present.all() else validity(present)
