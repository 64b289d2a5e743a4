"""The request of a reading command: a table or a SELECT, its columns and conditions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from producer.options.reads import CountOptions
from producer.request.values import refuse_blank, table_names
from ringhaul.errors import UsageError
from ringhaul.mapping.language import MappingText


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
        sql = f"SELECT {', '.join(wanted.items) or '*'} FROM k.t"
    from producer.request.select_checks import check_condition, check_select

    if wanted.sql is None:
        check_condition(wanted.where or "")
    check_select(sql)


def listed_items(text: str | None) -> Sequence[str]:
    """Return the items of --columns, as written. Raises `UsageError` for a text without any."""
    if text is None:
        return ()
    from ringhaul.query.select_text import split_items

    found = split_items(text)
    if not found:
        raise UsageError(f"--columns {text!r} names no column: give some, or leave it out")
    return found


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
