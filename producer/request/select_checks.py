"""Checks of the SQL in a request, without the schema of its table."""

from __future__ import annotations

from contextlib import suppress

from ringhaul.cluster.schema import TableSchema
from ringhaul.errors import UsageError
from ringhaul.query.select import has_limit, parse_select, selects_rows
from ringhaul.query.select_text import split_select
from ringhaul.query.sql import parse_condition, parse_statement, refuse_markers


def check_condition(text: str) -> None:
    """Raise `QueryError` for a condition that cannot be read with any schema."""
    condition = parse_condition(text)
    if condition is not None:
        refuse_markers(condition)


def check_select(sql: str) -> None:
    """Raise `QueryError` for a SELECT that cannot be read with any schema."""
    with suppress(_SchemaNeeded):
        parse_select(sql, _need_schema)
    refuse_markers(parse_statement(split_select(sql).sql))


def wants_rows(sql: str) -> bool:
    """Return whether a SELECT is about rows, and not about aggregates or groups. Raises
    `QueryError` for a text that is no SQL."""
    return selects_rows(sql)


def check_row_select(sql: str) -> None:
    """Check a SELECT of rows that `query` shows. Raises `QueryError` as `check_select` does, and
    `UsageError` if it has no LIMIT."""
    check_select(sql)
    if not has_limit(sql):
        raise UsageError(
            "this SELECT has neither an aggregate nor a LIMIT, and query does not show a complete "
            "table: add LIMIT 10, write all rows with `ringhaul unload --query`, or look at a few "
            "with `ringhaul peek`"
        )


class _SchemaNeeded(Exception):
    """A statement is correct as far as can be seen without its table."""


def _need_schema(_keyspace: str, _table: str) -> TableSchema:
    raise _SchemaNeeded
