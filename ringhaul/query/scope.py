"""Resolve names: the columns of a table, and the values that CQL computes from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from sqlglot import exp

from ringhaul.cluster.schema import TableSchema, no_column, quote_identifier
from ringhaul.cql.types import CqlType
from ringhaul.query.errors import QueryError
from ringhaul.query.sql import name_of, sql_excerpt

_BIGINT, _INT = CqlType("bigint"), CqlType("int")
#: Functions of columns, known here without asking the server: name -> type.
SELECTORS = {"writetime": _BIGINT, "ttl": _INT, "token": _BIGINT}

#: sqlglot's names of aggregate functions -> ours.
AGGREGATES = {
    "count": "count",
    "sum": "sum",
    "avg": "avg",
    "min": "min",
    "max": "max",
    "stddev": "stddev",
    "stddev_samp": "stddev",
    "stddev_pop": "stddev_pop",
    "variance": "variance",
    "variance_pop": "var_pop",
    "approx_distinct": "approx_distinct",
    "quantile": "quantile",
    "median": "median",
}


@dataclass(frozen=True)
class Fetch:
    """One column of a batch."""

    #: Its name in the batch: `total`, `writetime(total)`, `token(id)`.
    name: str
    #: The CQL expression that selects it.
    cql: str
    type: CqlType
    #: Whether it is a column of the table, not computed from columns.
    is_column: bool = True

    @property
    def label(self) -> str:
        return f"column {self.name!r}" if self.is_column else self.name

    @property
    def selector(self) -> str:
        """The item of the server's SELECT, under the batch's name."""
        return self.cql if self.is_column else f"{self.cql} AS {quote_identifier(self.name)}"


class Scope(Protocol):
    """The names that an expression may use, which depend on its clause."""

    def find(self, node: exp.Expr) -> Fetch | None:
        """Return what `node` names; None if it is not a name but an expression.

        Raises `QueryError` for an unknown name, or a name that cannot be used here.
        """


class TableScope:
    """The columns of one table."""

    def __init__(self, table: TableSchema, alias: str = "") -> None:
        self.table = table
        self._qualifiers = {table.table, alias} - {""}

    def find(self, node: exp.Expr) -> Fetch | None:
        if isinstance(node, exp.Column):
            return self.column(self.name(node))
        function = function_name(node)
        if function not in SELECTORS or not isinstance(node, exp.Anonymous):
            return None
        columns = [self.column(self.name(argument)) for argument in node.expressions]
        if function == "token":
            self._check_token([column.name for column in columns])
        elif len(columns) != 1:
            raise QueryError(f"{sql_excerpt(node)}: {function}() takes one column")
        else:
            self._check_cell(function, columns[0])
        return Fetch(
            name=f"{function}({', '.join(column.name for column in columns)})",
            cql=f"{function}({', '.join(column.cql for column in columns)})",
            type=SELECTORS[function],
            is_column=False,
        )

    def needs_server(self, path: Sequence[str], node: exp.Expr) -> bool:
        """Return whether only the server can answer an item of a list: `a.b` that is a field of a
        column, and not a column of the table `a`, or write times or TTLs of a column's elements."""
        if len(path) > 1 and path[0] in self.table.column_names:
            return self.table.parsed_type(path[0]).name == "udt"
        call = node.this if isinstance(node, exp.Alias) else node
        if not isinstance(call, exp.Anonymous) or function_name(call) not in ("writetime", "ttl"):
            return False
        columns = [self.column(self.name(argument)) for argument in call.expressions]
        return len(columns) == 1 and self.table.is_multi_cell(columns[0].name)

    def name(self, node: exp.Expr) -> str:
        """Return the column name in `node`. Raises `QueryError` if it is not a column."""
        if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier):
            raise QueryError(f"{sql_excerpt(node)} is not a column")
        qualifiers = [name_of(part) for part in node.parts[:-1]]
        if qualifiers and (
            qualifiers[-1] not in self._qualifiers or qualifiers[:-1] not in ([], [self._keyspace])
        ):
            raise QueryError(
                f"{sql_excerpt(node)} is not a column of {self.table.name}: "
                "only the list of a SELECT of rows can have fields of columns"
            )
        return name_of(node.this)

    def column(self, name: str) -> Fetch:
        if name not in self.table.column_names:
            raise QueryError(no_column(name, self.table))
        return Fetch(name, quote_identifier(name), self.table.parsed_type(name))

    @property
    def _keyspace(self) -> str:
        return self.table.keyspace

    def _check_token(self, names: list[str]) -> None:
        key = list(self.table.partition_key)
        if names != key:
            raise QueryError(
                f"token() takes the partition key of {self.table.name}: token({', '.join(key)})"
            )

    def _check_cell(self, function: str, column: Fetch) -> None:
        """Raise `QueryError` for a column without a single writetime or ttl: primary keys have
        none, collections one per element."""
        if column.name in self.table.primary_key:
            raise QueryError(f"{function}({column.name}): a primary key column has none")
        if self.table.is_multi_cell(column.name):
            raise QueryError(
                f"{function}({column.name}): a {column.type.name} has one for each element; only "
                "the list of a SELECT of rows can have them"
            )


def function_name(node: exp.Expr) -> str:
    """Return the function that `node` calls, in lower case; empty if it is not a call."""
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower()
    return node.sql_name().lower() if isinstance(node, exp.Func) else ""
