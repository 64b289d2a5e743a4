"""Group rows: number the groups from 0 in order of appearance, then reduce column by column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Ids = NDArray[np.int32]


@dataclass(frozen=True)
class Groups:
    """Rows by group. `ids`: the group of each row. `firsts`: a row of each group."""

    ids: Ids
    firsts: NDArray[np.int64]

    @classmethod
    def of(cls, keys: Sequence[pa.Array], rows_count: int) -> Groups:
        """Group by all `keys`, with null as a separate value; without keys all rows are one group.

        Equal keys must have equal bytes; see `normaliser`.
        """
        if not keys:
            return cls(np.zeros(rows_count, np.int32), np.zeros(1, np.int64))
        keys = [_bits(key) for key in keys]
        encoded = pc.dictionary_encode(keys[0], null_encoding="encode")
        codes = encoded.indices.to_numpy().astype(np.int64)
        for key in keys[1:]:
            encoded = pc.dictionary_encode(key, null_encoding="encode")
            # Both factors are at most the number of rows, which is far below 2^31.
            combined = codes * max(len(encoded.dictionary), 1) + encoded.indices.to_numpy()
            encoded = pc.dictionary_encode(pa.array(combined))
            codes = encoded.indices.to_numpy().astype(np.int64)
        count = len(encoded.dictionary)
        firsts = np.zeros(count, np.int64)
        firsts[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
        return cls(codes.astype(np.int32), firsts)

    @classmethod
    def of_pairs(cls, ids: Ids, values: pa.Array) -> Groups:
        """Group by pairs of group and value."""
        return cls.of([pa.array(ids), values], len(ids))

    @property
    def count(self) -> int:
        return len(self.firsts)

    def sizes(self) -> NDArray[np.int64]:
        return np.bincount(self.ids, minlength=self.count).astype(np.int64)

    def reduce(self, *columns: tuple[pa.Array, str]) -> list[pa.Array]:
        """Return one array per column, with one value per group: `count` (of values that are not
        null), `sum`, `min`, `max`, `mean` or `variance` (of the whole population); null for a group
        without a value.
        """
        if not len(self.ids):
            return [pa.nulls(self.count, _empty_type(array.type, how)) for array, how in columns]
        names = [str(place) for place in range(len(columns))]
        table = pa.table([pa.array(self.ids), *(array for array, _ in columns)], ["g", *names])
        wanted = [(name, how) for name, (_, how) in zip(names, columns, strict=True)]
        found = table.group_by("g", use_threads=False).aggregate(wanted)
        order = found.column("g").to_numpy()
        arrays = [_one(found.column(f"{name}_{how}")) for name, how in wanted]
        if len(order) == self.count and (order == np.arange(self.count)).all():
            return arrays
        places = np.full(self.count, -1, np.int64)  # -1: a group without a row in `ids`
        places[order] = np.arange(len(order))
        taken = pa.array(places, mask=places < 0)
        return [array.take(taken) for array in arrays]

    def fold(self, values: Sequence[Any], combine: Callable[[Any, Any], Any]) -> list[Any]:
        """Combine Python values to one per group, ignoring None; None for a group without any."""
        found: list[Any] = [None] * self.count
        for group, value in zip(self.ids.tolist(), values, strict=True):
            if value is not None:
                before = found[group]
                found[group] = value if before is None else combine(before, value)
        return found


def _bits(key: pa.Array) -> pa.Array:
    """View floats as integers, so that 0.0 and -0.0, and NaNs with other bits, stay distinct."""
    if not pa.types.is_floating(key.type):
        return key
    return key.view(pa.int32() if key.type.bit_width == 32 else pa.int64())


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _empty_type(data_type: pa.DataType, how: str) -> pa.DataType:
    if how == "count":
        return pa.int64()
    if how in ("mean", "variance") or (how == "sum" and pa.types.is_floating(data_type)):
        return pa.float64()
    return pa.int64() if how == "sum" and pa.types.is_integer(data_type) else data_type
