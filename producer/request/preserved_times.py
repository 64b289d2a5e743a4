"""`--preserve-timestamp` and `--preserve-ttl`: every column with its own, unloaded and loaded."""

from __future__ import annotations

from dataclasses import replace

from producer.options.preserving import Preserving
from ringhaul.mapping.language import Entry, MappingText, Term
from ringhaul.records.wildcard import EVERY


def preserving(mapping: MappingText, options: Preserving) -> MappingText:
    """Return the mapping with the entries that the options add; without a mapping, all columns are
    matched by name."""
    given = {"writetime": options.preserve_timestamp, "ttl": options.preserve_ttl}
    wanted = {
        function: Entry(Term(f"{function}({EVERY})")) for function in given if given[function]
    }
    if not wanted:
        return mapping
    new = {name: entry for name, entry in wanted.items() if entry not in mapping.entries}
    return replace(
        mapping,
        entries=(*mapping.entries, *new.values()),
        rest=mapping.rest or not mapping,
        preserved=tuple(new),
    )
