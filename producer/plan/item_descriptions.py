"""Ask the server what it makes of expressions in the list of a SELECT: their names and types."""

from __future__ import annotations

from collections.abc import Sequence

from cassandra import DriverException, InvalidRequest
from cassandra.cluster import NoHostAvailable, Session
from cassandra.protocol import ErrorMessage, SyntaxException
from cassandra.query import PreparedStatement

from ringhaul.cluster.errors import translate_error
from ringhaul.cluster.markers import result_of
from ringhaul.cluster.schema import TableSchema, quote_identifier
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


def describe_with(session: Session) -> Describe:
    """Return a function that requests the types of selected items from the session's cluster."""

    def describe(table: TableSchema, items: Sequence[str]) -> Sequence[Computed]:
        refuse_other_partitioners(session)
        try:
            prepared = _prepare(session, table, items)
            if prepared.column_metadata or _is_aggregate(session, prepared):
                for item in items:
                    _check(session, table, item)
        except (InvalidRequest, SyntaxException) as error:
            for item in items:
                _check(session, table, item)
            raise QueryError(f"the server says: {said_by_server(error)}") from None
        except (DriverException, NoHostAvailable, ErrorMessage) as error:
            cluster = session.cluster
            user = getattr(cluster.auth_provider, "username", "")
            where = str(cluster.metadata.cluster_name)
            raise translate_error(error, where=where, user=user) from error
        names, types = result_of(prepared)
        return [Computed(*one) for one in zip(items, names, types, strict=True)]

    return describe


def _prepare(session: Session, table: TableSchema, items: Sequence[str]) -> PreparedStatement:
    name = f"{quote_identifier(table.keyspace)}.{quote_identifier(table.table)}"
    token = f"token({', '.join(map(quote_identifier, table.partition_key))})"
    return session.prepare(
        f"SELECT {', '.join(items)} FROM {name} WHERE {token} > 0 AND {token} <= 0"
    )


def _check(session: Session, table: TableSchema, item: str) -> None:
    """Raise `QueryError` for an item that the server refuses, with its words, and for markers and
    aggregates."""
    try:
        prepared = _prepare(session, table, [item])
        if prepared.column_metadata:
            raise QueryError(f"{quote(item)}: parameters cannot be used here, write the value")
        if _is_aggregate(session, prepared):
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


def _is_aggregate(session: Session, prepared: PreparedStatement) -> bool:
    """Return whether the item yields a row although its range is empty, as every aggregate does.

    Such an item would yield a row for each range. The server has more aggregates than we know.
    """
    return session.execute(prepared).one() is not None
