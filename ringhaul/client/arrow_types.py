"""Types of Arrow that Parquet or the command does not take: converted, or refused by column.

Uses pyarrow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ringhaul.client.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

#: Extension types whose storage has the values.
_PLAIN_STORAGE = ("arrow.json", "arrow.fixed_shape_tensor")
_REMEDIES = {
    "pandas.period": "convert it with .dt.to_timestamp() or .astype(str)",
    "pandas.interval": "make two columns, of its left and right ends",
}
#: Bytes of a month-day-nano interval: two numbers of 32 bits, and one of 64.
_INTERVAL_BYTES = 16


def check_names(names: Sequence[str]) -> None:
    """Raise `UsageError` for a table without columns, or with two of one name."""
    if not names:
        raise UsageError("the table has no column")
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise UsageError(
            f"two columns have the name {twice[0]!r}: only one of them can be meant; rename or "
            "drop the other"
        )


def plain_table(table: pa.Table) -> pa.Table:
    """Return a table with types that a load takes. Raises `UsageError` for a column of another
    type."""
    import pyarrow as pa

    columns, fields = [], []
    for field, column in zip(table.schema, table.columns, strict=True):
        if _is_plain(field.type):
            columns.append(column)
            fields.append(field)
            continue
        chunks = [_plain(chunk, field.name) for chunk in column.chunks]
        kind = chunks[0].type if chunks else pa.null()
        columns.append(pa.chunked_array(chunks, kind))
        fields.append(pa.field(field.name, kind))
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def _is_plain(arrow: pa.DataType, *, nested: bool = False) -> bool:
    """Return whether a type needs no conversion. Parquet has no dictionary in nested types."""
    import pyarrow as pa

    if isinstance(arrow, pa.BaseExtensionType):
        return bool(arrow.extension_name == "arrow.uuid")
    if pa.types.is_dictionary(arrow):
        value = arrow.value_type
        return not nested and bool(
            pa.types.is_string(value)
            or pa.types.is_large_string(value)
            or pa.types.is_binary(value)
        )
    strange = (pa.types.is_run_end_encoded, pa.types.is_union, pa.types.is_interval)
    if any(check(arrow) for check in strange):
        return False
    if pa.types.is_list_view(arrow) or pa.types.is_large_list_view(arrow):
        return False
    if pa.types.is_map(arrow):
        return _is_plain(arrow.key_type, nested=True) and _is_plain(arrow.item_type, nested=True)
    if pa.types.is_struct(arrow) and not arrow.num_fields:
        return False
    return all(_is_plain(arrow.field(n).type, nested=True) for n in range(arrow.num_fields))


def _plain(array: pa.Array, name: str, *, nested: bool = False) -> pa.Array:
    """Return the values with types that need no conversion."""
    import pyarrow as pa
    import pyarrow.compute as pc

    arrow = array.type
    if _is_plain(arrow, nested=nested):
        return array
    if isinstance(arrow, pa.BaseExtensionType):
        return _plain(_storage(array, name), name, nested=nested)
    if pa.types.is_dictionary(arrow):
        return _dictionary(array, name, nested=nested)
    if pa.types.is_run_end_encoded(arrow):
        return _plain(pc.run_end_decode(array), name, nested=nested)
    if pa.types.is_interval(arrow):
        return _interval(array)
    if pa.types.is_union(arrow) or not arrow.num_fields:
        what = "different types in one column" if pa.types.is_union(arrow) else "no field"
        raise UsageError(f"column {name!r} is a {arrow} with {what}: cast it to one type, or text")
    return _nested(array, name)


def _storage(array: pa.Array, name: str) -> pa.Array:
    import pyarrow as pa

    kind = array.type.extension_name
    if kind == "arrow.bool8":
        return array.storage.cast(pa.bool_())
    if kind in _PLAIN_STORAGE:
        return array.storage
    remedy = _REMEDIES.get(
        kind, f"cast it to a type such as its storage, {array.type.storage_type}"
    )
    raise UsageError(f"column {name!r} has the type {kind}, which Cassandra has not: {remedy}")


def _dictionary(array: pa.Array, name: str, *, nested: bool) -> pa.Array:
    """Texts stay a dictionary, whose values are stored once; others are written out."""
    import pyarrow as pa

    values = array.dictionary
    if pa.types.is_string_view(values.type):
        values = values.cast(pa.string())
    elif pa.types.is_binary_view(values.type):
        values = values.cast(pa.binary())
    made = pa.DictionaryArray.from_arrays(array.indices, values)
    if _is_plain(made.type, nested=nested):
        return made
    return _plain(values, name, nested=nested).take(array.indices)


def _interval(array: pa.Array) -> pa.Array:
    """Months, days and nanoseconds become a struct, which a `duration` takes."""
    import numpy as np
    import pyarrow as pa

    parts = [("months", "i4"), ("days", "i4"), ("nanoseconds", "i8")]
    held = array.buffers()[1] if len(array) else b""
    start = array.offset * _INTERVAL_BYTES
    made = np.frombuffer(held, dtype="u1")[start : start + len(array) * _INTERVAL_BYTES]
    found = made.view(np.dtype(parts))
    fields = [pa.array(np.ascontiguousarray(found[name])) for name, _ in parts]
    names = [name for name, _ in parts]
    return pa.StructArray.from_arrays(fields, names, mask=array.is_null())


def _without_view(array: pa.Array) -> pa.Array:
    """Return lists for views of lists. Arrow's own cast of views with nulls makes invalid lists."""
    import numpy as np
    import pyarrow as pa

    missing = np.asarray(array.is_null())
    sizes = np.where(missing, 0, np.asarray(array.sizes))
    ends = np.concatenate([[0], np.cumsum(sizes, dtype="i8")])
    offsets = pa.array(ends, pa.int64(), mask=np.append(missing, False))
    return pa.LargeListArray.from_arrays(offsets, array.flatten())


def _nested(array: pa.Array, name: str) -> pa.Array:
    import pyarrow as pa

    arrow = array.type
    if array.offset:
        array = array.take(pa.array(range(len(array))))
    missing = array.is_null()
    if pa.types.is_struct(arrow):
        names = [arrow.field(n).name for n in range(arrow.num_fields)]
        fields = [
            _plain(part, f"{name}.{field}", nested=True)
            for part, field in zip(array.flatten(), names, strict=True)
        ]
        return pa.StructArray.from_arrays(fields, names, mask=missing)
    if pa.types.is_map(arrow):
        keys, items = (_plain(part, name, nested=True) for part in (array.keys, array.items))
        return pa.MapArray.from_arrays(array.offsets, keys, items, mask=missing)
    if pa.types.is_fixed_size_list(arrow):
        values = _plain(array.values, f"{name}[]", nested=True)
        return pa.FixedSizeListArray.from_arrays(values, arrow.list_size, mask=missing)
    if pa.types.is_list_view(arrow) or pa.types.is_large_list_view(arrow):
        return _plain(_without_view(array), name)
    kind: Any = pa.LargeListArray if pa.types.is_large_list(arrow) else pa.ListArray
    return kind.from_arrays(
        array.offsets, _plain(array.values, f"{name}[]", nested=True), mask=missing
    )
