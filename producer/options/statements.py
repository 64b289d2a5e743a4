"""Options of `lookup` and `exec`."""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from functools import partial

from producer.options.groups import Group
from producer.options.job import JobOptions
from producer.options.kinds import PLACE, Choice
from producer.options.option import again, argument, inner, option
from producer.options.output import RowsOutput
from producer.options.reads import ReadTable
from producer.options.spelling import Spelling
from tasks.command_line import VALUES_PREFIX

_rows = partial(option, group=Group.ROWS)


@dataclass(frozen=True, kw_only=True)
class StatementOptions(JobOptions, RowsOutput):
    """The options that `lookup` and `exec` share. `values`: how their input is written."""

    output: str = again(
        RowsOutput, "output", default="-", brief="A new folder, or - for standard output."
    )
    values: Spelling = inner(Spelling, VALUES_PREFIX, group=Group.INPUT, about="Input: ")


@dataclass(frozen=True, kw_only=True)
class LookupOptions(StatementOptions, ReadTable):
    """`lookup`."""

    table: str = again(ReadTable, "table")
    keyspace: str | None = again(ReadTable, "keyspace")
    keys: str = _rows(
        "--keys",
        PLACE,
        MISSING,
        metavar="FILE|-",
        help="The keys, in a file or on standard input.",
        brief="The keys, in a file or -.",
        common=True,
    )
    key: str | None = _rows(
        "--key",
        metavar="A,B,...",
        help="Columns of a key: the partition key, and first clustering columns [partition key].",
        brief="Columns of a key [the partition key].",
        common=True,
    )
    columns: str | None = _rows(
        "--columns", metavar="A,B,...", help="Columns to look up [all].", common=True
    )


@dataclass(frozen=True, kw_only=True)
class ExecOptions(StatementOptions):
    """`exec`."""

    statement: str = argument("STATEMENT", help="The statement.", group=Group.ROWS)
    params: str | None = _rows(
        "--params",
        PLACE,
        metavar="FILE|-",
        help="Values of the markers, in a file or on standard input.",
        common=True,
    )
    ranges: tuple[str, ...] = _rows(
        "--range",
        repeated=True,
        metavar="NAME:FIRST..LAST[/STEP]",
        help="Values of a marker: day:2024-01-01..2024-12-31, bucket:0..999; combined if several.",
        brief="Values of a marker: bucket:0..999.",
        common=True,
    )
    nulls: str = _rows(
        "--nulls",
        Choice(("unset", "tombstone")),
        "unset",
        help="What an empty field binds. unset: leave its column as it is; tombstone: null.",
    )
