"""A load before its files are found: options completed by lists of sources and by manifests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from config.settings import Loaded
from producer.inputs.from_manifest import as_unloaded
from producer.inputs.urlfile import NO_PLACES, read_urlfile
from producer.options.load import LoadOptions
from producer.report.reporter import Shown
from producer.request.load import LoadRequest, load_request


@dataclass(frozen=True)
class GivenLoad:
    """A load before its files are found."""

    options: LoadOptions
    request: LoadRequest
    places: Mapping[str, str]  #: source -> its place in --urlfile


def read_given(options: LoadOptions, loaded: Loaded, shown: Shown) -> GivenLoad:
    """Read --urlfile, and what manifests say about the text of their files; show that.

    Raises as `read_urlfile`, `as_unloaded` and `load_request` do.
    """
    places = NO_PLACES
    if options.urlfile is not None:
        places = read_urlfile(options.urlfile, options.sources)
        options = replace(options, sources=(*options.sources, *places))
    options, notes = as_unloaded(options)
    for line in notes:
        (shown.warn if line.startswith("warning") else shown.say)(line)
    return GivenLoad(options, load_request(options, loaded), places)
