"""Options of `load`, `verify` and `tune`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from producer.options.job import JobOptions
from producer.options.spelling import Spelling
from ringhaul.ledger.kinds import JobKind


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
    profile_dir: Path | None = None
    create_table: bool = False
    primary_key: str | None = None
    types: tuple[str, ...] = ()  #: of new columns, COLUMN=TYPE each
    via: str = "cql"  #: or streaming, import, sidecar
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
