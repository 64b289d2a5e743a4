"""Options that keep the write time and TTL of each column, of `load` and `unload`."""

from __future__ import annotations

from dataclasses import dataclass

from producer.options.groups import Group
from producer.options.kinds import FLAG
from producer.options.option import option


@dataclass(frozen=True, kw_only=True)
class Preserving:
    """Whether each column keeps its own write time and TTL."""

    preserve_timestamp: bool = option(
        "--preserve-timestamp",
        FLAG,
        help="Keep each column's write time, in a field named writetime(COLUMN).",
        group=Group.ROWS,
        commands=("load", "unload"),
    )
    preserve_ttl: bool = option(
        "--preserve-ttl",
        FLAG,
        help="Keep each column's TTL, in a field named ttl(COLUMN).",
        group=Group.ROWS,
        commands=("load", "unload"),
    )
