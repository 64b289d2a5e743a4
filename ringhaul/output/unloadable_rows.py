"""Rows that an unload writes but that a load of its files cannot restore. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ringhaul.option_names import job_option

IN_LIST = "an empty or null element in a list, which the server takes only as a literal of CQL"
TOO_HEAVY = (
    "more than 16 MiB, which a server takes only in several writes unless it is configured to"
)
#: A manifest says so to a load; a file without one cannot.
TOO_LONG = "a record of more than 128 MiB, which a load rejects"


#: In `Unloadable.text`, before the key of a row.
SUCH_AS = "; such as the row with "


def nul_reason() -> str:
    """Return why a value with a NUL byte cannot be loaded again."""
    return f"a NUL byte, which a load of this file takes only with {job_option('allow-nul')}"


class Unloadable(NamedTuple):
    """Rows that cannot be loaded again, for one reason."""

    column: str  #: empty: the whole row
    reason: str
    rows: int
    key: str  #: primary key of one of these rows, as `a = 1, b = 2`

    @property
    def text(self) -> str:
        """The column, the reason, and one such row, for people."""
        column = f"column {self.column}: " if self.column else ""
        return f"{column}{self.reason}{SUCH_AS}{self.key}"

    def to_json(self) -> dict[str, Any]:
        return self._asdict() | {"column": self.column or None}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Unloadable:
        """Read `to_json`'s dict. Raises `KeyError` for any other."""
        found = {name: data[name] for name in cls._fields}
        return cls(**found | {"column": data["column"] or ""})


def join_unloadable(found: Iterable[Unloadable]) -> list[Unloadable]:
    """Return a record for each column and reason, with the sum of rows and the first key."""
    joined: dict[tuple[str, str], Unloadable] = {}
    for one in found:
        before = joined.get((one.column, one.reason))
        rows = one.rows + (before.rows if before else 0)
        joined[one.column, one.reason] = (before or one)._replace(rows=rows)
    return list(joined.values())
