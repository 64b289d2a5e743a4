"""The CQL statement that a scan runs for each token range. Pure."""

from __future__ import annotations

from ringhaul.cluster.schema import TableSchema, quote_identifier
from ringhaul.query.computed import SERVER_LIMIT_MAX
from ringhaul.query.scope import Fetch
from ringhaul.query.select import Select

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
    """Return the columns to fetch: those of the SELECT, or the cheapest if it only counts rows."""
    return select.fetches or (_cheapest(select.table),)


def scan_statement(select: Select) -> str:
    """Return the SELECT of the fetches for the tokens (?, ?].

    The server limits the rows of each range to those that the result can have: with a condition
    that the workers test, any number of them.
    """
    table = select.table
    token = f"token({', '.join(map(quote_identifier, table.partition_key))})"
    return (
        f"SELECT {', '.join(fetch.selector for fetch in scan_fetches(select))} "
        f"FROM {quote_identifier(table.keyspace)}.{quote_identifier(table.table)} "
        f"WHERE {token} > ? AND {token} <= ?"
        + (f" PER PARTITION LIMIT {select.per_partition}" if select.per_partition else "")
        + (f" LIMIT {select.limit}" if _may_limit(select) else "")
    )


def _may_limit(select: Select) -> bool:
    """Return whether the server may apply the LIMIT to each range of tokens."""
    if select.is_aggregate or select.where.predicate is not None or select.limit is None:
        return False
    return 0 < select.limit <= SERVER_LIMIT_MAX


def _cheapest(table: TableSchema) -> Fetch:
    """Return the narrowest column of the primary key, which every row has."""
    name = min(table.primary_key, key=lambda key: _WIDTHS.get(table.parsed_type(key).name, _WIDEST))
    return Fetch(name, quote_identifier(name), table.parsed_type(name))
