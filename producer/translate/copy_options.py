"""What COPY's statements and options are in ringhaul. Pure.

The options are those of `HELP COPY` in cqlsh of Cassandra 3.11 to 5.0, where their defaults are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from producer.translate.copy_statement import CopyStatement
from producer.translate.translation import Draft, NotTranslatable, Translation, suggest

Handler = Callable[[str, Draft], None]
_YES = frozenset({"true", "1", "yes", "on", "t", "y"})


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
    if reads:
        draft.operands += statement.files or ("-",)
    else:
        draft.add("--output", *(statement.files or ("-",)))
    if statement.columns:
        draft.add("--columns", ",".join(statement.columns))
    given = dict(statement.options)
    _set_defaults(draft, given, reads)
    apply_options(statement.options, draft, reads=reads)
    skipped, most = given.get("SKIPROWS", ""), given.get("MAXROWS", "")
    if draft.has("--max-rows") and skipped.isdecimal() and most.isdecimal():
        # COPY counts the rows that it skips, too.
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
        handler(value, draft)


def _set_defaults(draft: Draft, given: Mapping[str, str], reads: bool) -> None:
    if "HEADER" not in given:
        draft.add("--no-header")
    elif given["HEADER"].lower() in _YES and reads and not draft.has("--columns"):
        draft.option = "HEADER"
        draft.note("ringhaul matches fields by the names in the header; COPY by their order")
    if reads and "ESCAPE" not in given:
        draft.add("--escape", "\\")
    if reads:
        draft.option = "COPY"
        draft.note("a missing value leaves its column as it is; COPY deletes it: --nulls tombstone")


def _option(name: str) -> Handler:
    """The value is the same there."""
    return lambda value, draft: draft.add(name, value)


def _note(text: str) -> Handler:
    """Nothing is lost without it."""
    return lambda _, draft: draft.note(text)


def _lose(text: str) -> Handler:
    return lambda _, draft: draft.lose(text)


def _header(value: str, draft: Draft) -> None:
    draft.drop("--no-header")
    if value.lower() not in _YES:
        draft.add("--no-header")


def _words(value: str, draft: Draft) -> None:
    true, comma, false = value.partition(",")
    if not comma:
        raise NotTranslatable(f"BOOLSTYLE = '{value}': two words with a comma between are missing")
    draft.true_words, draft.false_words = [true.strip()], [false.strip()]
    draft.set_words()


def _output_escape(value: str, draft: Draft) -> None:
    if value != '"':
        draft.note("quotes within quotes are doubled, as in RFC 4180; load needs no option for it")


def _unlimited(name: str) -> Handler:
    """-1 means no limit, which is the default here."""

    def handle(value: str, draft: Draft) -> None:
        draft.drop(name)
        if value != "-1":
            draft.add(name, value)

    return handle


def _skip_columns(value: str, draft: Draft) -> None:
    draft.add("--skip-columns", ",".join(name.strip() for name in value.split(",")))


def _errors(value: str, draft: Draft) -> None:
    draft.add("--max-errors", value)
    draft.note("one limit for records that cannot be read and for those that cannot be written")


def _tokens(sign: str) -> Handler:
    def handle(value: str, draft: Draft) -> None:
        draft.lose(f'add --where "token(PARTITION KEY) {sign} {value}"')

    return handle


_BOTH: Mapping[str, Handler] = {
    "DELIMITER": _option("--delimiter"),
    "QUOTE": _option("--quote"),
    "NULL": _option("--null"),
    "HEADER": _header,
    "DATETIMEFORMAT": _option("--timestamp-format"),
    "DECIMALSEP": _option("--decimal-sep"),
    "THOUSANDSSEP": _option("--thousands-sep"),
    "BOOLSTYLE": _words,
    "NUMPROCESSES": _option("--workers"),
    "MAXATTEMPTS": _note("a setting of the workers: load.retries_max"),
    "REPORTFREQUENCY": _note("--progress decides how progress is shown"),
    "RATEFILE": _note("--summary FILE writes the figures at the end"),
    "CONFIGFILE": _option("--cqlshrc"),
}
_FROM: Mapping[str, Handler] = {
    "ESCAPE": _option("--escape"),
    "ENCODING": _option("--encoding"),
    "SKIPROWS": _option("--skip-rows"),
    "MAXROWS": _unlimited("--max-rows"),
    "SKIPCOLS": _skip_columns,
    "TTL": _option("--ttl"),
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
    "ESCAPE": _output_escape,
    "ENCODING": _option("--encoding"),
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
