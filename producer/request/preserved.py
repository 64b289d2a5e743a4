"""`--preserve-timestamp` and `--preserve-ttl`: every column with its own, unloaded and loaded."""

from __future__ import annotations

from dataclasses import replace

from producer.request.options import Preserving
from ringhaul.records.mapping_text import EVERY, Entry, MappingText, Term


def preserving(mapping: MappingText, options: Preserving) -> MappingText:
    """Return the mapping with the entries that the options add; without a mapping, all columns are
    matched by name."""
    wanted = []
    if options.preserve_timestamp:
        wanted.append(Entry(Term(f"writetime({EVERY})")))
    if options.preserve_ttl:
        wanted.append(Entry(Term(f"ttl({EVERY})")))
    if not wanted:
        return mapping
    new = tuple(entry for entry in wanted if entry not in mapping.entries)
    return replace(mapping, entries=mapping.entries + new, rest=mapping.rest or not mapping)
