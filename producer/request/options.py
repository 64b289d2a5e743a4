"""The options of each command, as one frozen record.

The fields have the names of click's parameters, so that a record is made from them in one call. If
a command has an option that its record lacks, a `TypeError` is raised the first time the command
runs. Functions below `commands/` take the part that they need: a `LoadOptions` is a `Connection`,
too.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ringhaul.ledger.kinds import JobKind
from ringhaul.ledger.pace import NO_LIMITS, Limits, Pace

if TYPE_CHECKING:
    from producer.request.cqlshrc import Cqlshrc

#: A `--broker` that turns off the configured broker and all its settings.
NO_BROKER = "none"


@dataclass(frozen=True, kw_only=True)
class Connection:
    """Where the cluster and the broker are. None: as configured."""

    contact_points: str | None
    port: int | None
    local_dc: str | None
    user: str | None
    password_file: str | None
    broker: str | None
    config_file: Path | None
    cqlshrc: Cqlshrc | None = None
    secure_connect_bundle: str | None = None


@dataclass(frozen=True, kw_only=True)
class LedgerPlace:
    """Where a command that looks at or controls a job finds its ledger."""

    broker: str | None = None  #: URL, or `NO_BROKER`; None: the configured one
    config_file: Path | None = None  #: None: the settings file that is found


@dataclass(frozen=True, kw_only=True)
class Showing:
    """What a command shows about a job, and in which form."""

    progress: str = "auto"  #: auto, bar, plain, json or none
    as_json: bool = False
    quiet: bool = False
    summary: Path | None = None
    report: Path | None = None  #: a file, or a folder


@dataclass(frozen=True, kw_only=True)
class Following(Showing):
    """How a command that runs a job follows it."""

    workers: int | None  #: embedded worker processes; None: one for each core
    on_interrupt: str | None  #: cancel or detach; None: what suits the workers
    detach: bool = False

    def interrupt_with(self, *, own_workers: bool) -> str:
        """Return what Ctrl-C does: cancel the job, or leave it to workers that continue."""
        return self.on_interrupt or ("cancel" if own_workers else "detach")


@dataclass(frozen=True, kw_only=True)
class Sharing:
    """How much of the cluster and of the workers a job may use."""

    rate: Limits | None  #: None: no limit
    priority: str

    @property
    def pace(self) -> Pace:
        """The job's limits at its start."""
        return Pace(limits=self.rate or NO_LIMITS)


@dataclass(frozen=True, kw_only=True)
class JobOptions(Connection, Following, Sharing):
    """The options of every command that runs a job."""

    job_id: str | None
    consistency: str | None
    dry_run: bool = False
    #: Names of the options that were given, by the user or by a preset.
    given: frozenset[str] = frozenset()
    #: The request as text, compared with that of an existing job of this id: see `fingerprint`.
    fingerprint: str = ""
    #: The job exists: its command ended before all units were in the ledger.
    adopted: bool = False


@dataclass(frozen=True, kw_only=True)
class ValueSpelling:
    """How values are spelled in text, whether it is read or written; see `TextFormat`."""

    timestamp_formats: tuple[str, ...] = ()
    date_formats: tuple[str, ...] = ()
    time_formats: tuple[str, ...] = ()
    epoch_unit: str = ""
    epoch: str = "1970-01-01"
    timezone: str = "UTC"
    clock_changes: str = ""
    locale: str = "en"
    true_words: str | None = None
    false_words: str | None = None
    blob: str = "hex"
    decimal_sep: str = "."
    thousands_sep: str = ""


@dataclass(frozen=True, kw_only=True)
class Spelling(ValueSpelling):
    """How the input text is written."""

    file_format: str  #: auto, csv, jsonl, parquet or fixed
    header: bool
    delimiter: str
    quote: str  #: empty: none
    escape: str  #: empty: none
    comment: str  #: empty: none
    encoding: str
    null_strings: tuple[str, ...]  #: empty: an empty field
    allow_nul: bool
    dialect: str | None = None  #: name of a preset; its values are in the other fields
    header_at: str | None = None  #: a line's number, or auto
    format_profile: str | None = None  #: as `dialect`, of the settings file
    escape_style: str = "plain"
    line_end: str = "any"
    json_layout: str = "lines"
    accept: str = ""
    overflow: str = "reject"
    rounding: str = "none"
    allow_extra_fields: bool = False
    allow_missing_fields: bool = False
    null_quoted: bool = False
    trim: str = "none"  #: none, text or quoted
    empty: str | None = None  #: text, null, or COLUMN=text,...
    empty_word: str | None = None  #: stands for the empty text
    fill_empty: str | None = None  #: read in the place of an empty field
    fill_quoted: str | None = None  #: the same for one in quotes
    # Which records, and what their fields fill:
    columns: str | None = None
    columns_at: str | None = None  #: NAME:FIRST-LAST,... of fixed-width records
    layout: Path | None = None  #: or a file that says so
    mapping: str | None = None
    skip_columns: str | None = None
    skip_rows: int = 0
    max_rows: int | None = None
    rows_per: str = "input"  #: or file: what these two count


@dataclass(frozen=True, kw_only=True)
class Preserving:
    """Whether each column keeps its own write time and TTL."""

    preserve_timestamp: bool = False
    preserve_ttl: bool = False


@dataclass(frozen=True, kw_only=True)
class LoadOptions(JobOptions, Spelling, Preserving):
    """`load` and `verify`: a verification is a load that compares rows instead of writing them."""

    sources: tuple[str, ...]
    urlfile: str | None
    keyspace: str | None
    table: str
    transforms: tuple[str, ...]
    where: str | None
    nulls: str  #: unset or tombstone
    max_errors: str | None
    unit_size: str | None
    hive_partitioning: bool = False
    kind: JobKind = JobKind.LOAD
    times: bool = False  #: of a verification: compare write times and TTLs, too
    # What a verification lacks:
    ttl: int = 0
    ttl_field: str | None = None
    timestamp: str | None = None
    timestamp_field: str | None = None
    exact_timestamps: bool = False
    strategy: str | None = None
    create_table: bool = False
    primary_key: str | None = None
    types: tuple[str, ...] = ()  #: of new columns, COLUMN=TYPE each
    via: str = "cql"  #: or streaming, import
    to_sstables: Path | None = None  #: a folder
    sstable_size: str | None = None
    sstable_version: str = "nb"
    yes: bool = False  #: the statement that --create-table shows need not be confirmed


@dataclass(frozen=True, kw_only=True)
class TuneOptions(LoadOptions):
    """`tune`: those of the load that is tried, and what becomes of the result."""

    budget_s: int = 300  #: seconds after which the command is over
    in_place: bool = False  #: no scratch table
    overwrite: bool = False  #: in place, even if the table has rows
    write: Path | None = None  #: the settings file; None: the one that is read
    no_write: bool = False


@dataclass(frozen=True, kw_only=True)
class RowsOutput(ValueSpelling):
    """Where rows are written, and how. None: the format's default."""

    output: str  #: a folder, its URL, or - for standard output
    format: str | None
    compression: str | None
    header: bool | None
    delimiter: str | None
    quote: str | None
    null: str | None
    escape: str | None
    escape_style: str | None
    dialect: str | None
    max_rows_per_file: int | None
    max_file_size: str | None
    order: str
    quote_all: bool = False
    empty_word: str | None = None
    comment: str | None = None
    trim: str | None = None
    encoding: str | None = None
    line_end: str | None = None
    json_layout: str | None = None
    json_nulls: bool | None = None
    decimal_type: str | None = None


@dataclass(frozen=True, kw_only=True)
class UnloadOptions(JobOptions, RowsOutput, Preserving):
    """`unload`."""

    keyspace: str | None
    table: str | None
    columns: str | None
    mapping: str | None = None
    where: str | None
    sql: str | None
    transforms: tuple[str, ...]
    max_errors: str | None
    skip_failed: bool
    partition_by: str | None = None
    single_file: bool = False
    file_name_format: str | None = None
    format_profile: str | None = None  #: its values are in the other fields


@dataclass(frozen=True, kw_only=True)
class ResultPlace:
    """Where a result goes, and in which format. None: not given."""

    output: str | None = None
    result_format: str | None = None


@dataclass(frozen=True, kw_only=True)
class QueryOptions(JobOptions, ResultPlace):
    """`query`."""

    sql: str
    skip_failed: bool


@dataclass(frozen=True, kw_only=True)
class PeekOptions(Connection, ResultPlace):
    """`peek`."""

    keyspace: str | None
    table: str
    rows: int
    where: str | None
    columns: str | None
    as_json: bool


@dataclass(frozen=True, kw_only=True)
class CountOptions(JobOptions, ResultPlace):
    """`count`."""

    keyspace: str | None
    table: str
    where: str | None
    by: str  #: total, range or host
    top: int | None
    skip_failed: bool


@dataclass(frozen=True, kw_only=True)
class StatementOptions(JobOptions, RowsOutput):
    """The options that `lookup` and `exec` share. `values`: how their input is written."""

    values: Spelling


@dataclass(frozen=True, kw_only=True)
class LookupOptions(StatementOptions):
    """`lookup`."""

    keyspace: str | None
    table: str
    keys: str
    key: str | None
    columns: str | None


@dataclass(frozen=True, kw_only=True)
class ExecOptions(StatementOptions):
    """`exec`."""

    statement: str
    params: str | None
    ranges: tuple[str, ...]
    nulls: str


@dataclass(frozen=True, kw_only=True)
class ResumeOptions(Connection, Following, ResultPlace):
    """`resume`, and any command whose job exists already."""

    job: str
    max_errors: str | None = None
    given: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class ThrottleOptions:
    """`throttle`."""

    rate: Limits | None = None
    rows_per_second: int | None
    mb_per_second: float | None
    in_flight: int | None
    between: tuple[str, ...]
    timezone: str | None
    off: bool
    as_json: bool
