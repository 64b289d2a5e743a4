"""Read `--urlfile`: a list of sources, one per line, as in DataStax Bulk Loader.

A URL in it may hold a secret, so errors name the line, and show URLs through `mask_url`.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from ringhaul.errors import RinghaulError, UsageError
from ringhaul.formats.dialect import CsvDialect
from ringhaul.sources.find import find_sources
from ringhaul.sources.source import SourceFile
from ringhaul.storage.access import is_url, mask_url
from ringhaul.storage.file_version import read_small
from ringhaul.storage.streams import is_standard_input, is_stream

#: Enough for about 200,000 names. A larger file is data given by mistake.
LIST_BYTES_MAX = 16 << 20
#: The places of sources that come from no list.
NO_PLACES: Mapping[str, str] = MappingProxyType({})


def read_urlfile(path: str, sources: Sequence[str]) -> dict[str, str]:
    """Return the sources in a list that are not in `sources`, in order, with the place of each for
    messages.

    `path`: `-` is standard input. Raises `UsageError` if the file is not a list of sources, or is
    empty.
    """
    if any(map(is_stream, sources)):
        raise UsageError(
            "--urlfile: - (standard input) cannot be given together with other sources"
        )
    name = "standard input" if is_standard_input(path) else path
    places: dict[str, str] = {}
    known = set(sources)
    empty = True
    for number, line in enumerate(io.StringIO(_text(path, name), newline=None), start=1):
        source, place = line.strip(), f"{name}, line {number}"
        if not source or source.startswith("#"):
            continue
        if is_stream(source):
            what = "standard input" if is_standard_input(source) else "a pipe"
            raise UsageError(
                f"{place}: {source} ({what}) is not allowed in a list: give it as SOURCE"
            )
        empty = False
        if source not in known:
            places.setdefault(source, place)
    if empty:
        raise UsageError(f"--urlfile: {name} names no source: write one on each line")
    return places


def _text(path: str, name: str) -> str:
    if is_url(path) and not is_stream(path):
        raise UsageError(
            f"--urlfile {mask_url(path)}: a list must be a file on this host, or - for standard "
            "input"
        )
    if is_standard_input(path) and sys.stdin is None:
        raise UsageError(
            f"--urlfile {path}: standard input is closed; pipe the list into the command"
        )
    try:
        if is_standard_input(path):
            data = sys.stdin.buffer.read(LIST_BYTES_MAX + 1)
        else:
            data = read_small(path, LIST_BYTES_MAX)
    except OSError as error:
        raise UsageError(f"--urlfile {path}: {error.strerror or error}") from error
    if len(data) > LIST_BYTES_MAX:
        raise UsageError(
            f"--urlfile: {name} has more than {LIST_BYTES_MAX >> 20} MiB: expected a list of "
            "sources, one on each line; give a file to load as SOURCE"
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"--urlfile: {name} is not UTF-8 text (byte {error.start})") from error
    if "\0" in text:
        raise UsageError(f"--urlfile: {name} is not UTF-8 text (byte {data.index(0)})")
    return text


def find_placed(
    args: Sequence[str], places: Mapping[str, str], dialect: CsvDialect, file_format: str
) -> list[SourceFile]:
    """Find sources as `find_sources` does; errors about a source of a list start with its place."""
    found: dict[str, SourceFile] = {}
    for arg in args:
        try:
            files = find_sources([arg], dialect, file_format)
        except RinghaulError as error:
            if arg in places:
                error.args = (f"{places[arg]}: {error}", *error.args[1:])
            raise
        for file in files:
            found.setdefault(file.path, file)
    return list(found.values())
