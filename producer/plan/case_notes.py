"""Say which fields fill columns whose names differ from theirs in case."""

from __future__ import annotations

from collections.abc import Sequence

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
