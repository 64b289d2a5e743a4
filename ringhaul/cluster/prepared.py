"""What servers tell of a prepared statement: its markers and the columns of its result. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ringhaul.cql.types import CqlType, UnknownType


class Marked(NamedTuple):
    """Names and types, in the order of the statement."""

    names: tuple[str, ...]
    types: tuple[CqlType, ...]


@dataclass(frozen=True, kw_only=True)
class PreparedColumn:
    """One marker of a prepared statement, or one column of its result."""

    keyspace: str
    table: str
    name: str
    type: CqlType | None
    unknown: str = ""  #: why `type` is None


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A prepared statement, as the server describes it."""

    markers: tuple[PreparedColumn, ...]
    result: tuple[PreparedColumn, ...] = ()

    @property
    def keyspace(self) -> str | None:
        """The statement's keyspace, as far as its markers or its result tell."""
        return next((column.keyspace for column in (*self.markers, *self.result)), None)


def marked(columns: Sequence[PreparedColumn]) -> Marked:
    """Return names and types of columns. Raises `UnknownType` for a type that is not known."""
    types = []
    for column in columns:
        if column.type is None:
            raise UnknownType(column.unknown)
        types.append(column.type)
    return Marked(tuple(column.name for column in columns), tuple(types))
