"""What the commands and options of DataStax Bulk Loader are in ringhaul. Pure.

The names, shortcuts and defaults are those of its settings reference, version 1.11.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

from producer.translate.codec_handlers import UNITS
from producer.translate.hocon import as_bool, as_list, as_text
from producer.translate.places import local_path, patterns
from producer.translate.queries import counted, qualified
from producer.translate.setting_names import ALIASES, SHORTCUTS
from producer.translate.settings import HANDLERS, PATTERNS, find_group
from producer.translate.translation import Draft, NotTranslatable, Translation, suggest

#: Python's `shlex` takes quadratic time in the length of a word: 50 ms for this one. The longest
#: command line of Windows.
LINE_CHARACTERS_MAX = 32_767

#: Settings that are on without a value.
_SWITCHES = frozenset(
    ("schema.preserveTimestamp", "schema.preserveTtl", "engine.dryRun", "connector.csv.header")
)
#: A long option with its value, which HOCON lets a colon part, too.
_WITH_VALUE = re.compile(r"(--[\w.-]+)\s*([=:])(.*)", re.DOTALL)
_OF_THE_SHELL = ("|", "||", "&&", "&", ";")
#: Options of exec with the same names as those of load.
_OF_EXEC = (
    "--params --nulls --rate --job-id --consistency --contact-points --port --local-dc --user "
    "--password"
)
#: Options of load that exec has for the values of its statement.
_OF_RECORDS = (
    "--format --no-header --delimiter --quote --escape --escape-style --null --null-quoted "
    "--empty --encoding --comment --mapping --skip-rows --max-rows --rows-per "
    "--allow-extra-fields "
    "--allow-missing-fields --trim --fill-empty --fill-quoted --accept --blob --json-layout "
    "--timestamp-format --date-format --time-format --epoch --epoch-unit --timezone --locale "
    "--true-words --false-words --overflow --rounding"
)
_COUNTED = {"ranges": "range", "hosts": "host"}
#: Formatters of Java that are not ISO 8601 with separators, and their patterns.
_FORMATTERS = {
    "BASIC_ISO_DATE": "yyyyMMdd",
    "RFC_1123_DATE_TIME": "[EEE, ]d MMM yyyy HH:mm[:ss] z",
}


def translate_bulk_loader(text: str) -> Translation:
    """Return the command that does what a command of Bulk Loader does.

    `text`: a command line, as a shell takes it. Defaults of Bulk Loader that change rows are stated
    in the command. Raises `NotTranslatable`.
    """
    words = split_line(text)
    if len(words) < 2 or words[1].startswith("-"):
        raise NotTranslatable("dsbulk: load, unload or count is missing")
    operation = words[1].lower()
    if operation not in ("load", "unload", "count"):
        raise NotTranslatable(f"dsbulk {operation}: only load, unload and count can be translated")
    draft = Draft(command=operation)
    settings = _Settings(read_settings(words[2:]))
    _translate(draft, settings)
    if re.search(r"\$[{\w]", text):
        draft.option = "$"
        draft.note("the shell fills in no variables within single quotes: change these to double")
    return draft.finish()


def split_line(text: str) -> list[str]:
    """Return the words of a command line. Raises `NotTranslatable`."""
    if len(text) > LINE_CHARACTERS_MAX:
        raise NotTranslatable(
            f"a command of {len(text):,} characters: at most {LINE_CHARACTERS_MAX:,} are read. "
            "Put long lists and statements in files"
        )
    try:
        return shlex.split(text.replace("\\\n", " "), comments=True)
    except ValueError as error:
        raise NotTranslatable(f"the shell could not read this: {error}") from None


def read_settings(words: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return setting -> (as it was written, value). Raises `NotTranslatable`."""
    found: dict[str, tuple[str, str]] = {}
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word in _OF_THE_SHELL or re.match(r"\d?[<>]", word):
            raise NotTranslatable(
                f"{word} belongs to the shell: give the command of dsbulk alone, and write the "
                "rest around the translated command"
            )
        if not word.startswith("-"):
            raise NotTranslatable(f"dsbulk: {word!r} is not an option")
        long = _WITH_VALUE.match(word)
        written, equals, value = long.groups() if long else word.partition("=")
        name = _full_name(written)
        if not equals:
            follows = words[at] if at < len(words) else "-"
            if name in _SWITCHES and follows.lower() not in ("true", "false"):
                value = "true"
            elif at < len(words):
                value, at = follows, at + 1
            else:
                raise NotTranslatable(f"dsbulk: {written} has no value")
        found[name] = (written, value)
    return found


def _full_name(written: str) -> str:
    if written.startswith("--"):
        name = written[2:].removeprefix("dsbulk.")
        if name.startswith(("driver.basic.", "driver.advanced.", "driver.profiles.")):
            name = f"datastax-java-{name}"  # a short form since version 1.4
        return ALIASES.get(name, name)
    name = SHORTCUTS.get(written[1:], "")
    if not name:
        near = suggest(written, [f"-{shortcut}" for shortcut in SHORTCUTS])
        raise NotTranslatable(f"dsbulk: it has no option {written}{near}")
    return name


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
    if draft.has("--single-file"):
        _name_folder(draft)
    if draft.values("--output") == ["-"] and draft.has("--json-layout"):
        draft.option = "-url"
        draft.lose("an array is not written to standard output: give --output FILE.json")
    if draft.command == "unload" and draft.has("--query"):
        _leave_rest_to_query(draft, settings.text("schema.keyspace"))
    if draft.command == "exec":
        _use_names_of_exec(draft)


def _leave_extra_fields(draft: Draft, settings: _Settings) -> None:
    """Drop an option that would take more than Bulk Loader does: where a file has a header, its
    setting is about fields that the header names, and it rejects a record with more."""
    draft.drop("--allow-extra-fields")
    for name, written, _ in settings.items():
        if name == "schema.allowExtraFields":
            draft.option = written
            draft.note("a record with more fields than the header is rejected, as in dsbulk")


def _name_folder(draft: Draft) -> None:
    """Keep the folder of an unload, where the one file would have its name instead."""
    place = next(iter(draft.values("--output")), "-")
    if place != "-" and not place.endswith("/") and not os.path.splitext(place)[1]:
        draft.add("--output", f"{place}/")


def _is_of_another(name: str) -> bool:
    """Return whether another operation has the setting: Bulk Loader ignores it then."""
    return any(name in handlers for handlers in HANDLERS.values())


def _leave_rest_to_query(draft: Draft, keyspace: str) -> None:
    """Drop what a SELECT says itself."""
    draft.drop("--table")
    draft.drop("--keyspace")
    (query,) = draft.values("--query")
    draft.add("--query", qualified(query, keyspace))
    for name, function in (("--preserve-timestamp", "writetime"), ("--preserve-ttl", "ttl")):
        if draft.has(name):
            draft.drop(name)
            draft.option = name.replace("--preserve-", "-")
            draft.lose(f"put {function}(COLUMN) into the SELECT for each column")


def _use_names_of_exec(draft: Draft) -> None:
    """Rename options: those about records have another name for the values of a statement."""
    for name in draft.names():
        if name in _OF_RECORDS.split():
            prefix = "--no-values-" if name.startswith("--no-") else "--values-"
            draft.rename(name, prefix + name.removeprefix("--no-").removeprefix("--"))
        elif name not in _OF_EXEC.split():
            draft.option = name
            draft.drop(name)
            if name == "--max-errors":
                draft.note("exec has no limit of rejects")
            elif name == "--strategy":
                draft.note("not needed: exec runs its statement once for each record")
            elif name in ("--keyspace", "--table"):
                if draft.operands[0].lstrip()[:5].upper() == "BEGIN":
                    draft.note("name the keyspace in each statement of the batch")
            else:
                draft.lose("exec does not have it: its statement says what is written")


def _set_places(draft: Draft, settings: _Settings) -> None:
    """Set the files that are read or written."""
    draft.option = "-url"
    place = local_path(settings.text("connector.*.url", "-"), draft)
    if draft.command == "unload":
        draft.add("--output", place)
    elif draft.command == "exec":
        draft.add("--params", place)
    elif not settings.has("connector.*.urlfile"):
        _set_sources(draft, place, settings)
    if settings.connector == "json":
        draft.add("--format", "jsonl")


def _set_sources(draft: Draft, place: str, settings: _Settings) -> None:
    """Set the files that a load reads: one, or those of a folder, which has no suffix."""
    name = place.rstrip("/").rpartition("/")[2]
    everywhere = as_bool(settings.text("connector.*.recursive", "false"))
    of_folder = everywhere or settings.has("connector.*.fileNamePattern")
    is_folder = of_folder or place.endswith("/") or name in (".", "..") or "." not in name
    if place == "-" or "://" in place or "*" in name or not is_folder:
        draft.operands.append(place)
        return
    suffix = PATTERNS.get(settings.text("connector.*.compression").lower(), "")
    wanted = settings.text("connector.*.fileNamePattern", f"**/*.{settings.connector}{suffix}")
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
    draft.option = "dsbulk"
    accept = "--values-accept" if draft.command == "exec" else "--accept"
    separator = accept.replace("accept", "thousands-sep")
    english = csv and settings.text("codec.locale", "en").startswith("en")
    numbers = f" So are numbers such as 1,234.5: {separator} ," if english else ""
    draft.note(
        f"1.0 or TRUE in an int, 1,2,3 as a list and the like are rejects: {accept} all.{numbers}"
    )


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
