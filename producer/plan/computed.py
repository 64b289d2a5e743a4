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
from ringhaul.cql.computed import Computed
from ringhaul.cql.failures import server_message
from ringhaul.query.computed import Describe
from ringhaul.query.errors import QueryError
from ringhaul.query.select_text import calls_of

_TYPE_HINT = "Cannot infer type"


def describe_with(session: Session) -> Describe:
    """Return what asks the session's cluster."""

    def describe(table: TableSchema, items: Sequence[str]) -> Sequence[Computed]:
        for item in items:
            _refuse_aggregates(session, table, item)
        try:
            prepared = _prepare(session, table, items)
        except (InvalidRequest, SyntaxException) as error:
            for item in items:
                _check(session, table, item)
            raise QueryError(f"the server says: {_said(error)}") from None
        except (DriverException, NoHostAvailable, ErrorMessage) as error:
            cluster = session.cluster
            user = getattr(cluster.auth_provider, "username", "")
            where = str(cluster.metadata.cluster_name)
            raise translate_error(error, where=where, user=user) from error
        if prepared.column_metadata:
            for item in items:
                _check(session, table, item)
        names, types = result_of(prepared)
        return [Computed(*one) for one in zip(items, names, types, strict=True)]

    return describe


def _prepare(session: Session, table: TableSchema, items: Sequence[str]) -> PreparedStatement:
    name = f"{quote_identifier(table.keyspace)}.{quote_identifier(table.table)}"
    return session.prepare(f"SELECT {', '.join(items)} FROM {name}")


def _check(session: Session, table: TableSchema, item: str) -> None:
    """Raise `QueryError` with the server's words if it refuses the item, or if it has markers."""
    try:
        if _prepare(session, table, [item]).column_metadata:
            raise QueryError(f"{quote(item)}: parameters cannot be used here, write the value")
    except (InvalidRequest, SyntaxException) as error:
        said = _said(error)
        hint = "; such as (int)42 or (text)'abc'" if said.startswith(_TYPE_HINT) else ""
        raise QueryError(f"{quote(item)}: the server says: {said}{hint}") from None


def _said(error: BaseException) -> str:
    text = str(getattr(error, "message", None) or error)
    return " ".join(server_message(text).split())


def _refuse_aggregates(session: Session, table: TableSchema, item: str) -> None:
    """Raise `QueryError` for a user-defined aggregate: it would give a row for each range."""
    keyspaces = session.cluster.metadata.keyspaces
    for keyspace, name in calls_of(item):
        known = keyspaces.get(keyspace or table.keyspace)
        for aggregate in known.aggregates.values() if known is not None else ():
            if aggregate.name == name:
                raise QueryError(
                    f"{quote(item)}: {aggregate.keyspace}.{name}() is a user-defined aggregate, "
                    "and the ranges of the ring are read separately: ask one node (cqlsh), or use "
                    "the aggregates of `ringhaul query`"
                )
