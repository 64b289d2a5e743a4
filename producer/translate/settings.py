"""Every setting of DataStax Bulk Loader, and what it is in ringhaul. Pure.

The names and defaults come from its settings reference, version 1.11. A `*` in a name stands for
the connector in use.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from producer.translate.codec_handlers import (
    binary,
    drop_null_fills,
    epoch,
    locale,
    null_strings,
    numbers,
    output_null,
    overflow,
    rounding,
    timezone,
    unit,
    words,
)
from producer.translate.handlers import (
    Handler,
    flag,
    in_each_file,
    is_limit,
    lose,
    lose_unless,
    note,
    nothing,
    option,
    unlimited,
)
from producer.translate.hocon import as_bool, as_bytes, as_list, as_switches, as_text
from producer.translate.queries import without_token_range
from producer.translate.setting_names import ALLOWED, COMPRESSION, DENIED, SHORTCUTS
from producer.translate.translation import Draft

_WRITE_TIME = re.compile(r"__timestamp\b|\bwritetime\s*\(", re.IGNORECASE)


def _hosts(value: str, draft: Draft) -> None:
    hosts, ports = [], dict[str, None]()
    for text in as_list(value):
        host, colon, port = text.rpartition(":")
        with_port = bool(colon) and port.isdecimal() and ":" not in host
        hosts.append(host if with_port else text)
        ports |= {port: None} if with_port else {}
    draft.add("--contact-points", ",".join(hosts))
    if ports:
        draft.add("--port", next(iter(ports)))
    if len(ports) > 1:
        draft.lose("all nodes listen on one port: --port")


def _fill(name: str) -> Handler:
    """Set the text to read in place of an empty field."""

    def handle(value: str, draft: Draft) -> None:
        if as_text(value).upper() not in ("AUTO", ""):
            draft.add(name, as_text(value))
            drop_null_fills(draft)

    return handle


def _written_text(name: str) -> Handler:
    def handle(value: str, draft: Draft) -> None:
        if as_text(value).upper() not in ("AUTO", ""):
            draft.add(name, as_text(value))

    return handle


def _newline(value: str, draft: Draft) -> None:
    text = as_text(value)
    crlf, lf = text in ("\r\n", "\\r\\n"), text in ("\n", "\\n")
    if draft.command == "unload":
        if crlf:
            draft.add("--line-end", "crlf")
        elif lf or text == "auto":
            draft.note("a record ends with LF")
        else:
            draft.lose("a record ends with LF, or by --line-end crlf with CRLF")
    elif lf:
        draft.add("--line-end", "lf")
    elif text != "auto":
        draft.lose("LF, CRLF and CR all end a record, or by --line-end lf LF alone")


def _mode(_: str, draft: Draft) -> None:
    if draft.command != "unload":  # an unload's mode goes with connector.json.prettyPrint
        draft.add("--json-layout", "documents")


def _features(value: str, draft: Draft) -> None:
    allowed = {name.upper() for name, on in as_switches(value).items() if on}
    if allowed & {"ALLOW_COMMENTS", "ALLOW_YAML_COMMENTS"}:
        draft.add("--json-layout", "commented")
    if allowed - {"ALLOW_COMMENTS", "ALLOW_YAML_COMMENTS"}:
        draft.lose("JSON is read as its standard says; only comments can be allowed")


def _mapping(value: str, draft: Draft) -> None:
    mapping = " ".join(line.strip() for line in as_text(value).splitlines())
    draft.add("--mapping", mapping)
    if draft.command != "unload" and _WRITE_TIME.search(mapping):
        draft.differ("a number in a field of write times is microseconds; there milliseconds")


def _character(name: str) -> Handler:
    """Set a character; NUL means none."""

    def handle(value: str, draft: Draft) -> None:
        text = as_text(value)
        if text != "\0":
            draft.add(name, text)
        elif name == "--quote":
            draft.add(name, "")

    return handle


def _delimiter(value: str, draft: Draft) -> None:
    text = as_text(value).replace("\t", "\\t")
    draft.add("--delimiter", re.sub(r"[\x00-\x1f]", lambda one: f"\\x{ord(one[0]):02x}", text))


def _urlfile(value: str, draft: Draft) -> None:
    if as_text(value):
        draft.add("--urlfile", as_text(value))
        draft.differ("a folder in it stands for all files in it, at all depths")


def _job_id(value: str, draft: Draft) -> None:
    if "%" in value:
        draft.note("there are no templates: the shell can fill it in, as in --job-id load-$$")
    elif as_text(value):
        draft.add("--job-id", as_text(value))


def _nulls(value: str, draft: Draft) -> None:
    if not as_bool(value):
        draft.add("--nulls", "tombstone")


def _select(value: str, draft: Draft) -> None:
    given = as_text(value).replace("\n", " ")
    query = without_token_range(given)
    draft.add("--query", query)
    if query != given.strip():
        draft.note("without the condition on token ranges: ringhaul splits every unload itself")


def _seconds(value: str, draft: Draft) -> None:
    if is_limit(value):
        draft.add("--ttl", as_text(value))


def _batch_mode(value: str, draft: Draft) -> None:
    if as_text(value).upper() == "DISABLED":
        draft.add("--strategy", "single")


def _rows_rate(value: str, draft: Draft) -> None:
    if not is_limit(value):
        return
    if draft.has("--rate"):
        draft.note("in place of the bytes: both limits with ringhaul throttle JOB")
    draft.add("--rate", as_text(value))


def _bytes_rate(value: str, draft: Draft) -> None:
    bytes_ = as_bytes(value)
    if bytes_ is None or draft.has("--rate"):
        draft.note("while it runs: ringhaul throttle JOB --mb-per-second")
    elif bytes_ > 0:
        draft.add("--rate", f"{max(1, round(bytes_ / 1000))}kB/s")


_COMPRESSIONS = {"gzip": "gzip", "zstd": "zstd", "bzip2": "bz2", "xz": "xz", "lz4": "lz4"}
_COMPRESSIONS |= {"brotli": "brotli", "none": "none"}
#: Compression -> what it adds to the pattern of the files of a folder.
PATTERNS = {"gzip": ".gz", "zstd": ".zstd", "bzip2": ".bz2", "xz": ".xz", "lz4": ".lz4"}
PATTERNS |= {"brotli": ".br", "lzma": ".lzma", "snappy": ".snappy", "deflate": ".deflate"}


def _compression(value: str, draft: Draft) -> None:
    name = as_text(value).lower()
    if name == "snappy" and draft.command != "unload":
        draft.lose("snappy is not read: unpack the files first (snzip -d)")
    elif draft.command != "unload":
        draft.note("the name of a file says how it is compressed")
    elif name in _COMPRESSIONS:
        draft.add("--compression", _COMPRESSIONS[name])
    else:
        draft.lose(f"unload writes {', '.join(_COMPRESSIONS.values())}")


def _concurrent_files(value: str, draft: Draft) -> None:
    if as_text(value) == "1":
        draft.add("--single-file")
    else:
        draft.note("each unit writes its own file")


def _strategy(value: str, draft: Draft) -> None:
    if as_text(value).upper() == "NON_NULL":
        draft.add("--no-json-nulls")


def _trim(text: str) -> Handler:
    def handle(value: str, draft: Draft) -> None:
        # "quoted" includes what "text" does.
        if as_bool(value) and (text == "quoted" or not draft.has("--trim")):
            draft.add("--trim", text)

    return handle


def _password(_: str, draft: Draft) -> None:
    draft.add("--password")
    draft.note("a password is not an argument: -p asks for it, --password-file FILE reads it")


_SETTING = "a setting: see docs/reference/settings.md"
#: Whole groups without a counterpart.
_PREFIXES: Mapping[str, Handler] = {
    "monitoring.": note("use --progress, --summary and `ringhaul metrics`"),
    "log.": note("`ringhaul errors JOB`, and `ringhaul resume JOB` for checkpoints"),
    "executor.continuousPaging.": note("not needed: pages follow the rows"),
    "batch.": note("not needed: batches follow the replicas and the server's limits"),
    "s3.": note("storage.s3_endpoint_url; region and credentials are those of the host"),
    "driver.": note(_SETTING),
    "datastax-java-driver.": note(_SETTING),
    "runner.": note("not needed"),
}


def find_group(name: str) -> Handler | None:
    """Return the handler of a group of settings that have no counterpart; None: unknown."""
    return next((one for start, one in _PREFIXES.items() if name.startswith(start)), None)


_ALL: Mapping[str, Handler] = {
    "connector.name": nothing,
    "log.verbosity": note("--quiet prints less; logging.level is a setting of the workers"),
    "schema.keyspace": option("--keyspace"),
    "schema.table": option("--table"),
    SHORTCUTS["h"]: _hosts,
    SHORTCUTS["port"]: option("--port"),
    SHORTCUTS["dc"]: option("--local-dc"),
    SHORTCUTS["cl"]: option("--consistency"),
    SHORTCUTS["u"]: option("--user"),
    SHORTCUTS["p"]: _password,
    SHORTCUTS["b"]: option("--secure-connect-bundle"),
    COMPRESSION: note("a setting of each host: cluster.compression, none or lz4"),
    SHORTCUTS["maxRetries"]: note("a setting of each host: load.retries_max"),
    SHORTCUTS["lbp"]: note("not needed: rows go to their replicas, of --local-dc first"),
    ALLOWED: note("a setting of each host: cluster.allowed_nodes"),
    DENIED: note("a setting of each host: cluster.denied_nodes"),
    "runner.promptForPasswords": nothing,
    "executor.maxPerSecond": _rows_rate,
    "executor.maxBytesPerSecond": _bytes_rate,
    "executor.maxInFlight": note("a setting of the workers: load.in_flight_requests_max"),
    "engine.maxConcurrentQueries": note("the number of requests follows the server"),
    "engine.dryRun": flag("--dry-run"),
    "engine.executionId": _job_id,
    "engine.dataSizeSamplingEnabled": note("not needed"),
    "schema.splits": note("not needed: units follow the size of the table"),
    **dict.fromkeys(
        (f"schema.{name}" for name in ("graph", "vertex", "edge", "from", "to")),
        lose("graphs cannot be moved"),
    ),
    "codec.timeZone": timezone,
    "codec.locale": locale,
    "codec.date": nothing,
    "codec.time": nothing,
    "codec.timestamp": nothing,
    "codec.unit": unit,
    "codec.epoch": epoch,
    "codec.booleanStrings": words,
    "codec.booleanNumbers": numbers,
    "codec.binary": binary,
    "codec.number": lose_unless("#,###.##", "numbers have separators, but no pattern"),
    "codec.formatNumbers": lose_unless("false", "numbers are written with all their digits"),
    "codec.geo": lose_unless("WKT", "types of DataStax Enterprise cannot be moved"),
    "codec.uuidStrategy": lose_unless("random", "the file must have a complete timeuuid"),
}
_FILES: Mapping[str, Handler] = {
    "connector.*.url": nothing,
    "connector.*.fileNamePattern": nothing,
    "connector.*.recursive": nothing,
    "connector.*.maxConcurrentFiles": note("not needed: all workers share one file"),
    "connector.*.compression": _compression,
    "connector.*.maxCharsPerColumn": note("not needed: a record may have 128 MiB"),
    "connector.*.maxColumns": note("not needed: there is no limit"),
    "connector.*.normalizeLineEndingsInQuotes": lose_unless(
        "false", "line ends within quotes stay as they are"
    ),
    "connector.*.newline": _newline,
    "connector.*.delimiter": _delimiter,
    "connector.*.quote": _character("--quote"),
    "connector.*.header": flag("--no-header", when=False),
    "connector.*.mode": _mode,
    "schema.mapping": _mapping,
    "schema.preserveTimestamp": flag("--preserve-timestamp"),
    "schema.preserveTtl": flag("--preserve-ttl"),
}
_LOAD: Mapping[str, Handler] = {
    "connector.*.urlfile": _urlfile,
    "connector.*.encoding": option("--encoding"),
    "connector.*.skipRecords": in_each_file("--skip-rows"),
    "connector.*.maxRecords": in_each_file("--max-rows"),
    "connector.*.escape": nothing,
    "connector.*.comment": _character("--comment"),
    "connector.*.nullValue": _fill("--fill-empty"),
    "connector.*.emptyValue": _fill("--fill-quoted"),
    "connector.*.ignoreLeadingWhitespaces": _trim("text"),
    "connector.*.ignoreTrailingWhitespaces": _trim("text"),
    "connector.*.ignoreLeadingWhitespacesInQuotes": _trim("quoted"),
    "connector.*.ignoreTrailingWhitespacesInQuotes": _trim("quoted"),
    "connector.*.parserFeatures": _features,
    "connector.*.deserializationFeatures": note("decimals always keep all their digits"),
    "schema.query": nothing,
    "schema.allowExtraFields": flag("--allow-extra-fields"),
    "schema.allowMissingFields": flag("--allow-missing-fields"),
    "schema.nullToUnset": _nulls,
    "schema.queryTimestamp": option("--timestamp"),
    "schema.queryTtl": _seconds,
    "codec.nullStrings": null_strings,
    "codec.overflowStrategy": overflow,
    "codec.roundingStrategy": rounding,
    "batch.mode": _batch_mode,
    "log.maxErrors": option("--max-errors"),
}
_UNLOAD: Mapping[str, Handler] = {
    "connector.*.encoding": option("--encoding"),
    "connector.*.maxRecords": unlimited("--max-rows-per-file"),
    "connector.*.skipRecords": lose_unless("0", "there is nothing to skip in a table"),
    "connector.*.fileNameFormat": option("--file-name-format"),
    "connector.*.maxConcurrentFiles": _concurrent_files,
    "connector.*.escape": nothing,
    "connector.*.comment": _character("--comment"),
    "connector.*.nullValue": _written_text("--null"),
    "connector.*.emptyValue": _written_text("--empty-word"),
    "connector.*.ignoreLeadingWhitespaces": _trim("text"),
    "connector.*.ignoreTrailingWhitespaces": _trim("text"),
    "connector.*.prettyPrint": nothing,
    "connector.*.generatorFeatures": lose("JSON is written as its standard says"),
    "connector.*.serializationFeatures": lose("JSON is written as its standard says"),
    "connector.*.serializationStrategy": _strategy,
    "schema.query": _select,
    "codec.nullStrings": output_null,
    "codec.overflowStrategy": note("nothing overflows in an unload"),
    "codec.roundingStrategy": note("nothing is rounded in an unload"),
    "log.maxErrors": note("an unload rejects no row unless a transform does: --max-errors"),
}
_COUNT: Mapping[str, Handler] = {
    name: note("a count shows no values") for name in _ALL if name.startswith("codec.")
} | {
    "engine.dryRun": note("a count changes nothing"),
    "schema.query": nothing,
    "stats.modes": nothing,
    "stats.numPartitions": nothing,
}
#: Settings of connectors that JSON does not have.
ONLY_CSV = frozenset(
    f"connector.*.{name}"
    for name in (
        "comment",
        "delimiter",
        "emptyValue",
        "escape",
        "header",
        "ignoreLeadingWhitespaces",
        "ignoreLeadingWhitespacesInQuotes",
        "ignoreTrailingWhitespaces",
        "ignoreTrailingWhitespacesInQuotes",
        "maxCharsPerColumn",
        "maxColumns",
        "newline",
        "normalizeLineEndingsInQuotes",
        "nullValue",
        "quote",
    )
)
#: Command -> setting -> what it becomes.
HANDLERS: Mapping[str, Mapping[str, Handler]] = {
    "load": {**_ALL, **_FILES, **_LOAD},
    "unload": {**_ALL, **_FILES, **_UNLOAD},
    "count": {**_ALL, **_COUNT},
}
