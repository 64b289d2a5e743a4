"""Options of `lookup` and `exec`."""

from __future__ import annotations

from dataclasses import dataclass

from producer.options.job import JobOptions
from producer.options.output import RowsOutput
from producer.options.spelling import Spelling


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
