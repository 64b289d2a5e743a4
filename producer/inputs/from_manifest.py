"""Load a folder that an unload wrote as it was written: its manifest has the CSV's dialect.

Options on the command line take precedence.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from producer.notes import Note, warnings
from producer.options.groups import Group
from producer.options.kinds import FLAG
from producer.options.load import LoadOptions
from producer.options.option import Option, options_of
from producer.text import count_text
from ringhaul.cql.text_format import TextFormat
from ringhaul.errors import OutputUnavailable, OutputUnusable, UsageError
from ringhaul.formats.suffixes import format_of, suffixes_of
from ringhaul.formats.write import OutputFormat
from ringhaul.output.manifest import VERSION, Manifest, read_manifest
from ringhaul.sources.find import named
from ringhaul.storage.access import WEB_SCHEMES, is_url, mask_url, scheme_of
from ringhaul.storage.hidden import MANIFESTS
from ringhaul.storage.remote import read_small


def _as_said(option: Option) -> tuple[bool, bool, bool]:
    """Return the key that sorts options for a message: characters, then switches, then values."""
    return option.group is Group.VALUES, option.kind is FLAG, option.group is Group.ROWS


#: How messages put the values of the options that a manifest knows.
_SAID = {one.name: one.said for one in sorted(options_of(LoadOptions), key=_as_said) if one.said}


def as_unloaded(options: LoadOptions) -> tuple[LoadOptions, list[Note]]:
    """Return the options completed by what the sources' manifests say about their text, and notes
    about that.

    Options that the user gave stay as they are. Raises `UsageError` if sources of one load are
    written in different ways, and as `read_small` does.
    """
    found = _found(options.sources)
    lacks = _lacking(found)
    known = {
        source: written
        for source, written in found.items()
        if written is not None and (_has_options(written.format) or written.partition_by)
    }
    if not known:
        return options, lacks
    wanted = {
        source: _partitioned(written, _changes(written, options))
        for source, written in known.items()
    }
    first, changes = next(iter(wanted.items()))
    others = [source for source, other in wanted.items() if other != changes]
    others += [
        source
        for source, written in found.items()
        if written is None and _may_be_csv(source, options)
    ]
    if others and any(_notes(changes) for changes in wanted.values()):
        odd = first if _notes(changes) else others[0]
        other = others[0] if odd == first else first
        raise UsageError(
            f"{mask_url(odd)} is {_form(known.get(odd))} with {', '.join(_notes(wanted[odd]))}, "
            f"says its manifest, and {mask_url(other)} is not: take them one after the other, or "
            "give the options"
        )
    notes = _notes(changes)
    said = f"{mask_url(first)}: {_form(known[first])} with {', '.join(notes)}, as its manifest says"
    return replace(options, **changes), [Note(said), *lacks] if notes else lacks


def _has_options(fmt: OutputFormat) -> bool:
    """Whether options are needed to read files of a format, or may be."""
    spelled = (fmt.values, fmt.json_layout, fmt.encoding) != (None, None, None)
    return fmt.kind == "csv" or (fmt.kind == "jsonl" and spelled)


def _form(written: Manifest | None) -> str:
    kinds = {"jsonl": "JSON", "parquet": "Parquet", "csv": "CSV"}
    return kinds["csv" if written is None else written.format.kind]


def _lacking(found: Mapping[str, Manifest | None]) -> list[Note]:
    """Return warnings about unloads that left out what could not be read."""
    return warnings(
        f"warning: {mask_url(source)} lacks {count_text(len(written.missing), 'token range')} of "
        f"{written.keyspace}.{written.table} that no replica could read, says its manifest: the "
        "first are " + ", ".join(one.place for one in written.missing[:3])
        for source, written in found.items()
        if written is not None and written.missing
    )


def _found(sources: Iterable[str]) -> dict[str, Manifest | None]:
    """Return the sources, with globs replaced by what they match, each with its manifest if it has
    one."""
    found: dict[str, Manifest | None] = {}
    for source in sources:
        try:
            files, places = named(source)
        except UsageError:
            continue  # reported when the sources are read, with its place in a list
        found |= dict.fromkeys(files)
        found |= {place: _written(place) for place in places}
    return found


def _written(source: str) -> Manifest | None:
    """Return the manifest of a folder that ringhaul has written.

    Raises `SourceUnavailable` and `SourceChanged`: without the manifest, the rows could be misread.
    """
    if not _may_have_manifest(source):
        return None
    try:
        manifest = _read_web(source) if _is_web(source) else read_manifest(source)
    except (UsageError, OutputUnusable, OutputUnavailable):
        # not a folder: reported when the sources are read
        return None
    return manifest


def _may_have_manifest(source: str) -> bool:
    if not is_url(source):
        return any(Path(source, name).is_file() for name in MANIFESTS)
    if _is_web(source):
        return source.endswith("/")
    # Looking below each object of a list would double the requests.
    return not source.lower().endswith(suffixes_of("auto"))


def _is_web(source: str) -> bool:
    return is_url(source) and scheme_of(source) in WEB_SCHEMES


def _read_web(folder: str) -> Manifest | None:
    """Return the manifest in a web folder, which `read_manifest` cannot read; None: it holds no
    manifest of ours. `folder` ends with a slash. Raises as `read_small` does."""
    try:
        found = (content for name in MANIFESTS if (content := read_small(folder + name)))
        fields = json.loads(next(found, b"null"))
        return Manifest.from_json(fields) if fields["version"] == VERSION else None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _changes(written: Manifest, options: LoadOptions) -> dict[str, Any]:
    """Return the options that would load what was written."""
    fmt = written.format
    if fmt.kind == "parquet":
        return {}
    if fmt.kind == "jsonl":
        layout = "lines" if fmt.json_layout is None else "documents"
        written_so = {"json_layout": layout, "encoding": fmt.encoding or "utf-8"}
        return _unlike(options, {**written_so, **_values(fmt.values)})
    dialect = fmt.dialect
    wanted: dict[str, Any] = {
        **{name: getattr(dialect, name) for name in _SAID if hasattr(dialect, name)},
        "quote": dialect.quote or "",
        "escape": dialect.escape or "",
        "line_end": "any",
        "header": fmt.header,
        "allow_nul": True,
        **_values(fmt.values),
    }
    if not fmt.header:
        wanted["columns"] = ",".join(name for name, _ in written.columns)
    return _unlike(options, wanted)


def _partitioned(written: Manifest, changes: dict[str, Any]) -> dict[str, Any]:
    return changes | ({"hive_partitioning": True} if written.partition_by else {})


def _values(fmt: TextFormat | None) -> dict[str, Any]:
    """Return the options that read values as they are spelled."""
    if fmt is None:
        return {}
    fields = fmt.to_json()
    words = {name: ",".join(fields[name]) for name in ("true_words", "false_words")}
    formats = {name: tuple(fields[name]) for name in fields if name.endswith("_formats")}
    plain = (
        *("epoch_unit", "epoch", "timezone", "clock_changes", "locale", "blob"),
        *("decimal_sep", "thousands_sep"),
    )
    return {**{name: fields[name] for name in plain}, **words, **formats}


def _unlike(options: LoadOptions, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return the wanted options that were not given and have another value."""
    text = TextFormat()
    usual = replace(
        options,
        null_strings=options.null_strings or ("",),
        true_words=options.true_words or ",".join(text.true_words),
        false_words=options.false_words or ",".join(text.false_words),
    )
    return {
        name: value
        for name, value in wanted.items()
        if name not in options.given and value != getattr(usual, name)
    }


def _notes(changes: Mapping[str, Any]) -> list[str]:
    return [words.format(changes[name]) for name, words in _SAID.items() if name in changes]


def _may_be_csv(source: str, options: LoadOptions) -> bool:
    return format_of(source, options.file_format) == "csv"
