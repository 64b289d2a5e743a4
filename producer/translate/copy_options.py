"""What COPY's statements and options are in ringhaul. Pure.

`HELP COPY` in cqlsh of Cassandra 3.11 to 5.0 lists the options and their defaults.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence

from producer.translate.copy_statement import CopyStatement
from producer.translate.translation import Draft, Need, NotTranslatable, Translation, suggest
from ringhaul.formats.suffixes import format_of, suffixes_of

Handler = Callable[[str, Draft], None]

#: Options whose empty value is the same as none.
_EMPTY_IS_NONE = frozenset({"SKIPCOLS", "CONFIGFILE", "BEGINTOKEN", "ENDTOKEN", "DECIMALSEP"})
#: How COPY TO writes moments by default.
_MOMENTS = "yyyy-MM-dd HH:mm:ss.SSSxx"


def translate_copy(statement: CopyStatement, draft: Draft | None = None) -> Translation:
    """Return the command that does what a COPY statement does.

    `draft`: what else the command has, such as the connection that cqlsh was given. Defaults of
    COPY that change rows are stated in the command. Raises `NotTranslatable` for an option that
    COPY does not have.
    """
    draft = draft or Draft()
    reads = statement.reads
    draft.command = "load" if reads else "unload"
    draft.option = "COPY"
    if statement.keyspace:
        draft.drop("--keyspace")
        draft.add("--table", f"{statement.keyspace}.{statement.table}")
    else:
        draft.add("--table", statement.table)
        if not draft.has("--keyspace"):
            draft.lose("it names no keyspace: add --keyspace")
    files = [_home(name, draft) for name in statement.files]
    if reads:
        draft.operands += files or ["-"]
    else:
        draft.add("--output", *(files or ["-"]))
    if statement.columns:
        draft.add("--columns", ",".join(statement.columns))
        commas = [name for name in statement.columns if "," in name]
        if commas:
            draft.lose(f"--columns cannot name {commas[0]!r}, which has a comma")
    given = dict(statement.options)
    _set_defaults(draft, given, reads)
    apply_options(statement.options, draft, reads=reads)
    if reads:
        _set_nulls(draft, given)
    _name_format(draft, files, reads)
    if draft.has("--skip-columns") and draft.has("--no-header") and not statement.columns:
        draft.option = "SKIPCOLS"
        draft.lose(
            "a file with these fields needs a list of all its columns: add --columns, or "
            "translate with --check",
            Need.COLUMNS,
        )
    skipped, most = given.get("SKIPROWS", ""), given.get("MAXROWS", "")
    if draft.has("--max-rows") and skipped.isdecimal() and most.isdecimal():
        # COPY also counts the rows that it skips.
        draft.add("--max-rows", str(max(int(most) - int(skipped), 0)))
    return draft.finish()


def apply_options(options: Iterable[tuple[str, str]], draft: Draft, *, reads: bool) -> None:
    """Set what options of COPY FROM, or of COPY TO, are in ringhaul; `options`: NAME, value.

    Raises `NotTranslatable` for a name that COPY does not have.
    """
    direction = "FROM" if reads else "TO"
    for name, value in options:
        draft.option = name
        handler = COPY_OPTIONS[direction].get(name)
        if handler is None:
            near = suggest(name, COPY_OPTIONS[direction])
            raise NotTranslatable(f"COPY {direction} has no option {name}{near}")
        if value or name not in _EMPTY_IS_NONE:
            handler(value, draft)


def _set_defaults(draft: Draft, given: Mapping[str, str], reads: bool) -> None:
    if "HEADER" not in given:
        draft.add("--no-header")
    elif _is_true(given["HEADER"]) and reads and not draft.has("--columns"):
        draft.option = "HEADER"
        draft.differ(
            "ringhaul matches fields by the names in the header; COPY by their order, as "
            "--columns does",
            Need.COLUMNS,
        )
    if "ESCAPE" not in given:
        draft.add("--escape", "\\")
    draft.option = "COPY"
    if reads:
        draft.add("--null-quoted")
        draft.add("--nulls", "tombstone")
        draft.note(
            "--nulls tombstone deletes what a record lacks, as COPY does: without it such columns "
            "keep their values, and no tombstones are written",
            Need.NULLS,
        )
        return
    # What COPY FROM and scripts read: it takes no time of day behind a T
    if "DATETIMEFORMAT" not in given:
        draft.add("--timestamp-format", _MOMENTS)
    if "BOOLSTYLE" not in given:
        draft.true_words, draft.false_words = ["True"], ["False"]
        draft.set_words()
    draft.differ(
        "collections, tuples and user types are JSON, which COPY FROM does not read", Need.NESTED
    )


def _set_nulls(draft: Draft, given: Mapping[str, str]) -> None:
    """Name a text for null also as it is with escapes: COPY compares what they stand for."""
    text, escape = given.get("NULL", ""), given.get("ESCAPE", "\\")
    if escape and escape in text and escape != given.get("QUOTE", '"'):
        draft.repeat("--null", text.replace(escape, escape * 2))


def _name_format(draft: Draft, files: Sequence[str], reads: bool) -> None:
    """Say that files are CSV, and an unload one file, where their names would say otherwise."""
    others = [name for name in files if format_of(name) != "csv"]
    draft.option = "COPY"
    if others and reads:
        draft.add("--format", "csv")
    elif others:
        draft.lose(f"{others[0]} would not be CSV: give it a name such as {others[0]}.csv")
        return
    plain = files and os.path.splitext(files[0])[1].lower() not in suffixes_of("csv")
    if plain and not (reads or draft.has("--max-rows-per-file")):
        draft.add("--single-file")


def _home(name: str, draft: Draft) -> str:
    """Return a path without `~`, which a shell leaves alone within quotes."""
    path = os.path.expanduser(name)
    if path != name:
        draft.note(f"~ is the home of the present user: {path}")
    return path


def _is_true(value: str) -> bool:
    """Whether COPY takes a value of HEADER for yes: it knows no other word."""
    return value.lower() == "true"


def _option(name: str) -> Handler:
    """Set the option to the same value."""
    return lambda value, draft: draft.add(name, value)


def _note(text: str) -> Handler:
    """Only add a note: nothing is lost without the option."""
    return lambda _, draft: draft.note(text)


def _lose(text: str) -> Handler:
    return lambda _, draft: draft.lose(text)


def _header(value: str, draft: Draft) -> None:
    draft.drop("--no-header")
    if not _is_true(value):
        draft.add("--no-header")
        if value.lower() != "false":
            draft.note(f"COPY takes '{value}' for false: for a header it wants true")


def _words(value: str, draft: Draft) -> None:
    words = [word.strip() for word in value.split(",")]
    if len(words) != 2 or not all(words) or words[0] == words[1]:
        raise NotTranslatable(
            f"BOOLSTYLE = '{value}': two words with a comma between that differ are missing"
        )
    draft.true_words, draft.false_words = words[:1], words[1:]
    draft.set_words()


def _separator(name: str, usual: str) -> Handler:
    def handle(value: str, draft: Draft) -> None:
        draft.add(name, value)
        if value != usual:
            draft.differ(
                "numbers in collections, tuples and user types have none; COPY's have", Need.NESTED
            )

    return handle


def _unlimited(name: str) -> Handler:
    """Set a limit; a negative number means no limit, which is the default here."""

    def handle(value: str, draft: Draft) -> None:
        draft.drop(name)
        if not value.startswith("-"):
            draft.add(name, value)

    return handle


def _config_file(value: str, draft: Draft) -> None:
    draft.add("--cqlshrc", value)
    draft.lose(
        "its options yield to those of this command: leave out what it says otherwise, such as "
        "--no-header"
    )


def _skip_columns(value: str, draft: Draft) -> None:
    draft.add("--skip-columns", ",".join(name.strip() for name in value.split(",")))


def _errors(value: str, draft: Draft) -> None:
    draft.add("--max-errors", value)
    draft.note("one limit for records that cannot be read and for those that cannot be written")


def _tokens(sign: str) -> Handler:
    def handle(value: str, draft: Draft) -> None:
        draft.lose(
            f'add --where "token(PARTITION KEY) {sign} {value}", or translate with --check',
            Need.TOKENS,
            f"{sign} {value}",
        )

    return handle


_BOTH: Mapping[str, Handler] = {
    "DELIMITER": _option("--delimiter"),
    "QUOTE": _option("--quote"),
    "NULL": _option("--null"),
    "HEADER": _header,
    "DATETIMEFORMAT": _option("--timestamp-format"),
    "DECIMALSEP": _separator("--decimal-sep", "."),
    "THOUSANDSSEP": _separator("--thousands-sep", ""),
    "BOOLSTYLE": _words,
    "NUMPROCESSES": _option("--workers"),
    "MAXATTEMPTS": _note("a setting of the workers: load.retries_max"),
    "REPORTFREQUENCY": _note("--progress decides how progress is shown"),
    "RATEFILE": _note("--summary FILE writes the figures at the end"),
    "CONFIGFILE": _config_file,
    "ESCAPE": _option("--escape"),
    "ENCODING": _option("--encoding"),
}
_FROM: Mapping[str, Handler] = {
    "SKIPROWS": _unlimited("--skip-rows"),
    "MAXROWS": _unlimited("--max-rows"),
    "SKIPCOLS": _skip_columns,
    "TTL": _unlimited("--ttl"),
    "INGESTRATE": _option("--rate"),
    "MAXPARSEERRORS": _errors,
    "MAXINSERTERRORS": _errors,
    "ERRFILE": _note("`ringhaul errors JOB --export FILE` writes the rejected records"),
    "ERRORSFILE": _note("`ringhaul errors JOB --export FILE` writes the rejected records"),
    "CHUNKSIZE": _note("not needed: --unit-size is in bytes, and follows the files"),
    "MINBATCHSIZE": _note("not needed: batches follow the replicas and the server's limits"),
    "MAXBATCHSIZE": _note("not needed: batches follow the replicas and the server's limits"),
    "PREPAREDSTATEMENTS": _note("statements are always prepared"),
    "REQUESTTIMEOUT": _note("a setting of the workers: cluster.request_timeout_s"),
    "MAXINFLIGHTMESSAGES": _note("a setting of the workers: load.in_flight_requests_max"),
    "MAXBACKOFFATTEMPTS": _note("not needed: requests wait while nodes are overloaded"),
    "MAXPENDINGCHUNKS": _note("not needed: each process has at most two units queued"),
    "CHILDTIMEOUT": _note("not needed: another worker takes the unit of one that hangs"),
}
_TO: Mapping[str, Handler] = {
    "FLOATPRECISION": _lose("numbers have the fewest digits that read back the same"),
    "DOUBLEPRECISION": _lose("numbers have the fewest digits that read back the same"),
    "BEGINTOKEN": _tokens(">"),
    "ENDTOKEN": _tokens("<="),
    "MAXOUTPUTSIZE": _unlimited("--max-rows-per-file"),
    "PAGESIZE": _note("not needed: pages follow the rows"),
    "PAGETIMEOUT": _note("not needed: a read that takes too long is split"),
    "MAXREQUESTS": _note("not needed: the number of requests follows the server"),
}
#: Direction -> option -> what it becomes.
COPY_OPTIONS: Mapping[str, Mapping[str, Handler]] = {
    "FROM": {**_BOTH, **_FROM},
    "TO": {**_BOTH, **_TO},
}
