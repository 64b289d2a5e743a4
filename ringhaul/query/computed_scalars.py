"""Values that the server computes for the rows of a SELECT, and how many of each partition it
sends."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ringhaul.cluster.schema import TableSchema
from ringhaul.cql.computed_items import Computed
from ringhaul.query.errors import QueryError
from ringhaul.query.scalars import Scalar, column_scalar
from ringhaul.query.scope import Fetch
from ringhaul.query.where import Where

#: The largest PER PARTITION LIMIT of the server.
PER_PARTITION_MAX = 2**31 - 1


#: Returns what the server says of some items of a SELECT over a table, in their order. Raises
#: `QueryError` for an item that the server refuses.
Describe = Callable[[TableSchema, Sequence[str]], Sequence[Computed]]


def computed_scalar(computed: Computed) -> Scalar:
    """Return the value as a column of batches, under its own text."""
    return column_scalar(Fetch(computed.cql, computed.cql, computed.type, is_column=False))


def undescribed(table: TableSchema, items: Sequence[str]) -> Sequence[Computed]:
    """Raise `QueryError`: these items need a server to evaluate them."""
    raise QueryError(f"{items[0]}: only rows can have what the server computes")


def limit_of_partitions(text: str | None, where: Where, table: TableSchema) -> int | None:
    """Return the number of a PER PARTITION LIMIT. Raises `QueryError` for a limit that is not a
    number, or that would count rows which the condition drops later."""
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal()) or not 1 <= int(text[:11]) <= PER_PARTITION_MAX:
        raise QueryError(
            f"PER PARTITION LIMIT {text[:40]}: it takes a whole number from 1 to "
            f"{PER_PARTITION_MAX:,}"
        )
    of_partition = {*table.partition_key, *(c.name for c in table.columns if c.static)}
    for fetch in where.fetches:
        if fetch.name not in of_partition:
            raise QueryError(
                f"PER PARTITION LIMIT {text} with a condition on {fetch.label}: the nodes limit "
                "the rows before the workers test the condition. Conditions on the partition key, "
                "its token() and static columns are allowed"
            )
    return int(text)
