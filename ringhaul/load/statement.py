"""Build the INSERT of a job: identifiers quoted, values bound, those about the row last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ringhaul.cluster.schema import TableSchema, quote_identifier


class Statements(NamedTuple):
    """The statements that the rows of a source are bound to."""

    rows: str
    #: Statement for partitions with only static columns; None: there are no such partitions.
    statics: str | None = None


def insert_statements(
    table: TableSchema,
    columns: Sequence[str],
    ttl_s: int,
    *,
    ttl_bound: bool = False,
    filled: Sequence[tuple[str, str]] = (),
) -> Statements:
    """Return the INSERTs of whole rows and of static columns alone. See `insert_statement`."""
    rows = insert_statement(table, columns, ttl_s, ttl_bound=ttl_bound, filled=filled)
    alone = table.without_rows(columns)
    if not alone:
        return Statements(rows)
    return Statements(rows, insert_statement(table, alone, ttl_s, ttl_bound=ttl_bound))


def insert_statement(
    table: TableSchema,
    columns: Sequence[str],
    ttl_s: int,
    *,
    ttl_bound: bool = False,
    filled: Sequence[tuple[str, str]] = (),
) -> str:
    """Return `INSERT ... USING TIMESTAMP ?`: a marker per column, then the row's timestamp.

    `ttl_bound`: a marker for the row's TTL follows, instead of `ttl_s` for all rows. `filled`:
    further columns, each with what the server computes for it.

    The table is named in full: after `USE` the server attaches a warning to every reply of a
    prepared statement.
    """
    computed = dict(filled)
    names = ", ".join(quote_identifier(column) for column in (*columns, *computed))
    markers = ", ".join([*("?" for _ in columns), *computed.values()])
    ttl = f" AND TTL {'?' if ttl_bound else ttl_s}" if ttl_s or ttl_bound else ""
    into = f"{quote_identifier(table.keyspace)}.{quote_identifier(table.table)}"
    return f"INSERT INTO {into} ({names}) VALUES ({markers}) USING TIMESTAMP ?{ttl}"
