"""The INSERT of a job. Identifiers are quoted, values bound, those of the row after its columns."""

from __future__ import annotations

from collections.abc import Sequence

from ringhaul.cluster.schema import TableSchema, quote_identifier


def insert_statement(
    table: TableSchema, columns: Sequence[str], ttl_s: int, *, ttl_bound: bool = False
) -> str:
    """`INSERT ... USING TIMESTAMP ?`: one marker per column, then the row's timestamp.

    `ttl_bound`: then one for its TTL, in place of `ttl_s` for all rows.

    The table is named in full: after `USE` the server attaches a warning to every reply of a
    prepared statement.
    """
    names = ", ".join(quote_identifier(column) for column in columns)
    markers = ", ".join("?" for _ in columns)
    ttl = f" AND TTL {'?' if ttl_bound else ttl_s}" if ttl_s or ttl_bound else ""
    into = f"{quote_identifier(table.keyspace)}.{quote_identifier(table.table)}"
    return f"INSERT INTO {into} ({names}) VALUES ({markers}) USING TIMESTAMP ?{ttl}"
