"""Options of the commands that read a table: `unload`, `count`, `query` and `peek`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from producer.options.connection import Connection
from producer.options.groups import Group
from producer.options.job import JobOptions
from producer.options.kinds import FLAG, Choice, Table, Whole
from producer.options.option import again, argument, option
from producer.options.output import ResultPlace, RowsOutput
from producer.options.preserving import Preserving

_rows = partial(option, group=Group.ROWS)


@dataclass(frozen=True, kw_only=True)
class ReadTable:
    """The table that a command reads: as an argument, or by `-t`."""

    table: str | None = _rows(
        "-t --table",
        Table(required=True),
        metavar="NAME",
        help="Table, or KEYSPACE.TABLE, instead of the argument.",
        common=True,
    )
    keyspace: str | None = _rows(
        "-k --keyspace", metavar="NAME", help="Keyspace of the table.", common=True
    )


@dataclass(frozen=True, kw_only=True)
class ReadOptions(JobOptions):
    """The options of jobs that read token ranges."""

    consistency: str | None = again(
        JobOptions, "consistency", help="Consistency level for reads [LOCAL_QUORUM]."
    )
    skip_failed: bool = option(
        "--skip-failed-ranges",
        FLAG,
        help="Skip and list token ranges that no replica can read; exit with 1.",
        group=Group.JOB,
    )


@dataclass(frozen=True, kw_only=True)
class UnloadOptions(ReadOptions, RowsOutput, ReadTable, Preserving):
    """`unload`."""

    table: str | None = again(ReadTable, "table", kind=Table(required=False))
    keyspace: str | None = again(ReadTable, "keyspace")
    columns: str | None = _rows(
        "--columns",
        metavar="A,B,...",
        help="Columns, writetime(COLUMN) and ttl(COLUMN) among them [all columns].",
        brief="Columns to unload [all].",
        common=True,
    )
    mapping: str | None = _rows(
        "-m --mapping",
        metavar="FIELD=COLUMN,...",
        help="Columns and the names of their fields; *=*: all other columns; writetime(*), "
        "ttl(*): times of each column.",
    )
    where: str | None = _rows(
        "--where", metavar="CONDITION", help="Rows to unload, as in SQL.", common=True
    )
    sql: str | None = _rows(
        "--query",
        metavar="SELECT",
        help="SELECT ... FROM KEYSPACE.TABLE [WHERE ...], in place of table, columns and WHERE.",
        brief="SELECT, in place of table, columns and WHERE.",
        common=True,
    )
    transforms: tuple[str, ...] = _rows(
        "--transform",
        repeated=True,
        metavar="MODULE:FUNCTION",
        help="Put rows through a function that the workers' settings allow; may be repeated.",
    )
    max_errors: str | None = option(
        "--max-errors",
        metavar="N|N%",
        help="Stop when a transform fails on more rows [1000]; -1: never.",
        group=Group.JOB,
        how=True,
    )
    output: str = again(
        RowsOutput,
        "output",
        metavar="DIR|FILE|URL|-",
        help="An empty or new folder, a file such as out.csv, the URL of either, or -: standard "
        "output.",
        brief="A new folder, or a file.",
    )
    single_file: bool = option(
        "--single-file",
        FLAG,
        help="Write one file: -o names it, or its folder.",
        group=Group.OUTPUT,
        common=True,
    )
    file_name_format: str | None = option(
        "--file-name-format",
        metavar="PATTERN",
        help="Names of the files, with {number:06}, {keyspace}, {table}, {job}, or %06d.",
        group=Group.OUTPUT,
    )
    partition_by: str | None = option(
        "--partition-by",
        metavar="A,B,...",
        help="Folders named after these columns' values, such as year=2023/region=north.",
        group=Group.OUTPUT,
    )
    order: str = again(
        RowsOutput,
        "order",
        kind=Choice(("any", "token")),
        default="any",
        help="token: files sorted by name hold the rows in the order of their tokens.",
    )
    #: Its values are in the other fields.
    format_profile: str | None = option(
        "--format-profile",
        metavar="NAME",
        help="Take options from [format.NAME] in ringhaul.toml; the command line wins.",
        group=Group.FORMAT,
        how=True,
    )
    dry_run: bool = again(JobOptions, "dry_run", help="Print the plan, read no row.")


@dataclass(frozen=True, kw_only=True)
class QueryOptions(ReadOptions, ResultPlace):
    """`query`."""

    sql: str = argument("SELECT", help="The SELECT.", group=Group.ROWS)


@dataclass(frozen=True, kw_only=True)
class PeekOptions(Connection, ResultPlace, ReadTable):
    """`peek`."""

    table: str = again(ReadTable, "table")
    keyspace: str | None = again(ReadTable, "keyspace")
    rows: int = _rows("-n --rows", Whole(1, 100_000), 5, help="At most this many rows.")
    where: str | None = _rows(
        "--where", metavar="CONDITION", help="Only rows for which this holds, as in SQL."
    )
    columns: str | None = _rows("--columns", metavar="A,B,...", help="Columns to compute [all].")
    result_format: str | None = again(
        ResultPlace,
        "result_format",
        kind=Choice(("auto", "table", "csv", "json")),
        help="auto: a table on a terminal, else csv.",
    )
    as_json: bool = option(
        "--json", FLAG, help="Like --format json: JSON Lines.", group=Group.DISPLAY
    )
    output: str | None = None


@dataclass(frozen=True, kw_only=True)
class CountOptions(ReadOptions, ResultPlace, ReadTable):
    """`count`."""

    table: str = again(ReadTable, "table")
    keyspace: str | None = again(ReadTable, "keyspace")
    where: str | None = _rows(
        "--where", metavar="CONDITION", help="Rows to count, as in SQL.", common=True
    )
    by: str = _rows(
        "--by",
        Choice(("total", "range", "host")),
        "total",
        help="One number, or one for each token range of the ring, or for each host that owns "
        "them.",
        brief="One number, or for each range or host.",
        common=True,
    )
    top: int | None = _rows(
        "--top",
        Whole(1, 100_000),
        metavar="N",
        help="The N partitions with most rows.",
        common=True,
    )
