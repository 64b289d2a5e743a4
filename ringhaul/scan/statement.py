"""The CQL statement that a scan runs for each token range. Pure."""

from __future__ import annotations

from ringhaul.cluster.schema import TableSchema, quote_identifier
from ringhaul.query.scope import Fetch
from ringhaul.query.select import Select
from ringhaul.scan.sizing import FIRST_ROWS

#: Bytes of a value, for types of fixed width; other types count as wider.
_WIDTHS = {
    "boolean": 1,
    "tinyint": 1,
    "smallint": 2,
    "int": 4,
    "float": 4,
    "date": 4,
    "bigint": 8,
    "double": 8,
    "timestamp": 8,
    "time": 8,
    "uuid": 16,
    "timeuuid": 16,
}
_WIDEST = 1 << 10


def scan_fetches(select: Select) -> tuple[Fetch, ...]:
    """Return the columns to fetch: the SELECT's, or the cheapest if it only counts rows."""
    return select.fetches or (_cheapest(select.table),)


def scan_statement(select: Select) -> str:
    """Return the SELECT of the fetches for the tokens (?, ?].

    It has no LIMIT, which ends a scan by its own count: Cassandra ignores the paging state of a
    request whose page is as long as the LIMIT, and would send the first rows again.
    """
    table = select.table
    token = f"token({', '.join(map(quote_identifier, table.partition_key))})"
    return (
        f"SELECT {', '.join(fetch.selector for fetch in scan_fetches(select))} "
        f"FROM {quote_identifier(table.keyspace)}.{quote_identifier(table.table)} "
        f"WHERE {token} > ? AND {token} <= ?"
        + (f" PER PARTITION LIMIT {select.per_partition}" if select.per_partition else "")
    )


def first_page_rows(select: Select, limit: int | None) -> int:
    """Return the rows of the first page: no more than are wanted, if no worker drops any."""
    return FIRST_ROWS if limit is None or select.where.predicate else min(limit, FIRST_ROWS)


def _cheapest(table: TableSchema) -> Fetch:
    """Return the narrowest column of the primary key, which every row has."""
    name = min(table.primary_key, key=lambda key: _WIDTHS.get(table.parsed_type(key).name, _WIDEST))
    return Fetch(name, quote_identifier(name), table.parsed_type(name))
