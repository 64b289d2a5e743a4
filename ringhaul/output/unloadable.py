"""Rows that an unload writes and that a load of its files cannot put back. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

IN_LIST = "an empty or null element in a list, which the server takes only as a literal of CQL"
TOO_HEAVY = (
    "more than 16 MiB, which a server takes only in several writes unless it is configured to"
)
TOO_LONG = "a record of more than 128 MiB, which a load rejects"


class Unloadable(NamedTuple):
    """Rows that cannot be loaded again, for one reason."""

    column: str  #: empty: the whole row
    reason: str
    rows: int
    key: str  #: of one of them, as `a = 1, b = 2`

    @property
    def told(self) -> str:
        """For people: what it is about, and one such row."""
        column = f"column {self.column}: " if self.column else ""
        return f"{column}{self.reason}; such as the row with {self.key}"

    def to_json(self) -> dict[str, Any]:
        return self._asdict() | {"column": self.column or None}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Unloadable:
        """Raises `KeyError` for what is no such thing."""
        found = {name: data[name] for name in cls._fields}
        return cls(**found | {"column": data["column"] or ""})


def join_unloadable(found: Iterable[Unloadable]) -> list[Unloadable]:
    """One for each column and reason, with the sum of the rows and a key of one of them."""
    joined: dict[tuple[str, str], Unloadable] = {}
    for one in found:
        before = joined.get((one.column, one.reason))
        rows = one.rows + (before.rows if before else 0)
        joined[one.column, one.reason] = (before or one)._replace(rows=rows)
    return list(joined.values())
