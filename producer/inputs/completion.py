"""A load before its files are found: options completed by lists of sources and by manifests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from producer.inputs.from_manifest import as_unloaded
from producer.inputs.urlfile import NO_PLACES, read_urlfile
from producer.notes import Note
from producer.options.load import LoadOptions


@dataclass(frozen=True)
class CompletedLoad:
    """A load before its files are found."""

    options: LoadOptions
    places: Mapping[str, str]  #: source -> its place in --urlfile
    notes: Sequence[Note]


def complete_load(options: LoadOptions) -> CompletedLoad:
    """Read --urlfile, and what manifests say about the text of their files.

    Raises as `read_urlfile` and `as_unloaded` do.
    """
    places = NO_PLACES
    if options.urlfile is not None:
        places = read_urlfile(options.urlfile, options.sources)
        options = replace(options, sources=(*options.sources, *places))
    options, notes = as_unloaded(options)
    return CompletedLoad(options, places, notes)
