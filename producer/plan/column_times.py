"""The write times and TTLs that a verification compares, as columns of the table."""

from __future__ import annotations

from dataclasses import replace

from ringhaul.cluster.schema import ColumnSchema, TableSchema, quote_identifier

_TYPES = {"writetime": "bigint", "ttl": "int"}


def with_times(table: TableSchema) -> TableSchema:
    """Return the table with a column for each write time and TTL that CQL can select.

    They are named as an unload names them, `writetime(v)` and `ttl(v)`. Keys, counters, and
    collections and user types that are not frozen have none.
    """
    return replace(
        table,
        columns=(
            *table.columns,
            *(
                ColumnSchema(
                    name=f"{function}({column.name})",
                    cql_type=cql_type,
                    static=column.static,
                    selector=f"{function}({quote_identifier(column.name)})",
                )
                for column in table.columns
                if column.name not in table.primary_key
                and column.cql_type != "counter"
                and not table.is_multi_cell(column.name)
                for function, cql_type in _TYPES.items()
                if f"{function}({column.name})" not in table.column_names
            ),
        ),
    )
