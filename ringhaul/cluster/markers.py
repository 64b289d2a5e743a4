"""The types of a prepared statement's markers and of its result, as `CqlType`."""

from __future__ import annotations

from typing import Any

from cassandra.query import PreparedStatement

from ringhaul.cluster.prepared import Marked, Prepared, PreparedColumn
from ringhaul.cql.types import SCALARS, CqlType, UnknownType


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


def described(prepared: PreparedStatement) -> Prepared:
    """Return what the server tells of a statement, as a record."""
    return Prepared(
        markers=tuple(map(_column, prepared.column_metadata or ())),
        result=tuple(map(_column, prepared.result_metadata or ())),
    )


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


def _column(column: Any) -> PreparedColumn:
    known, unknown = None, ""
    try:
        known = cql_type_of(_field(column, "type", 3))
    except UnknownType as error:
        unknown = str(error)
    return PreparedColumn(
        keyspace=str(_field(column, "keyspace_name", 0)),
        table=str(_field(column, "table_name", 1)),
        name=str(_field(column, "name", 2)),
        type=known,
        unknown=unknown,
    )


def _field(column: Any, name: str, position: int) -> Any:
    """Return a field: the driver has markers as named tuples, result columns as plain tuples."""
    return getattr(column, name) if hasattr(column, name) else column[position]
