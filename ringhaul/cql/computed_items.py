"""What a server computes for each row of a SELECT. Pure."""

from __future__ import annotations

from typing import NamedTuple

from ringhaul.cql.types import CqlType


class Computed(NamedTuple):
    """An item of a SELECT list that only the server understands: `toJson(at)`, `m['k']`."""

    cql: str  #: as written
    name: str  #: that the server gives to its column
    type: CqlType
