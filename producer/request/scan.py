"""The request of a reading command: a table or a SELECT, its columns and conditions."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from producer.options.reads import CountOptions
from producer.request.values import refuse_blank, table_names
from ringhaul.cluster.schema import TableSchema
from ringhaul.errors import UsageError
from ringhaul.records.mapping_text import MappingText


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What to read: a complete SELECT, or a table with columns and conditions."""

    sql: str | None = None
    keyspace: str | None = None
    table: str = ""
    items: Sequence[str] = ()  #: as written in SQL; empty: all columns
    mapping: MappingText = field(default_factory=MappingText)  #: instead of `items`
    named: bool = True  #: files have the names of fields; False: these may be positions
    folders: Sequence[str] = ()  #: fields that name folders, and are not in the files
    where: str | None = None
    counts: bool = False  #: rows are only counted
    by: str = "total"  #: groups of a count: total, range or host
    top: int = 0  #: how many of the largest partitions a count lists; 0: none

    @property
    def is_whole_table(self) -> bool:
        """Whether all columns of all rows are wanted."""
        all_columns = not self.items and not self.mapping
        return self.sql is None and all_columns and self.where is None and not self.counts


def check_wanted(wanted: Wanted) -> None:
    """Raise `QueryError` or `UsageError` for what cannot be read with any schema, before the
    cluster is contacted."""
    sql = wanted.sql
    if sql is None:
        table_names(wanted.table, wanted.keyspace)
        if wanted.is_whole_table:
            return
        refuse_blank("--where", wanted.where, "a condition")
        from ringhaul.query.sql import parse_condition, refuse_markers

        condition = parse_condition(wanted.where or "")
        if condition is not None:
            refuse_markers(condition)
        sql = f"SELECT {', '.join(wanted.items) or '*'} FROM k.t"
    from ringhaul.query.select import parse_select
    from ringhaul.query.select_text import split_select
    from ringhaul.query.sql import parse_statement, refuse_markers

    with suppress(_SchemaNeeded):
        parse_select(sql, _need_schema)
    refuse_markers(parse_statement(split_select(sql).sql))


def wants_rows(sql: str) -> bool:
    """Return whether a SELECT is about rows, and not about aggregates or groups. Raises
    `QueryError` for a text that is no SQL."""
    from ringhaul.query.select import selects_rows

    return selects_rows(sql)


def check_row_query(sql: str) -> Wanted:
    """Return the request of a `query` that is about rows. Raises `QueryError` as `check_wanted`
    does, and `UsageError` if it has no LIMIT."""
    from ringhaul.query.select import has_limit

    wanted = Wanted(sql=sql)
    check_wanted(wanted)
    if not has_limit(sql):
        raise UsageError(
            "this SELECT has neither an aggregate nor a LIMIT, and query does not show a complete "
            "table: add LIMIT 10, write all rows with `ringhaul unload --query`, or look at a few "
            "with `ringhaul peek`"
        )
    return wanted


def listed_items(text: str | None) -> Sequence[str]:
    """Return the items of --columns, as written. Raises `UsageError` for a text without any."""
    if text is None:
        return ()
    from ringhaul.query.select_text import split_items

    found = split_items(text)
    if not found:
        raise UsageError(f"--columns {text!r} names no column: give some, or leave it out")
    return found


class _SchemaNeeded(Exception):
    """A statement is correct as far as can be seen without its table."""


def _need_schema(_keyspace: str, _table: str) -> TableSchema:
    raise _SchemaNeeded


def count_wanted(options: CountOptions) -> Wanted:
    """Return what the options of `count` ask for. Raises `UsageError` for conflicting options."""
    if options.top and options.by != "total":
        raise UsageError("--top and --by are two different counts: give one of them")
    return Wanted(
        keyspace=options.keyspace,
        table=options.table,
        where=options.where,
        by=options.by,
        top=options.top or 0,
        counts=True,
    )
