"""What the commands and options of DataStax Bulk Loader are in ringhaul.

The names, shortcuts and defaults come from its settings reference, version 1.11.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping

from producer.translate.bulk_loader_line import (
    OpenFile,
    no_file,
    read_settings,
    split_line,
    with_file,
)
from producer.translate.codec_handlers import UNITS
from producer.translate.exec_names import use_names_of_exec
from producer.translate.hocon import as_bool, as_list, as_text
from producer.translate.places import local_path, patterns
from producer.translate.queries import counted, qualified, renamed
from producer.translate.settings import HANDLERS, ONLY_CSV, PATTERNS, find_group
from producer.translate.translation import Draft, NotTranslatable, Translation, suggest

_COUNTED = {"ranges": "range", "hosts": "host"}
#: Formatters of Java that are not ISO 8601 with separators, and their patterns.
_FORMATTERS = {
    "BASIC_ISO_DATE": "yyyyMMdd",
    "RFC_1123_DATE_TIME": "[EEE, ]d MMM yyyy HH:mm[:ss] z",
}


def translate_bulk_loader(text: str, open_file: OpenFile = no_file) -> Translation:
    """Return the command that does what a command of Bulk Loader does.

    `text`: a command line, as a shell takes it. Defaults of Bulk Loader that change rows are stated
    in the command. `open_file`: opens the file with settings that `text` may name. Raises
    `NotTranslatable`.
    """
    words = split_line(text)
    if len(words) < 2 or words[1].startswith("-"):
        raise NotTranslatable("dsbulk: load, unload or count is missing")
    operation = words[1].lower()
    if operation not in ("load", "unload", "count"):
        raise NotTranslatable(f"dsbulk {operation}: only load, unload and count can be translated")
    draft = Draft(command=operation)
    settings = _Settings(with_file(read_settings(words[2:]), open_file))
    _translate(draft, settings)
    if re.search(r"\$[{\w]", text):
        draft.option = "$"
        draft.note("the shell fills in no variables within single quotes: change these to double")
    return draft.finish()


class _Settings:
    """The settings that were given, by their full names."""

    def __init__(self, given: Mapping[str, tuple[str, str]]) -> None:
        self.connector = as_text(given.get("connector.name", ("", "csv"))[1]).lower()
        if self.connector not in ("csv", "json"):
            raise NotTranslatable(f"dsbulk: connector {self.connector!r} is neither csv nor json")
        self._given: dict[str, tuple[str, str]] = {}
        other = "json" if self.connector == "csv" else "csv"
        for name, given_value in given.items():
            # Settings of the connector that is not in use change nothing.
            if not name.startswith(f"connector.{other}."):
                self._given[name.replace("connector.*.", f"connector.{self.connector}.")] = (
                    given_value
                )

    def text(self, name: str, default: str = "") -> str:
        """Return a value without its quotes. `*` in the name: the connector."""
        name = name.replace("*", self.connector)
        return as_text(self._given[name][1]) if name in self._given else default

    def has(self, name: str) -> bool:
        return name.replace("*", self.connector) in self._given

    def items(self) -> Iterator[tuple[str, str, str]]:
        """Yield each setting, `*` for the connector; how it was written; its value."""
        for name, (written, value) in self._given.items():
            yield name.replace(f"connector.{self.connector}.", "connector.*."), written, value


def _translate(draft: Draft, settings: _Settings) -> None:
    operation, reads_files = draft.command, draft.command == "load"
    if reads_files and settings.has("schema.query"):
        draft.command = "exec"
        draft.operands.append(
            qualified(settings.text("schema.query"), settings.text("schema.keyspace"))
        )
    if draft.command != "count":
        _set_places(draft, settings)
        _set_defaults(draft, settings)
    handlers = HANDLERS["load" if reads_files else draft.command]
    for name, written, value in settings.items():
        draft.option = written
        handler = handlers.get(name) or find_group(name)
        if settings.connector == "json" and name in ONLY_CSV:
            raise NotTranslatable(f"dsbulk: it has no setting {written}: JSON has no such thing")
        if handler is None and _is_of_another(name):
            draft.note(f"dsbulk {operation} does not use it")
            continue
        if handler is None:
            names = [f"--{known.replace('*', settings.connector)}" for known in handlers]
            raise NotTranslatable(f"dsbulk: it has no setting {written}{suggest(written, names)}")
        handler(value, draft)
    if settings.connector == "csv" and not draft.has("--no-header"):
        _leave_extra_fields(draft, settings)
    if draft.command == "count":
        _set_counts(draft, settings)
    else:
        _set_times(draft, settings)
    draft.set_words()
    if draft.command == "unload" and settings.connector == "json":
        _set_json_layout(draft, settings)
    if draft.command == "unload" and draft.has("--dry-run") and draft.has("--rate"):
        draft.option = "-dryRun"
        draft.drop("--rate")
        draft.note("it reads nothing, so there is no rate")
    if draft.has("--single-file"):
        _name_folder(draft)
    if draft.values("--output") == ["-"] and draft.has("--json-layout"):
        draft.option = "-url"
        draft.lose("an array is not written to standard output: give --output FILE.json")
    if draft.command == "unload" and draft.has("--query"):
        _leave_rest_to_query(draft, settings.text("schema.keyspace"))
    if draft.command == "exec":
        use_names_of_exec(draft)


def _leave_extra_fields(draft: Draft, settings: _Settings) -> None:
    """Drop an option that would take more than Bulk Loader does: where a file has a header, its
    setting is about fields that the header names, and it rejects a record with more."""
    draft.drop("--allow-extra-fields")
    for name, written, _ in settings.items():
        if name == "schema.allowExtraFields":
            draft.option = written
            draft.note("a record with more fields than the header is rejected, as in dsbulk")


def _name_folder(draft: Draft) -> None:
    """Keep the output of an unload a folder; without a slash its name would be a file's."""
    place = next(iter(draft.values("--output")), "-")
    if place != "-" and not place.endswith("/") and not os.path.splitext(place)[1]:
        draft.add("--output", f"{place}/")


def _is_of_another(name: str) -> bool:
    """Return whether another operation has the setting: Bulk Loader ignores it then."""
    return any(name in handlers for handlers in HANDLERS.values())


def _set_json_layout(draft: Draft, settings: _Settings) -> None:
    """Translate how the objects of a file are written."""
    pretty = as_bool(settings.text("connector.json.prettyPrint", "false"))
    if settings.text("connector.json.mode").upper() == "SINGLE_DOCUMENT":
        draft.add("--json-layout", "pretty" if pretty else "array")
    elif pretty:
        draft.option = "prettyPrint"
        draft.note("each object is on one line; --json-layout pretty writes one array")


def _leave_rest_to_query(draft: Draft, keyspace: str) -> None:
    """Drop what a SELECT says itself, and put into it what it has to say."""
    draft.drop("--table")
    draft.drop("--keyspace")
    (query,) = draft.values("--query")
    query = qualified(query, keyspace)
    for mapping in draft.values("--mapping"):
        draft.drop("--mapping")
        named = renamed(query, mapping, numbered=draft.has("--no-header"))
        if named is None:
            draft.option = "-m"
            draft.lose("give each column its name in the SELECT: SELECT column AS field")
        query = named or query
    draft.add("--query", query)
    for name, function in (("--preserve-timestamp", "writetime"), ("--preserve-ttl", "ttl")):
        if draft.has(name):
            draft.drop(name)
            draft.option = name.replace("--preserve-", "-")
            draft.lose(f"put {function}(COLUMN) into the SELECT for each column")


def _set_places(draft: Draft, settings: _Settings) -> None:
    """Set the files that are read or written."""
    draft.option = "-url"
    place = local_path(settings.text("connector.*.url", "-"), draft)
    if draft.command == "unload":
        draft.add("--output", place)
    elif draft.command == "exec":
        draft.add("--params", place)
    elif not settings.text("connector.*.urlfile"):
        _set_sources(draft, place, settings)
    if settings.connector == "json":
        draft.add("--format", "jsonl")


def _set_sources(draft: Draft, place: str, settings: _Settings) -> None:
    """Set the files that a load reads: a file, or all files of a folder, which has no suffix."""
    name = place.rstrip("/").rpartition("/")[2]
    everywhere = as_bool(settings.text("connector.*.recursive", "false"))
    suffix = PATTERNS.get(settings.text("connector.*.compression").lower(), "")
    usual = f"**/*.{settings.connector}{suffix}"
    wanted = settings.text("connector.*.fileNamePattern", usual)
    of_folder = everywhere or wanted != usual
    is_folder = of_folder or place.endswith("/") or name in (".", "..") or "." not in name
    if place == "-" or "://" in place or "*" in name or not is_folder:
        draft.operands.append(place)
        return
    draft.operands += patterns(place, wanted, everywhere=everywhere)
    if not (of_folder or place.endswith("/") or name in (".", "..")):
        draft.note(f"taken for a folder; if it is a file, give {place} in place of the pattern")


def _set_defaults(draft: Draft, settings: _Settings) -> None:
    """State what Bulk Loader does by default, where it changes rows."""
    csv = settings.connector == "csv"
    if csv and settings.text("connector.csv.quote") != "\0":
        escape = settings.text("connector.csv.escape", "\\")
        if escape not in ("\0", settings.text("connector.csv.quote", '"')):
            draft.add("--escape", escape)
            draft.add("--escape-style", "quoted")
    if draft.command == "unload":
        draft.add("--blob", "base64")
        if not csv and not settings.has("connector.*.compression"):
            # Scripts, and the pattern of a load, expect this suffix; here it is .jsonl.
            draft.add("--file-name-format", "output-%06d.json")
        if csv and not settings.has("codec.booleanStrings"):
            draft.true_words, draft.false_words = ["1"], ["0"]
        return
    if not csv and not settings.has("connector.json.mode"):
        draft.add("--json-layout", "documents")
    if not settings.has("schema.allowExtraFields"):
        draft.add("--allow-extra-fields")
    draft.add("--blob", "any")
    draft.add("--accept", "all")
    if csv and settings.text("codec.locale", "en").lower().startswith("en"):
        draft.add("--thousands-sep", ",")


def _set_counts(draft: Draft, settings: _Settings) -> None:
    """Translate what is counted: one of several kinds, perhaps of a SELECT."""
    modes = [mode.lower() for mode in as_list(settings.text("stats.modes"))]
    draft.option = "-stats"
    by = next((name for mode, name in _COUNTED.items() if mode in modes), "")
    if by:
        draft.add("--by", by)
    elif "partitions" in modes:
        draft.add("--top", settings.text("stats.numPartitions", "10"))
    if len(modes) > 1 or "all" in modes:
        draft.note("one command answers one of them: run it again with --by or --top N")
    query = settings.text("schema.query")
    if not query:
        return
    draft.option = "-query"
    found = counted(qualified(query, settings.text("schema.keyspace")))
    if found is None:
        raise NotTranslatable(
            "dsbulk: this SELECT cannot be counted: `ringhaul query` answers a SELECT count(*)"
        )
    table, where = found
    draft.drop("--keyspace")
    draft.add("--table", table)
    if where:
        draft.add("--where", where)


def _set_times(draft: Draft, settings: _Settings) -> None:
    """Translate patterns of dates and times, which may be a unit."""
    unit = UNITS.get(settings.text("codec.unit", "MILLISECONDS").upper(), "ms")
    for setting, name in (
        ("codec.date", "--date-format"),
        ("codec.time", "--time-format"),
        ("codec.timestamp", "--timestamp-format"),
    ):
        pattern = settings.text(setting)
        if pattern == "UNITS_SINCE_EPOCH":
            draft.add(name, unit)
        elif pattern in _FORMATTERS:
            draft.add(name, _FORMATTERS[pattern])
        elif pattern and not pattern.startswith(("ISO_", "CQL_")):
            draft.add(name, pattern)
