"""Options of the commands that read a table: `unload`, `count`, `query` and `peek`."""

from __future__ import annotations

from dataclasses import dataclass

from producer.options.connection import Connection
from producer.options.job import JobOptions
from producer.options.load import Preserving
from producer.options.output import ResultPlace, RowsOutput


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
