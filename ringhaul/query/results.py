"""Turn groups into the result: HAVING, ORDER BY, LIMIT, and the selected columns."""

from __future__ import annotations

import ipaddress
import math
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa

from ringhaul.cql.types import CqlType
from ringhaul.query.scalars import EXACT_TEXTS
from ringhaul.query.select import Select

_DECIMAL_DIGITS = ((38, pa.decimal128), (76, pa.decimal256))


def _timeuuid_key(value: bytes) -> tuple[int, list[int]]:
    """Sort key as in Cassandra's TimeUUIDType: by timestamp, then by signed bytes."""
    return uuid.UUID(bytes=value).time, [(byte ^ 0x80) - 0x80 for byte in value[8:]]


def _uuid_key(value: bytes) -> tuple[int, int, bytes]:
    """Sort key as in Cassandra's UUIDType: by version, then by timestamp if any, then by bytes."""
    found = uuid.UUID(bytes=value)
    version = value[6] >> 4
    return version, found.time if version == 1 else 0, value if version != 1 else value[8:]


#: Types whose values sort differently from their Arrow form.
_KEYS: dict[str, Callable[[Any], Any]] = {
    "inet": lambda text: ipaddress.ip_address(text).packed,
    "timeuuid": _timeuuid_key,
    "uuid": _uuid_key,
}


def finish(select: Select, keys: list[pa.Array], computed: list[pa.Array]) -> pa.Table:
    """Return the result of groups with `keys` and the aggregates `computed`.

    Rows that ORDER BY does not distinguish are in the order of the groups' keys, nulls last.
    """
    names = [fetch.name for fetch in select.groups]
    names += [aggregate.label for aggregate in select.aggregates]
    batch = pa.RecordBatch.from_arrays(keys + computed, names)
    if select.having is not None:
        batch = batch.filter(select.having.evaluate(batch))
    order = list(range(batch.num_rows))
    for fetch, key in reversed(list(zip(select.groups, batch.columns, strict=False))):
        _sort(order, key, fetch.type, descending=False, nulls_first=False)
    for by in reversed(select.order):
        values = by.scalar.evaluate(batch)
        _sort(order, values, by.scalar.type, by.descending, by.nulls_first)
    batch = batch.take(pa.array(order[: select.limit], pa.int64()))
    return pa.Table.from_arrays(
        [item.scalar.evaluate(batch) for item in select.items], list(select.names)
    )


def _sort(
    order: list[int], values: pa.Array, cql_type: CqlType, descending: bool, nulls_first: bool
) -> None:
    """Sort the places in `order` by `values`, keeping the order of equal values."""
    found = sortable(values, cql_type)
    nulls = [row for row in order if found[row] is None]
    known = [(found[row] or (0, 0), row) for row in order if found[row] is not None]
    known.sort(key=lambda pair: pair[0], reverse=descending)
    rows = [row for _, row in known]
    order[:] = nulls + rows if nulls_first else rows + nulls


def sortable(values: pa.Array, cql_type: CqlType) -> list[tuple[int, Any] | None]:
    """Return Python values that sort as CQL's do: NaN last, text and addresses by bytes, exact
    numbers by value, UUIDs by version and timestamp."""
    name = cql_type.name
    if name in _KEYS:
        key = _KEYS[name]
        return [None if value is None else (0, key(value)) for value in values.to_pylist()]
    if name in EXACT_TEXTS:
        return [None if text is None else (0, Decimal(text)) for text in values.to_pylist()]
    if pa.types.is_string(values.type):
        values = values.cast(pa.binary())
    elif name in ("timestamp", "date", "time"):
        values = values.cast(pa.int32() if name == "date" else pa.int64())
    if not pa.types.is_floating(values.type):
        return [None if value is None else (0, value) for value in values.to_pylist()]
    return [
        None if value is None else (1, 0.0) if math.isnan(value) else (0, value)
        for value in values.to_pylist()
    ]


def numeric(table: pa.Table, types: tuple[CqlType, ...]) -> pa.Table:
    """Return `table` with varint and decimal columns as numbers, for files that other tools read.

    A varint column becomes int64 if all values fit; otherwise it, and a decimal column, becomes
    decimal128 or decimal256 at the greatest scale of the column, or stays text if it fits neither.
    """
    for place, cql_type in enumerate(types):
        if cql_type.name in EXACT_TEXTS:
            column = _number_column(table.column(place).to_pylist(), cql_type)
            table = table.set_column(place, table.field(place).name, column)
    return table


def _number_column(texts: list[str | None], cql_type: CqlType) -> pa.Array:
    values = [None if text is None else Decimal(text) for text in texts]
    known = [value for value in values if value is not None]
    if cql_type.name == "varint" and all(-(2**63) <= value < 2**63 for value in known):
        return pa.array([None if value is None else int(value) for value in values], pa.int64())
    scale = max((max(-int(value.as_tuple().exponent), 0) for value in known), default=0)
    whole = max((value.adjusted() + 1 for value in known), default=1)
    for digits, data_type in _DECIMAL_DIGITS:
        if scale + max(whole, 0) <= digits:
            return pa.array(values, data_type(digits, scale))
    if cql_type.name == "varint":
        texts = [None if value is None else f"{value:f}" for value in values]
    return pa.array(texts, pa.string())
