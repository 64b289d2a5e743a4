"""Find the rows of an unload that cannot be loaded again, and why. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ringhaul.cql.column import quote
from ringhaul.cql.decode.heavy_rows import HEAVY
from ringhaul.cql.empties import EMPTIABLE, EMPTY, marked_column
from ringhaul.cql.spell import text_of
from ringhaul.cql.types import TEXTS, CqlType
from ringhaul.output.unloadable_rows import IN_LIST, TOO_HEAVY, TOO_LONG, Unloadable, nul_reason
from ringhaul.query.select import Select


def unloadable_rows(
    select: Select,
    batch: pa.RecordBatch,
    written: pa.RecordBatch,
    too_long: Sequence[int],
    *,
    nuls: bool = False,
) -> list[Unloadable]:
    """Return which rows cannot be loaded again.

    `batch`: the rows as read; `written`: the same rows as written, made by `Select.project_marked`;
    `too_long`: rows of `written` whose record is longer than a load accepts. `nuls`: whether a load
    needs an option for NUL bytes.
    """
    found: list[tuple[str, str, Sequence[int]]] = []
    for name, kind, column in zip(select.names, select.types, written.columns, strict=True):
        if kind.name == "list":
            found.append((name, IN_LIST, rows_with_odd_elements(kind.of[0], column)))
        if nuls and kind.name in TEXTS and pa.types.is_string(column.type):
            holds = pc.fill_null(pc.match_substring(column, "\0"), False)
            found.append((name, nul_reason(), np.flatnonzero(holds).tolist()))
    if HEAVY in batch.schema.names:
        heavy = select.where.filter(batch).column(HEAVY).to_numpy(zero_copy_only=False)
        found.append(("", TOO_HEAVY, np.flatnonzero(heavy).tolist()))
    found.append(("", TOO_LONG, too_long))
    return [
        Unloadable(name, reason, len(rows), key_text(select, batch, rows[0]))
        for name, reason, rows in found
        if rows
    ]


def rows_with_odd_elements(of: CqlType, lists: pa.ListArray) -> list[int]:
    """Return the rows whose list has a null or empty element."""
    values = lists.flatten()
    odd = values.is_null() if values.null_count else None
    if of.name in EMPTIABLE and values.type == pa.string():
        empty = pc.equal(values, EMPTY)
        odd = empty if odd is None else pc.or_kleene(odd, empty)
    if odd is None or not pc.any(odd).as_py():
        return []
    rows = pc.list_parent_indices(lists).filter(odd)
    return [int(row) for row in np.unique(rows.to_numpy())]


def key_text(select: Select, batch: pa.RecordBatch, row: int) -> str:
    """Return the primary key of a row that passes WHERE, as far as it was read."""
    kept = select.where.filter(batch)
    words = []
    for name in select.table.primary_key:
        if name in kept.schema.names:
            value = marked_column(kept, name).slice(row, 1)
            text = text_of(select.table.parsed_type(name), value)[0].as_py()
            words.append(f"{name} = {quote(text or '')}")
    return ", ".join(words) or "a key that was not read"
