"""The types of a prepared statement's markers and of its result, as `CqlType`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any, NamedTuple

from cassandra.cluster import Session
from cassandra.query import PreparedStatement

from ringhaul.cluster.schema import appends
from ringhaul.cql.types import SCALARS, CqlType, UnknownType


class Marked(NamedTuple):
    """Names and types, in the order of the statement."""

    names: tuple[str, ...]
    types: tuple[CqlType, ...]


def markers_of(prepared: PreparedStatement) -> Marked:
    """Return the statement's markers. A counter's marker accepts what a bigint's does."""
    return _marked(prepared.column_metadata or ())


def result_of(prepared: PreparedStatement) -> Marked:
    """Return the columns of the result; empty for a statement that writes."""
    return _marked(prepared.result_metadata or ())


def keyspace_of(prepared: PreparedStatement) -> str | None:
    """Return the statement's keyspace, as far as its markers or its result tell."""
    for column in (*(prepared.column_metadata or ()), *(prepared.result_metadata or ())):
        return str(_field(column, "keyspace_name", 0))
    return None


def is_of_counters(session: Session, prepared: PreparedStatement) -> bool:
    """Return whether the table of its first marker has counters, as far as the session knows."""
    first = next(_types_of_tables(session, prepared), [])
    return "counter" in first


def has_lists(session: Session, prepared: PreparedStatement) -> bool:
    """Return whether some marker's table has a list that is not frozen, see `schema.appends`.

    As far as the session knows.
    """
    return any(map(appends, chain.from_iterable(_types_of_tables(session, prepared))))


def column_order(session: Session, prepared: PreparedStatement) -> list[str]:
    """Return the columns of the table of the first marker, in the table's order, as far as the
    session knows."""
    for column in prepared.column_metadata or ():
        keyspace = session.cluster.metadata.keyspaces.get(_field(column, "keyspace_name", 0))
        table = keyspace and keyspace.tables.get(_field(column, "table_name", 1))
        return list(table.columns) if table else []
    return []


def partition_key_of(session: Session, prepared: PreparedStatement) -> list[str]:
    """Return the partition key of the result's table, as far as the session knows.

    These columns have a value in every row; clustering columns have none in a partition that holds
    only static columns.
    """
    for column in prepared.result_metadata or ():
        keyspace = session.cluster.metadata.keyspaces.get(_field(column, "keyspace_name", 0))
        table = keyspace and keyspace.tables.get(_field(column, "table_name", 1))
        return [key.name for key in table.partition_key] if table else []
    return []


def _types_of_tables(session: Session, prepared: PreparedStatement) -> Iterator[list[str]]:
    """Yield for each marker the CQL types of its table's columns."""
    for column in prepared.column_metadata or ():
        keyspace = session.cluster.metadata.keyspaces.get(_field(column, "keyspace_name", 0))
        table = keyspace and keyspace.tables.get(_field(column, "table_name", 1))
        yield [column.cql_type for column in table.columns.values()] if table else []


def cql_type_of(driver_type: Any) -> CqlType:
    """Return the type that one of the driver's classes stands for. Raises `UnknownType`."""
    name = driver_type.typename
    of = tuple(getattr(driver_type, "subtypes", ()))
    if hasattr(driver_type, "vector_size"):
        return CqlType("vector", (cql_type_of(driver_type.subtype),), size=driver_type.vector_size)
    if name in ("frozen", "org.apache.cassandra.db.marshal.ReversedType"):
        return cql_type_of(of[0])
    if getattr(driver_type, "fieldnames", None) and name != "tuple":
        return CqlType("udt", tuple(map(cql_type_of, of)), tuple(driver_type.fieldnames))
    if name in ("list", "set", "map", "tuple"):
        return CqlType(name, tuple(map(cql_type_of, of)))
    if name == "varchar":
        name = "text"  # two names of one type; the protocol uses this one
    if name not in SCALARS:
        raise UnknownType(
            f"the statement has a marker or a result of type {name}, which ringhaul does not know"
        )
    return CqlType(name)


def _marked(columns: Any) -> Marked:
    return Marked(
        tuple(str(_field(column, "name", 2)) for column in columns),
        tuple(cql_type_of(_field(column, "type", 3)) for column in columns),
    )


def _field(column: Any, name: str, position: int) -> Any:
    """Return a field: the driver has markers as named tuples, result columns as plain tuples."""
    return getattr(column, name) if hasattr(column, name) else column[position]
