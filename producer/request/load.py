"""The draft of a load, checked before any file or server is touched."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from config.settings import Loaded
from producer.options.load import LoadOptions
from producer.options.option import options_of
from producer.options.spelling import Spelling
from producer.request.destination import Wanted, wanted_destination
from producer.request.input_draft import AUTO, InputDraft
from producer.request.input_format import input_of, values_of
from producer.request.preserved_times import preserving
from producer.request.values import refuse_blank, table_names
from ringhaul.errors import UsageError
from ringhaul.formats.dialect import CsvDialect
from ringhaul.ledger.kinds import JobKind
from ringhaul.ledger.limits import ErrorLimit
from ringhaul.mapping.field_columns import RowFields
from ringhaul.option_names import input_option
from ringhaul.records.load_rules import LoadRules
from ringhaul.records.row_fields import TTL, TTL_S_MAX, WRITETIME


@dataclass(frozen=True, kw_only=True)
class LoadDraft(LoadRules, InputDraft):
    """A load before its job: the rules of the job, and what only planning asks.

    A field with the name of an option, or of a setting of loads, has its value, unless
    `load_draft` reads it.
    """

    keyspace: str
    table: str
    timestamp: str | None = None
    rows_per_s: int = 0  #: The job's limit at its start; 0: none
    bytes_per_s: int = 0  #: The job's limit in bytes, as `ringhaul throttle` counts them
    max_errors: str = "1000"
    #: Fields with the rows' write times and TTLs, by name or position.
    timestamp_field: str | None = None
    ttl_field: str | None = None
    times: bool = False  #: a verification compares the write times and TTLs in fields named so
    #: The table is created first, for what the files hold; with this key, or the usual one.
    create_table: bool = False
    primary_key: str | None = None
    types: Mapping[str, str] = field(default_factory=dict)  #: column -> its type, of --type
    wanted: Wanted = field(default_factory=Wanted)  #: the destination

    @property
    def verifies(self) -> bool:
        """Whether rows are compared with the table's instead of written."""
        return self.kind is JobKind.VERIFY

    @property
    def estimates(self) -> bool:
        """Whether the job needs an estimate of its records, for their write times."""
        return True

    @property
    def wanted_row_fields(self) -> RowFields:
        """The fields with write times and TTLs, as the options name them."""
        return RowFields(self.timestamp_field, self.ttl_field)


def refuse_unread(request: InputDraft, formats: Collection[str]) -> None:
    """Raise `UsageError` for an option about text that no file of these formats uses: the data
    probably has another format than the user thinks."""
    dialect, usual = request.dialect, CsvDialect()
    for read in (one for one in options_of(Spelling) if one.formats):
        unused = not set(read.formats) & set(formats)
        if unused and getattr(dialect, read.name) != getattr(usual, read.name):
            names = {"csv": "CSV", "fixed": "fixed-width text", "jsonl": "JSON Lines"}
            known = " or ".join(names[reader] for reader in read.formats)
            raise UsageError(
                f"{input_option(read.key)} has no effect: no file that is read is {known}; "
                f"{input_option('format')}, or a file's suffix, says what it is"
            )
    if request.header_at is not None and "csv" not in formats:
        option = input_option("header-at")
        raise UsageError(f"{option} has no effect: no file that is read is CSV")


#: Row timestamps are int64; half of it leaves room for the ordinals of any input.
TIMESTAMP_US_MAX = 2**62


def check_draft(request: LoadDraft) -> None:
    """Raise `UsageError` or `QueryError` for what cannot work with any table or file, before any of
    them is accessed."""
    ErrorLimit.parse(request.max_errors)
    if request.empty and request.transforms:
        raise UsageError("--empty has no effect with --transform, which decides what fields become")
    if request.partitioned and (request.transforms or request.create_table):
        other = "--transform" if request.transforms else "--create-table"
        raise UsageError(
            f"--hive-partitioning gives columns of the table their values, and {other} does not "
            "see them: leave one of them out"
        )
    if request.header_at == AUTO and request.transforms:
        raise UsageError(
            "--header-at auto finds the header by the table's columns, and --transform decides "
            "what fills these: give the number of its line"
        )
    if request.file_format != "auto":
        refuse_unread(request, {request.file_format})
    if not 0 <= request.ttl_s <= TTL_S_MAX:
        raise UsageError(f"--ttl {request.ttl_s}: give 0 to {TTL_S_MAX} seconds (20 years)")
    for meant, name in zip((WRITETIME, TTL), request.wanted_row_fields, strict=True):
        refuse_blank(meant.option, name, "the name of a field")
    if request.timestamp is not None:
        parse_timestamp_us(request.timestamp)
        if request.timestamp_field is not None:
            raise UsageError(
                "--timestamp and --timestamp-field both say when rows were written: give one"
            )
    if request.exact_timestamps and request.strategy not in ("pipeline", "single"):
        raise UsageError(
            "--exact-timestamps needs --strategy pipeline or single: the driver sends rows again "
            "on its own"
        )
    if request.times and not request.header and not request.columns:
        raise UsageError(
            "--times finds write times and TTLs by the names of their fields: give these with "
            "--columns, as --no-header says that the files have none"
        )
    if request.create_table:
        _refuse_untyped(request)
    if request.where:
        from ringhaul.query.sql import parse_condition  # most loads do not need it

        parse_condition(request.where)


def _refuse_untyped(request: LoadDraft) -> None:
    """Raise `UsageError` for a request whose files do not show the table's columns."""
    if request.transforms:
        raise UsageError(
            "--create-table reads the files, and --transform changes their content: create the "
            "table first (cqlsh, or `ringhaul local cql` for the local stack)"
        )
    if request.header_at == AUTO:
        raise UsageError(
            "--header-at auto finds the header by the table's columns, and --create-table makes "
            "these from the header: give the number of its line"
        )
    if not request.header and not request.columns:
        raise UsageError("--create-table with --no-header needs --columns, the columns' names")


def parse_timestamp_us(text: str) -> int:
    """Parse microseconds since the epoch, an ISO 8601 date and time, or `now`; return
    microseconds."""
    if text == "now":
        return time.time_ns() // 1000
    if re.fullmatch("-?[0-9]+", text):
        if abs(timestamp_us := int(text)) > TIMESTAMP_US_MAX:
            raise UsageError(
                f"--timestamp {text}: beyond what Cassandra can hold; give microseconds since 1970"
            )
        return timestamp_us
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"--timestamp {text!r}: give microseconds since 1970, a date such as "
            "2026-01-31T12:00:00Z, or now"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def load_draft(options: LoadOptions, loaded: Loaded) -> LoadDraft:
    """Make the draft from the options. Raises `UsageError`, which names the wrong option."""
    keyspace, table = table_names(options.table, options.keyspace)
    refuse_blank("--where", options.where, "a condition")
    refuse_blank("--columns", options.columns, "some columns")
    refuse_blank("--skip-columns", options.skip_columns, "some columns")
    settings = loaded.settings
    read = input_of(options)
    # A setting counts before the option with its name, which is a flag of it.
    given = values_of(LoadDraft, options) | values_of(LoadDraft, settings.load) | read
    given |= {
        "keyspace": keyspace,
        "table": table,
        "mapping": preserving(read["mapping"], options),
        "partitioned": options.hive_partitioning,
        "where": options.where or "",
        "ttl_s": options.ttl,
        "rows_per_s": options.pace.limits.rows_per_s,
        "bytes_per_s": options.pace.limits.bytes_per_s,
        "types": _column_types(options.types),
        "wanted": wanted_destination(options),
        "consistency": settings.cluster.consistency,
        "sstable_bytes": settings.sstables.size_bytes,
    }
    draft = LoadDraft(**given)
    refuse_blank("--primary-key", options.primary_key, "A,B or (A,B),C")
    for name in ("primary_key", "types", "yes"):
        if name in options.given and not options.create_table:
            option = "--type" if name == "types" else f"--{name.replace('_', '-')}"
            raise UsageError(f"{option} needs --create-table: give both, or leave it out")
    check_draft(draft)
    return draft


def _column_types(given: Sequence[str]) -> dict[str, str]:
    """Return column -> its type from COLUMN=TYPE. Raises `UsageError` for another form."""
    found: dict[str, str] = {}
    for text in given:
        name, sign, cql_type = (part.strip() for part in text.rpartition("="))
        if not sign or not name or not cql_type:
            raise UsageError(f"--type {text!r}: give COLUMN=TYPE, such as total=decimal")
        if name in found:
            raise UsageError(f"--type gives {name!r} two types: give one")
        found[name] = cql_type
    return found
