"""Format collections, tuples, user-defined types and vectors as JSON, a column at a time.

| CQL | JSON |
|---|---|
| list, set, vector, tuple | array |
| user-defined type | object by field name, null fields included |
| map | object if the key is a scalar (the key's text), else array of [key, value] pairs |
| whole numbers, boolean, finite float and double | number, true, false |
| every other scalar, NaN and infinities | string: the text of `text_of` |
| an empty value of a type other than text | `"0x"` |
| null | null |
"""

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ringhaul.cql.empties import is_marked
from ringhaul.cql.spell.quoting import json_strings
from ringhaul.cql.types import FLOATS, CqlType

Spellers = Mapping[str, Callable[[pa.Array], pa.StringArray]]

_BARE = ("tinyint", "smallint", "int", "bigint", "counter", "boolean")


def spell_json(cql_type: CqlType, array: pa.Array, spellers: Spellers) -> pa.StringArray:
    """Format each value as JSON on one line, without blanks; nulls stay Arrow nulls."""
    match cql_type.name:
        case "list" | "set" | "vector":
            text = _arrays(cql_type.of[0], array, spellers)
        case "map":
            text = _maps(cql_type, array, spellers)
        case "tuple":
            fields = _fields(cql_type, array, spellers)
            text = _framed("[", _joined(fields), "]")
        case "udt":
            names = json_strings(pa.array(cql_type.fields, pa.string())).to_pylist()
            fields = [
                pc.binary_join_element_wise(name, field, ":")
                for name, field in zip(names, _fields(cql_type, array, spellers), strict=True)
            ]
            text = _framed("{", _joined(fields), "}")
        case _:
            return _scalars(cql_type.name, array, spellers)
    return pc.if_else(array.is_valid(), text, None) if array.null_count else text


def _scalars(name: str, array: pa.Array, spellers: Spellers) -> pa.StringArray:
    if is_marked(CqlType(name), array):
        return _marked(name, array)
    text = spellers[name](array)
    if name in _BARE:
        return text
    if name in FLOATS:
        return _json_reals(text, array)
    return json_strings(text)


def _marked(name: str, text: pa.StringArray) -> pa.StringArray:
    """Return the JSON of a column in its marked form."""
    strings = json_strings(text)
    if name not in _BARE and name not in FLOATS:
        return strings
    if name in FLOATS:
        text = pc.if_else(pc.equal(text, "-0"), "-0.0", text)
    bare = pc.match_substring_regex(text, "^(-?[0-9.]+([eE][-+]?[0-9]+)?|true|false)$")
    return pc.if_else(bare, text, strings)


def _json_reals(text: pa.StringArray, array: pa.Array) -> pa.StringArray:
    values = array.fill_null(0.0).to_numpy()
    finite = np.isfinite(values)
    if not finite.all():
        text = pc.if_else(pa.array(finite), text, _framed('"', text, '"'))
    if ((values == 0) & np.signbit(values)).any():
        # Many readers parse -0 as a whole number, which loses the sign.
        text = pc.if_else(pc.equal(text, "-0"), "-0.0", text)
    return text


def _items(cql_type: CqlType, array: pa.Array, spellers: Spellers) -> pa.StringArray:
    """Return the JSON of values inside another value, with nulls as the word null."""
    return spell_json(cql_type, array, spellers).fill_null("null")


def _fields(cql_type: CqlType, array: pa.StructArray, spellers: Spellers) -> list[pa.StringArray]:
    return [
        _items(field_type, array.field(number), spellers)
        for number, field_type in enumerate(cql_type.of)
    ]


def _arrays(item: CqlType, array: pa.Array, spellers: Spellers) -> pa.StringArray:
    offsets, values = _flat(array)
    return _gathered("[", offsets, _items(item, values, spellers), "]")


def _maps(cql_type: CqlType, array: pa.MapArray, spellers: Spellers) -> pa.StringArray:
    key_type, value_type = cql_type.of
    offsets = _offsets(array)
    start, count = int(offsets[0]), int(offsets[-1] - offsets[0])
    keys, values = array.keys.slice(start, count), array.items.slice(start, count)
    offsets = offsets - offsets[0]
    value_text = _items(value_type, values, spellers)
    if key_type.scalar:
        marked = is_marked(key_type, keys)
        key_text = json_strings(keys if marked else spellers[key_type.name](keys))
        return _gathered("{", offsets, pc.binary_join_element_wise(key_text, value_text, ":"), "}")
    pairs = _joined([_items(key_type, keys, spellers), value_text])
    return _gathered("[", offsets, _framed("[", pairs, "]"), "]")


def _flat(array: pa.Array) -> tuple[np.ndarray, pa.Array]:
    """Return the offsets of the rows' items, and the items of all rows."""
    if isinstance(array, pa.FixedSizeListArray):
        size = array.type.list_size
        offsets = np.arange(0, (len(array) + 1) * size, size, dtype=np.int32)
        return offsets, array.values.slice(array.offset * size, len(array) * size)
    offsets = _offsets(array)
    start = int(offsets[0])
    return offsets - offsets[0], array.values.slice(start, int(offsets[-1]) - start)


def _offsets(array: pa.Array) -> np.ndarray:
    if not len(array):
        return np.zeros(1, np.int32)
    every = np.frombuffer(array.buffers()[1], np.int32)
    return every[array.offset : array.offset + len(array) + 1]


def _gathered(left: str, offsets: np.ndarray, items: pa.StringArray, right: str) -> pa.StringArray:
    lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), items)
    return _framed(left, pc.binary_join(lists, ","), right)


def _joined(fields: list[pa.StringArray]) -> pa.StringArray:
    return fields[0] if len(fields) == 1 else pc.binary_join_element_wise(*fields, ",")


def _framed(left: str, text: pa.StringArray, right: str) -> pa.StringArray:
    return pc.binary_join_element_wise(left, text, right, "")
