"""The schema of a job's table, as plain data that travels with the job.

The producer asks the cluster for it once (`tables.py`); workers never look at the schema, so a job
means the same on every host.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ringhaul.cql.types import CqlType, Fields, UnknownType, parse_type
from ringhaul.option_names import job_option


def appends(cql_type: str) -> bool:
    """Return whether the type is a list that is not frozen.

    Two writes of one row at the same timestamp leave the elements of both in such a list
    (CASSANDRA-11368).
    """
    return cql_type.startswith("list<")


@dataclass(frozen=True, kw_only=True)
class ColumnSchema:
    """One column: its CQL name (case kept) and CQL type, e.g. `text` or `list<int>`."""

    name: str
    cql_type: str
    static: bool = False
    selector: str = ""  #: what reads it, if it is not a column of the table: `writetime("v")`


@dataclass(frozen=True, kw_only=True)
class TableSchema:
    """A table's columns and primary key, in the order of the schema."""

    keyspace: str
    table: str
    columns: tuple[ColumnSchema, ...]
    partition_key: tuple[str, ...]
    clustering_key: tuple[str, ...]
    #: The keyspace's user-defined types: (name, its fields as (name, CQL type)).
    user_types: tuple[tuple[str, Fields], ...] = ()

    @property
    def name(self) -> str:
        """`keyspace.table` as a person writes it."""
        return f"{self.keyspace}.{self.table}"

    @property
    def primary_key(self) -> tuple[str, ...]:
        return self.partition_key + self.clustering_key

    @property
    def never_null(self) -> tuple[str, ...]:
        """The columns in which every row has a value: the primary key.

        In a table with static columns only the partition key: a partition that has only static
        values is one row without clustering columns.
        """
        static = any(column.static for column in self.columns)
        return self.partition_key if static else self.primary_key

    def without_rows(self, columns: Sequence[str]) -> list[str]:
        """Return which `columns` have values in a partition without rows.

        These are the partition key and static columns; empty if `columns` has no static column.
        """
        static = {column.name for column in self.columns if column.static}
        if not self.clustering_key or not static.intersection(columns):
            return []
        return [name for name in columns if name in static or name in self.partition_key]

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def selector_of(self, column: str) -> str:
        """Return what a SELECT names to read an existing column."""
        selector = next(c.selector for c in self.columns if c.name == column)
        return selector or quote_identifier(column)

    def type_of(self, column: str) -> str:
        """Return the CQL type of an existing column."""
        return next(c.cql_type for c in self.columns if c.name == column)

    def is_multi_cell(self, column: str) -> bool:
        """Return whether each element of an existing column has its own write time: a collection
        or user-defined type that is not frozen."""
        if self.type_of(column).lower().startswith("frozen"):
            return False
        try:
            return self.parsed_type(column).name in ("list", "set", "map", "udt")
        except UnknownType:
            return False

    @cached_property
    def types(self) -> dict[str, CqlType]:
        """Column -> its type, for all columns. Raises as `parsed_type` does."""
        return {name: self.parsed_type(name) for name in self.column_names}

    def parsed_type(self, column: str) -> CqlType:
        """Return the type of an existing column. Raises `UnknownType` that names the column."""
        try:
            return parse_type(self.type_of(column), dict(self.user_types))
        except UnknownType:
            raise UnknownType(
                f"column {column!r} of {self.name} has type {self.type_of(column)}, which ringhaul "
                f"does not know: name the other columns ({job_option('columns')}, or those of a "
                "SELECT)"
            ) from None

    def to_json(self) -> dict[str, Any]:
        return {
            "keyspace": self.keyspace,
            "table": self.table,
            "columns": [
                [c.name, c.cql_type, c.static, *([c.selector] if c.selector else [])]
                for c in self.columns
            ],
            "partition_key": list(self.partition_key),
            "clustering_key": list(self.clustering_key),
            "user_types": [[name, [list(pair) for pair in f]] for name, f in self.user_types],
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> TableSchema:
        return cls(
            keyspace=data["keyspace"],
            table=data["table"],
            columns=tuple(
                ColumnSchema(
                    name=name, cql_type=cql_type, static=static, selector="".join(selector)
                )
                for name, cql_type, static, *selector in data["columns"]
            ),
            partition_key=tuple(data["partition_key"]),
            clustering_key=tuple(data["clustering_key"]),
            user_types=tuple(
                (name, tuple((field, cql_type) for field, cql_type in fields))
                for name, fields in data["user_types"]
            ),
        )


def no_column(name: str, table: TableSchema) -> str:
    """Return the message for an unknown column, with the nearest name as CQL spells it.

    Such as `no column 'totl' in table shop.orders; did you mean 'total'?`
    """
    near = _near(name, table.column_names)
    if not near:
        return f"no column {name!r} in table {table.name}"
    plain = near[0].isidentifier() and near[0].islower()
    spelt = near[0] if plain else quote_identifier(near[0])
    return f"no column {name!r} in table {table.name}; did you mean {spelt!r}?"


def nearest(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'orders'?`, or "" if no name is near."""
    near = _near(name, list(known))
    return f"; did you mean {near[0]!r}?" if near else ""


def _near(name: str, known: Sequence[str]) -> Sequence[str]:
    return difflib.get_close_matches(name, known, n=1, cutoff=0.6) or [
        candidate for candidate in known if candidate.lower() == name.lower()
    ]


def quote_identifier(name: str) -> str:
    """Return a CQL identifier in double quotes, so that its case and any character are kept."""
    return '"' + name.replace('"', '""') + '"'
