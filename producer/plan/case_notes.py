"""Say which fields fill columns whose names differ in case, and which a verification leaves out."""

from __future__ import annotations

from collections.abc import Sequence

from producer.request.load import LoadRequest
from ringhaul.cluster.schema import TableSchema
from ringhaul.records.job import LoadSource

#: How many fields are named; a file may write all its names in capitals.
SHOWN_MAX = 3


def case_notes(sources: Sequence[LoadSource], *, verb: str = "loaded into") -> list[str]:
    """Return one line about such fields of all sources, or none. `verb`: what becomes of them."""
    pairs = {
        (field, column): None
        for source in sources
        for field, column in source.mapping
        if field != column and field.lower() == column.lower()
    }
    if not pairs:
        return []
    (field, column), *others = pairs
    parts = [f"field {field} is {verb} column {column}"]
    parts += [f"{field} {verb} {column}" for field, column in others[: SHOWN_MAX - 1]]
    if len(pairs) > SHOWN_MAX:
        parts.append(f"and {len(pairs) - SHOWN_MAX:,} more whose names differ in case")
    return [", ".join(parts)]


def left_out_notes(
    request: LoadRequest, sources: Sequence[LoadSource], table: TableSchema
) -> list[str]:
    """Return one line about write times and TTLs that a verification leaves out, or none."""
    found = dict.fromkeys(
        name
        for source in sources
        for name in request.skipped(source.results or source.fields, table.column_names)
        if name not in request.skip_columns
    )
    if not found:
        return []
    names = ", ".join([*found][:SHOWN_MAX])
    more = f" and {len(found) - SHOWN_MAX:,} more" if len(found) > SHOWN_MAX else ""
    return [f"not compared: {names}{more} (verify reads no write times and no TTLs)"]
