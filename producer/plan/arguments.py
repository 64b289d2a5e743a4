"""Have the server check the functions of `--mapping`, and say what types of fields they take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cassandra import DriverException, InvalidRequest
from cassandra.cluster import NoHostAvailable
from cassandra.protocol import ErrorMessage, SyntaxException

from producer.plan.heads import Heads
from producer.plan.item_descriptions import said_by_server
from ringhaul.cluster.errors import translate_error
from ringhaul.cluster.prepared import marked
from ringhaul.cluster.schema import TableSchema
from ringhaul.cluster.view import ClusterView
from ringhaul.cql.typed import refusal
from ringhaul.cql.types import CqlType
from ringhaul.errors import UsageError
from ringhaul.load.statement import insert_statement
from ringhaul.records.job import Argument, LoadSource

Filled = tuple[tuple[str, str], ...]


def with_arguments(
    cluster: ClusterView, heads: Heads, table: TableSchema, sources: Sequence[LoadSource]
) -> tuple[LoadSource, ...]:
    """Return the sources with the types that functions of their mappings take.

    Raises `UsageError` for a function that the server refuses, and for a Parquet column of a type
    that does not become an argument's.
    """
    known: dict[Filled, list[CqlType]] = {}
    found = []
    for source in sources:
        if source.filled not in known:
            known[source.filled] = _types(cluster, table, source)
        types = known[source.filled]
        arguments = [
            one._replace(type=kind) for one, kind in zip(source.arguments, types, strict=True)
        ]
        _check_parquet(heads, source, arguments)
        found.append(replace(source, arguments=tuple(arguments)))
    return tuple(found)


def _types(cluster: ClusterView, table: TableSchema, source: LoadSource) -> list[CqlType]:
    """Return the type of each argument, from an INSERT for each function, so that an error belongs
    to a single function."""
    key = table.primary_key
    types: list[CqlType] = []
    for column, expression in source.filled:
        statement = insert_statement(table, key, 0, filled=((column, expression),))
        try:
            prepared = cluster.prepare(statement)
        except (InvalidRequest, SyntaxException) as error:
            text, hint = expression, ""
            if "?" in expression and len(types) < len(source.arguments):
                argument = source.arguments[len(types)]
                text = argument.call
                hint = f". The type of a field may be given, as in (int){argument.field}"
            raise UsageError(
                f"--mapping {text}={column}: the server says: {said_by_server(error)}{hint}"
            ) from None
        except (DriverException, NoHostAvailable, ErrorMessage) as error:
            raise translate_error(error, where=cluster.name, user=cluster.user) from error
        # After the key come the function's markers, then the timestamp's.
        types += marked(prepared.markers).types[len(key) : -1]
    if len(types) != len(source.arguments):
        raise UsageError("--mapping: a function takes fields by their names, not by ?")
    return types


def _check_parquet(heads: Heads, source: LoadSource, arguments: Sequence[Argument]) -> None:
    if source.format != "parquet" or not arguments or source.results:
        return
    schema = heads[source.file].columns().schema
    for one in arguments:
        arrow = schema.field(one.field).type
        if refusal(one.type, arrow) is not None:
            raise UsageError(
                f"{source.file.path}: column {one.field!r} has the type {arrow}, which does not "
                f"become {one.type}, as --mapping {one.call} wants"
            )
