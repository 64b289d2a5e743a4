"""Plan the SELECT and the units of a reading job from a request.

All errors that can be found early are found here, before the job exists and any row is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from producer.plan.selection import selected_items
from producer.request.scan import Wanted
from producer.request.values import table_names
from ringhaul.cluster.consistency import Use, check_consistency
from ringhaul.cluster.schema import TableSchema, quote_identifier
from ringhaul.cluster.tables import find_keyspace, find_table
from ringhaul.cluster.view import ClusterView
from ringhaul.cql.types import CqlType
from ringhaul.destination.cql import UNITS_PER_SLOT
from ringhaul.errors import UsageError
from ringhaul.scan.ranges import FULL_RING, TokenRange, join_units, pack_ranges, plan_ranges
from ringhaul.scan.ring import read_ring

if TYPE_CHECKING:
    from ringhaul.query.select import Select

#: Data of a unit by the server's estimates: a few seconds of work.
UNIT_BYTES = 64 << 20
#: The largest LIMIT that one worker process reads alone, so that its rows come first in the order
#: of their tokens: it has read that many when others have hardly started.
LIMIT_ALONE_MAX = 100_000
#: Maximum number of partitions that one unit looks up.
KEYS_PER_UNIT_MAX = 200


@dataclass(frozen=True, kw_only=True)
class Read:
    """A SELECT that can be run."""

    table: TableSchema
    sql: str
    #: None for all columns of all rows: parsing SQL would take longer than everything else that
    #: the command does.
    select: Select | None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the result's columns."""
        return self.table.column_names if self.select is None else self.select.names

    @property
    def types(self) -> tuple[CqlType, ...]:
        """Types of the result's columns."""
        if self.select is None:
            return tuple(self.table.types.values())
        return self.select.types

    @property
    def type_texts(self) -> tuple[str, ...]:
        """Types of the result's columns as text: from the schema, or as computed by the server."""
        if self.select is None:
            return tuple(self.table.type_of(name) for name in self.names)
        fetches = [item.scalar.column for item in self.select.items]
        return tuple(
            self.table.type_of(fetch.name) if fetch and fetch.is_column else str(cql_type)
            for fetch, cql_type in zip(fetches, self.types, strict=True)
        )


def read_select(cluster: ClusterView, wanted: Wanted) -> Read:
    """Analyse what is to be read. Raises `QueryError` or `UsageError` for what cannot be read at
    all or at the cluster's consistency level, and `ClusterError` for a missing table."""
    read = _read(cluster, wanted)
    refuse_local(cluster, read.table)
    refuse_virtual(cluster, read.table)
    check_consistency(cluster, read.table.keyspace, Use(writes=False))
    return read


def read_selected(cluster: ClusterView, wanted: Wanted) -> Read:
    """Analyse as `read_select` does, and parse even a SELECT of all columns of all rows."""
    from ringhaul.query.select import parse_select

    read = read_select(cluster, wanted)
    if read.select is not None:
        return read
    return replace(read, select=parse_select(read.sql, lambda keyspace, table: read.table))


def shares_limit(read: Read, *, in_order: bool) -> bool:
    """Return whether several units read the rows of a LIMIT, whichever come first. `in_order`: the
    rows are wanted in the order of their tokens."""
    limit = None if read.select is None else read.select.limit
    return limit is not None and limit > LIMIT_ALONE_MAX and not in_order


def refuse_local(cluster: ClusterView, table: TableSchema) -> None:
    """Raise `UsageError` for a table that differs from node to node: ranges are read from any node,
    so the result would be a mixture."""
    keyspace = find_keyspace(cluster, table.keyspace)
    nodes = len(cluster.nodes)
    if (keyspace.is_virtual or keyspace.is_local) and nodes > 1:
        raise UsageError(
            f"each of the {nodes} nodes has its own {table.name}: query the one that you mean "
            "(cqlsh HOST)"
        )


def refuse_virtual(cluster: ClusterView, table: TableSchema) -> None:
    """Raise `UsageError` for a table without token ranges: a node's own state, such as
    `system_views.settings`."""
    if find_keyspace(cluster, table.keyspace).is_virtual:
        raise UsageError(
            f"{table.name} is a virtual table, which has no token ranges: query its node with cqlsh"
        )


def _read(cluster: ClusterView, wanted: Wanted) -> Read:
    sql = wanted.sql
    if sql is None:
        table = table_of(cluster, wanted)
        sql = _select_text(table, wanted)
        if wanted.is_whole_table:
            return Read(table=table, sql=sql, select=None)
    from producer.plan.item_descriptions import describe_with
    from ringhaul.query.select import parse_select

    select = parse_select(
        sql,
        lambda keyspace, table: find_table(cluster, keyspace, table, views=True),
        describe=describe_with(cluster),
    )
    return Read(table=select.table, sql=sql, select=select)


def plan_units(
    cluster: ClusterView, read: Read, slots: int, *, shares_limit: bool = False
) -> list[str]:
    """Return the token ranges of each unit, in token order; an empty list if it is certain that no
    row matches. Rows with a LIMIT are one unit, which ends with the last of them, or several that
    share it.

    Raises `ClusterError` as `read_ring` does.
    """
    table, select = read.table, read.select
    where = None if select is None else select.where
    limit = None if select is None or select.is_aggregate else select.limit
    is_alone = limit is not None and not shares_limit
    bounds = FULL_RING
    ring = read_ring(cluster, table.keyspace)  # refuses partitioners other than Murmur3
    if where is not None:
        if where.nothing or limit == 0:
            return []
        if where.keys is not None:
            tokens = sorted(set(cluster.tokens(table, where.keys)))
            found = _key_units(tokens, slots)
            return [join_units(found)] if is_alone else found
        if where.tokens:
            bounds = TokenRange(*where.tokens)
    # Most units cut by the size of the table would find that others have reached the LIMIT.
    estimates = [] if limit is not None else cluster.estimates(table.keyspace, table.table)
    units = plan_ranges(
        ring,
        estimates,
        units_min=1 if is_alone else UNITS_PER_SLOT * slots,
        bytes_per_unit=UNIT_BYTES,
        bounds=bounds,
    )
    return [pack_ranges(unit.ranges) for unit in units]


def _key_units(tokens: Sequence[int], slots: int) -> list[str]:
    """Return one range of a single token for each partition, spread over the units."""
    each = max(1, min(-(-len(tokens) // (UNITS_PER_SLOT * slots)), KEYS_PER_UNIT_MAX))
    parts = (tokens[first : first + each] for first in range(0, len(tokens), each))
    return [pack_ranges(TokenRange(token - 1, token) for token in part) for part in parts]


def table_of(cluster: ClusterView, wanted: Wanted) -> TableSchema:
    """Return the table that --keyspace and --table name. Raises `UsageError` or `ClusterError`."""
    names = table_names(wanted.table, wanted.keyspace)
    return find_table(cluster, *names, views=True)


def _select_text(table: TableSchema, wanted: Wanted) -> str:
    items, tail = list(wanted.items) or ["*"], ""
    if wanted.mapping:
        items = selected_items(table, wanted.mapping, named=wanted.named, folders=wanted.folders)
    if wanted.where:
        from ringhaul.query.where import parse_where

        parse_where(wanted.where, table)  # refuses more than a condition
    if wanted.counts:
        items, tail = _count_items(table, wanted)
    condition = f" WHERE {_condition(wanted.where, tail)}\n" if wanted.where else ""
    return f"SELECT {', '.join(items)} FROM {_table_text(table)}{condition}{tail}"


def _condition(text: str, tail: str) -> str:
    """Return the condition as given. In front of a `tail`, without a semicolon, ALLOW FILTERING or
    a comment at its end."""
    if not tail:
        return text
    from ringhaul.query.sql import condition_sql, parse_condition

    tree = parse_condition(text)
    return text if tree is None else condition_sql(tree)


def _count_items(table: TableSchema, wanted: Wanted) -> tuple[list[str], str]:
    """Return the SELECT list of a count, and what follows its WHERE."""
    key = [quote_identifier(name) for name in table.partition_key]
    if wanted.top:
        names = ("count", "rows", *(f"rows_{number}" for number in range(2, len(key) + 2)))
        free = next(name for name in names if name not in table.partition_key)
        tail = f" GROUP BY {', '.join(key)} ORDER BY {len(key) + 1} DESC LIMIT {wanted.top}"
        return [*key, f'count(*) AS "{free}"'], tail
    if wanted.by != "total":
        return [f"token({', '.join(key)})"], ""
    return ['count(*) AS "count"'], ""


def _table_text(table: TableSchema) -> str:
    return f"{quote_identifier(table.keyspace)}.{quote_identifier(table.table)}"
