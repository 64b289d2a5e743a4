"""Ask the server what it makes of expressions in the list of a SELECT: their names and types."""

from __future__ import annotations

from collections.abc import Sequence

from cassandra import DriverException, InvalidRequest
from cassandra.cluster import NoHostAvailable
from cassandra.protocol import ErrorMessage, SyntaxException

from ringhaul.cluster.errors import translate_error
from ringhaul.cluster.prepared import marked
from ringhaul.cluster.schema import TableSchema, quote_identifier
from ringhaul.cluster.view import ClusterView
from ringhaul.cql.column import quote
from ringhaul.cql.computed_items import Computed
from ringhaul.cql.failures import server_message
from ringhaul.query.computed_scalars import Describe
from ringhaul.query.errors import QueryError
from ringhaul.scan.ring import refuse_other_partitioners

#: How an error of the server begins, and what to do.
_HINTS = {
    "Cannot infer type": "; such as (int)42 or (text)'abc'",
    "Cannot use selection function": "; since Cassandra 5.0, the elements of a column that is not "
    "frozen have times that can be selected. Leave them out",
}


def describe_with(cluster: ClusterView) -> Describe:
    """Return a function that requests the types of selected items from the cluster."""

    def describe(table: TableSchema, items: Sequence[str]) -> Sequence[Computed]:
        refuse_other_partitioners(cluster)
        text = _select_text(table, items)
        try:
            prepared = cluster.prepare(text)
            if prepared.markers or _is_aggregate(cluster, text):
                for item in items:
                    _check(cluster, table, item)
        except (InvalidRequest, SyntaxException) as error:
            for item in items:
                _check(cluster, table, item)
            raise QueryError(f"the server says: {said_by_server(error)}") from None
        except (DriverException, NoHostAvailable, ErrorMessage) as error:
            raise translate_error(error, where=cluster.name, user=cluster.user) from error
        names, types = marked(prepared.result)
        return [Computed(*one) for one in zip(items, names, types, strict=True)]

    return describe


def _select_text(table: TableSchema, items: Sequence[str]) -> str:
    """Return a SELECT of the items over an empty range."""
    name = f"{quote_identifier(table.keyspace)}.{quote_identifier(table.table)}"
    token = f"token({', '.join(map(quote_identifier, table.partition_key))})"
    return f"SELECT {', '.join(items)} FROM {name} WHERE {token} > 0 AND {token} <= 0"


def _check(cluster: ClusterView, table: TableSchema, item: str) -> None:
    """Raise `QueryError` for an item that the server refuses, with its words, and for markers and
    aggregates."""
    text = _select_text(table, [item])
    try:
        if cluster.prepare(text).markers:
            raise QueryError(f"{quote(item)}: parameters cannot be used here, write the value")
        if _is_aggregate(cluster, text):
            raise QueryError(
                f"{quote(item)} is an aggregate of the server, and the ranges of the ring are read "
                "separately: run it with cqlsh, or use the aggregates of `ringhaul query`"
            )
    except (InvalidRequest, SyntaxException) as error:
        said = said_by_server(error)
        hint = next((hint for begin, hint in _HINTS.items() if said.startswith(begin)), "")
        raise QueryError(f"{quote(item)}: the server says: {said}{hint}") from None


def said_by_server(error: BaseException) -> str:
    """Return the server's words on one line."""
    text = str(getattr(error, "message", None) or error)
    return " ".join(server_message(text).split())


def _is_aggregate(cluster: ClusterView, text: str) -> bool:
    """Return whether a SELECT yields a row although its range is empty, as every aggregate does.

    Such an item would yield a row for each range. The server has more aggregates than we know.
    """
    return cluster.has_row(text)
