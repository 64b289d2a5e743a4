"""A Parquet file whose columns are known only at its end. Uses pyarrow.

Tables are written as they come. One with another column, or with a column of a wider type, begins a
new part of the file, to which later tables are fitted; at the end all parts are written once more,
with the columns of the last. So memory is bounded, and data of one shape is written once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ringhaul.client.columns import check_fields
from ringhaul.client.errors import UsageError
from ringhaul.client.scalars import DIGITS_MAX

if TYPE_CHECKING:
    import pyarrow as pa

#: Rows of a row group, which is the unit of work of a load.
GROUP_ROWS_MAX = 65_536
#: Bytes of a row group in memory, about.
GROUP_BYTES_MAX = 64 << 20
#: Bytes of a page. The command refuses files with pages that are too large to hold.
PAGE_BYTES_MAX = 4 << 20
#: Values of a page, if they are small.
PAGE_ROWS_MAX = 1024
_INT_DIGITS = 19


def write_growing(tables: Iterable[pa.Table], path: Path) -> None:
    """Write tables as one Parquet file with the columns of all. There must be at least one table.

    Raises `UsageError` for a column whose types have none in common.
    """
    parts: list[Path] = []
    schema: pa.Schema | None = None
    part: _Part | None = None
    try:
        for table in tables:
            wider = table.schema if schema is None else _grown_schema(schema, table.schema)
            if part is None or not wider.equals(schema):
                if part is not None:
                    part.close()
                parts.append(path if not parts else path.with_name(f"{path.name}.{len(parts)}"))
                part, schema = _Part(parts[-1], wider), wider
            part.add(_fitted(table, wider))
    finally:
        if part is not None:
            part.close()
    assert schema is not None
    if len(parts) > 1:
        _join(parts, schema, path)


def _join(parts: list[Path], schema: pa.Schema, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    whole = path.with_name(f"{path.name}.whole")
    joined = _Part(whole, schema)
    try:
        for one in parts:
            with pq.ParquetFile(one) as file:
                for batch in file.iter_batches(GROUP_ROWS_MAX // 4):
                    joined.add(_fitted(pa.Table.from_batches([batch]), schema))
            one.unlink()
    finally:
        joined.close()
    whole.replace(path)


class _Part:
    """Writes tables of one schema, in row groups of bounded size."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._path, self._schema = path, schema
        self._held: list[pa.RecordBatch] = []
        self._rows = self._size = 0
        self._writer: Any = None

    def add(self, table: pa.Table) -> None:
        for batch in table.to_batches():
            for piece in _pieces(batch):
                rows, size = self._rows + piece.num_rows, self._size + piece.nbytes
                if self._held and (rows > GROUP_ROWS_MAX or size > GROUP_BYTES_MAX):
                    self._flush()
                self._held.append(piece)
                self._rows, self._size = self._rows + piece.num_rows, self._size + piece.nbytes

    def close(self) -> None:
        """Write what is held; at least one group, so that an empty table has its columns."""
        try:
            if self._held or self._writer is None:
                self._flush()
        finally:
            if self._writer is not None:
                self._writer.close()

    def _flush(self) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        group = pa.Table.from_batches(self._held, self._schema)
        if self._writer is None:
            row_bytes = group.nbytes / max(group.num_rows, 1)
            page_rows = max(min(int(PAGE_BYTES_MAX / max(row_bytes, 1)), PAGE_ROWS_MAX), 1)
            self._writer = pq.ParquetWriter(
                self._path, self._schema, write_batch_size=page_rows, write_page_checksum=True
            )
        self._held, self._rows, self._size = [], 0, 0
        self._writer.write_table(group, row_group_size=max(group.num_rows, 1))


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield a batch in pieces of at most a row group's rows and, by their average, bytes."""
    row_bytes = batch.nbytes / max(batch.num_rows, 1)
    step = max(min(GROUP_ROWS_MAX, int(GROUP_BYTES_MAX / max(row_bytes, 1))), 1)
    for start in range(0, batch.num_rows, step):
        yield batch.slice(start, step)


def _grown_schema(one: pa.Schema, other: pa.Schema) -> pa.Schema:
    """Return a schema with the columns of both, and for each a type that holds both."""
    import pyarrow as pa

    types = {field.name: field.type for field in one}
    for field in other:
        known = types.get(field.name)
        types[field.name] = field.type if known is None else _grown(known, field.type, field.name)
    found = pa.schema(list(types.items()))
    return one if found.equals(one) else found


def _grown(one: pa.DataType, other: pa.DataType, name: str) -> pa.DataType:
    """Return the type that holds the values of both. Raises `UsageError` if there is none."""
    import pyarrow as pa

    if one.equals(other) or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        fields = {field.name: field.type for field in one}
        for field in other:
            known = fields.get(field.name, pa.null())
            fields[field.name] = _grown(known, field.type, f"{name}.{field.name}")
        check_fields(len(fields), name)
        return pa.struct(list(fields.items()))
    if pa.types.is_list(one) and pa.types.is_list(other):
        return pa.list_(_grown(one.value_type, other.value_type, f"{name}[]"))
    if _holds_nothing(one) and pa.types.is_struct(other):
        return other
    if _holds_nothing(other) and pa.types.is_struct(one):
        return one
    if pa.types.is_map(one) and pa.types.is_map(other):
        key = _grown(one.key_type, other.key_type, f"{name} (keys)")
        return pa.map_(key, _grown(one.item_type, other.item_type, f"{name} (values)"))
    if _is_number(one) and _is_number(other) and (found := _grown_number(one, other)) is not None:
        return found
    if {one, other} == {pa.date32(), pa.timestamp("us")}:
        return pa.timestamp("us")
    if pa.types.is_large_string(one) and pa.types.is_string(other):
        return one
    if pa.types.is_string(one) and pa.types.is_large_string(other):
        return other
    raise UsageError(
        f"column {name!r} has values of different types: {one} in earlier records, {other} in "
        "later ones; give all of them one type, or all as text"
    )


def _holds_nothing(arrow: pa.DataType) -> bool:
    """Return whether it is the type of dictionaries without any key."""
    import pyarrow as pa

    return bool(pa.types.is_map(arrow)) and bool(pa.types.is_null(arrow.item_type))


def _is_number(arrow: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(
        pa.types.is_int64(arrow) or pa.types.is_float64(arrow) or pa.types.is_decimal(arrow)
    )


def _grown_number(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """Return the type of numbers of both; None: floats and decimals, or too many digits."""
    import pyarrow as pa

    if pa.types.is_float64(one) or pa.types.is_float64(other):
        decimal = pa.types.is_decimal(one) or pa.types.is_decimal(other)
        return None if decimal else pa.float64()
    sizes = [
        (_INT_DIGITS, 0) if pa.types.is_int64(each) else (each.precision - each.scale, each.scale)
        for each in (one, other)
    ]
    scale = max(places for _, places in sizes)
    digits = max(whole for whole, _ in sizes) + scale
    if digits > DIGITS_MAX:
        return None
    return pa.decimal128(digits, scale) if digits <= 38 else pa.decimal256(digits, scale)


def _fitted(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return a table with the columns of a wider schema."""
    import pyarrow as pa

    if table.schema.equals(schema):
        return table
    held = dict(zip(table.column_names, table.columns, strict=True))
    columns = []
    for field in schema:
        column = held.get(field.name)
        if column is None:
            columns.append(pa.nulls(table.num_rows, field.type))
            continue
        try:
            chunks = [_fit(chunk, field.type) for chunk in column.chunks]
        except pa.ArrowException as error:
            raise UsageError(
                f"column {field.name!r} has values of different types, which {field.type} cannot "
                f"hold ({error}): give all of them one type, or all as text"
            ) from error
        columns.append(pa.chunked_array(chunks, field.type))
    return pa.Table.from_arrays(columns, schema=schema)


def _fit(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    import pyarrow as pa

    if array.type.equals(wanted):
        return array
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), wanted)
    if array.offset:
        array = array.take(pa.array(range(len(array))))
    if pa.types.is_struct(wanted):
        given = {} if pa.types.is_map(array.type) else _fields(array)
        fields = [
            _fit(given[field.name], field.type)
            if field.name in given
            else pa.nulls(len(array), field.type)
            for field in wanted
        ]
        return pa.StructArray.from_arrays(fields, fields=list(wanted), mask=array.is_null())
    if pa.types.is_list(wanted):
        values = _fit(array.values, wanted.value_type)
        return pa.ListArray.from_arrays(array.offsets, values, wanted, mask=array.is_null())
    if pa.types.is_map(wanted):
        keys, items = _fit(array.keys, wanted.key_type), _fit(array.items, wanted.item_type)
        offsets = array.offsets
        return pa.MapArray.from_arrays(offsets, keys, items, wanted, mask=array.is_null())
    return array.cast(wanted)


def _fields(array: pa.Array) -> dict[str, pa.Array]:
    return {field.name: values for field, values in zip(array.type, array.flatten(), strict=True)}
