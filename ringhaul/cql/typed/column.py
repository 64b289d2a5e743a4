"""Encode a column of any Arrow type to cells. A nested column is joined from its elements' columns.
Entry point of `typed`.

Types are decomposed level by level, as in `refusal`, and `encode_typed` is called for the elements
of a level as for a column.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ringhaul.cql.cells import NULL_LENGTH
from ringhaul.cql.column import Mask, quote
from ringhaul.cql.join import (
    Column,
    Fault,
    Faults,
    collection_cells,
    fields_cells,
    lift,
    null_faults,
    vector_cells,
)
from ringhaul.cql.text_format import TextFormat
from ringhaul.cql.typed.scalars import Encoder, scalar_encoder
from ringhaul.cql.typed.texts import from_json
from ringhaul.cql.types import CqlType


def refusal(kind: CqlType, arrow: pa.DataType) -> str | None:
    """Return why no value of an Arrow type can become `kind`, naming both; None if values can."""
    arrow = _plain_type(arrow)
    if pa.types.is_null(arrow) or pa.types.is_string(arrow):
        return None
    if kind.scalar:
        return None if scalar_encoder(kind, arrow) else f"{arrow} does not become {kind.name}"
    inner = _inner_types(kind, arrow)
    if inner is None:
        return f"{arrow} does not become {kind.name}{_extra_fields(kind, arrow)}"
    return next((why for of, data_type in inner if (why := refusal(of, data_type))), None)


def _extra_fields(kind: CqlType, arrow: pa.DataType) -> str:
    if kind.name != "udt" or not pa.types.is_struct(arrow):
        return ""
    extra = [field.name for field in arrow if udt_names(kind, [field.name]) is None]
    return f", which has no field {', '.join(extra[:5])}" if extra else ""


def encode_typed(
    kind: CqlType, array: pa.Array, fmt: TextFormat, *, null_length: int = NULL_LENGTH
) -> Column:
    """Encode a column; an Arrow null becomes a cell of length `null_length`.

    The array's type must be one for which `refusal` returns None.
    """
    array = _plain(array)
    if pa.types.is_null(array.type):
        array = array.cast(pa.string())
    if not array.null_count:
        return _encode(kind, array, fmt)
    valid: Mask = array.is_valid().to_numpy(zero_copy_only=False)
    cells, faults = _encode(kind, array.drop_null(), fmt)
    rows = np.flatnonzero(valid)
    faults = {int(rows[row]): fault for row, fault in faults.items()}
    return Column(cells.spread(valid, null_length), faults)


def _encode(kind: CqlType, array: Any, fmt: TextFormat) -> Column:
    if kind.scalar:
        encode = scalar_encoder(kind, array.type)
        assert encode is not None, f"{array.type} for {kind.name}"
        return encode(kind, array, fmt)
    if pa.types.is_string(array.type):
        return from_json(kind, array, fmt)
    return _NESTED[kind.name](kind, array, fmt)


def _plain_type(arrow: pa.DataType) -> pa.DataType:
    """Return the type of the array that `_plain` returns."""
    if isinstance(arrow, pa.BaseExtensionType):
        return _plain_type(arrow.storage_type)
    if pa.types.is_dictionary(arrow):
        return _plain_type(arrow.value_type)
    if pa.types.is_large_string(arrow) or pa.types.is_string_view(arrow):
        return pa.string()
    if pa.types.is_large_binary(arrow) or pa.types.is_binary_view(arrow):
        return pa.binary()
    return arrow


def _plain(array: pa.Array) -> Any:
    """Return the array in the plainest type for its values; inner arrays are unchanged."""
    if isinstance(array.type, pa.BaseExtensionType):
        return _plain(array.storage)
    if pa.types.is_dictionary(array.type):
        return _plain(array.dictionary_decode())
    plain = _plain_type(array.type)
    return array if array.type == plain else array.cast(plain)


def _inner_types(kind: CqlType, arrow: pa.DataType) -> list[tuple[CqlType, pa.DataType]] | None:
    """Return the pairs of element types to convert; None if the outer types do not match."""
    if kind.name in ("list", "set", "vector"):
        return [(kind.of[0], arrow.value_type)] if _is_list(arrow) else None
    if kind.name == "map":
        if pa.types.is_map(arrow):
            return [(kind.of[0], arrow.key_type), (kind.of[1], arrow.item_type)]
        if _is_list(arrow) and pa.types.is_struct(arrow.value_type):
            types = [field.type for field in arrow.value_type]
            return list(zip(kind.of, types, strict=True)) if len(types) == 2 else None
        if pa.types.is_struct(arrow):
            found = [_plain_type(field.type) for field in arrow]
            if found and all(data_type == found[0] for data_type in found):
                return [(kind.of[0], pa.string()), (kind.of[1], found[0])]
        return None
    if not pa.types.is_struct(arrow):
        return None
    fields = {field.name: field.type for field in arrow}
    if kind.name == "tuple":
        same = arrow.num_fields == len(kind.of)
        return list(zip(kind.of, [f.type for f in arrow], strict=True)) if same else None
    meant = udt_names(kind, list(fields))
    if len(fields) != arrow.num_fields or meant is None:
        return None
    types_of = dict(zip(kind.fields, kind.of, strict=True))
    return [(types_of[meant[name]], data_type) for name, data_type in fields.items()]


def udt_names(kind: CqlType, names: Sequence[str]) -> dict[str, str] | None:
    """Return the field of a user-defined type that each name means, if need be in another case;
    None if a name means no field, or two names mean one."""
    lower: dict[str, list[str]] = {}
    for field in kind.fields:
        lower.setdefault(field.lower(), []).append(field)
    found: dict[str, str] = {}
    for name in names:
        alike = [name] if name in kind.fields else lower.get(name.lower(), [])
        if len(alike) != 1 or alike[0] in found.values():
            return None
        found[name] = alike[0]
    return found


def _is_list(arrow: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(arrow)
        or pa.types.is_large_list(arrow)
        or pa.types.is_fixed_size_list(arrow)
    )


def _encode_list(kind: CqlType, array: Any, fmt: TextFormat) -> Column:
    counts = pc.list_value_length(array).to_numpy().astype(np.int64)
    cells, bad = encode_typed(kind.of[0], array.flatten(), fmt)
    bad = null_faults(cells, kind.of[0], f"a {kind.name}") | bad
    return Column(collection_cells([cells], counts), lift(bad, counts))


def _encode_vector(kind: CqlType, array: Any, fmt: TextFormat) -> Column:
    counts = pc.list_value_length(array).to_numpy().astype(np.int64)
    fits: Mask = counts == kind.size
    if not fits.all():
        cells, bad = _encode_vector(kind, array.filter(pa.array(fits)), fmt)
        rows = np.flatnonzero(fits)
        faults = {int(rows[row]): fault for row, fault in bad.items()}
        for row in np.flatnonzero(~fits):
            reason = f"{counts[row]} elements where the vector has {kind.size}"
            faults[int(row)] = Fault("", kind.name, reason)
        return Column(cells.spread(fits, NULL_LENGTH), faults)
    cells, bad = encode_typed(kind.of[0], array.flatten(), fmt)
    bad = null_faults(cells, kind.of[0], "a vector") | bad
    return Column(vector_cells(kind, cells, len(array)), lift(bad, counts))


def _encode_map(kind: CqlType, array: Any, fmt: TextFormat) -> Column:
    if pa.types.is_map(array.type):
        offsets = array.offsets.to_numpy().astype(np.int64)
        counts = np.diff(offsets)
        run = slice(int(offsets[0]), int(offsets[-1]))
        keys, values = array.keys[run], array.items[run]
    elif pa.types.is_struct(array.type):
        keys, values, counts = _members(array)
    else:
        counts = pc.list_value_length(array).to_numpy().astype(np.int64)
        keys, values = array.flatten().flatten()
    key_cells, bad_keys = encode_typed(kind.of[0], keys, fmt)
    cells, bad = encode_typed(kind.of[1], values, fmt)
    bad_keys = null_faults(key_cells, kind.of[0], "a key") | bad_keys
    bad = null_faults(cells, kind.of[1], "a map") | bad

    def path_of(entry: int, place: int) -> str:
        is_text = pa.types.is_string(keys.type)
        return f"[{quote(str(keys[entry]))}]" if is_text else f"[{place}][1]"

    faults = lift(bad, counts, path_of) | lift(bad_keys, counts, lambda _, place: " key")
    return Column(collection_cells([key_cells, cells], counts), faults)


def _members(array: Any) -> tuple[Any, Any, NDArray[np.int64]]:
    """Return names and values of structs' members without nulls, and the number in each struct."""
    names = [field.name for field in array.type]
    rows, width = len(array), len(names)
    columns = pa.concat_arrays([_plain(array.field(place)) for place in range(width)])
    order = np.arange(rows * width).reshape(width, rows).T.reshape(-1)
    values = columns.take(pa.array(order))
    keys = pa.array(names, pa.string()).take(pa.array(np.tile(np.arange(width), rows)))
    there = values.is_valid().to_numpy(zero_copy_only=False)
    counts = there.reshape(rows, width).sum(axis=1).astype(np.int64)
    mask = pa.array(there)
    return keys.filter(mask), values.filter(mask), counts


def _encode_struct(kind: CqlType, array: Any, fmt: TextFormat) -> Column:
    faults: Faults = {}
    columns = []
    names = [field.name for field in array.type]
    meant = (udt_names(kind, names) or {}) if kind.name == "udt" else {}
    places = {field: names.index(name) for name, field in meant.items()}
    for place, of in enumerate(kind.of):
        path = f"[{place}]"
        if kind.name == "udt":
            path = f".{kind.fields[place]}"
            place = places.get(kind.fields[place], -1)
        field = array.field(place) if place >= 0 else pa.nulls(len(array))
        cells, bad = encode_typed(of, field, fmt)
        columns.append(cells)
        for row, fault in bad.items():
            faults.setdefault(row, fault.within(path))
    return Column(fields_cells(columns), faults)


_NESTED: dict[str, Encoder] = {
    "list": _encode_list,
    "set": _encode_list,
    "map": _encode_map,
    "tuple": _encode_struct,
    "udt": _encode_struct,
    "vector": _encode_vector,
}
