"""From a request to the SELECT and the units of a read job.

Everything that can be wrong is found here, before the job exists and before a row is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cassandra.cluster import Session
from cassandra.metadata import LocalStrategy, Murmur3Token

from producer.request.scan import Wanted
from producer.request.values import table_names
from ringhaul.cluster.consistency import Use, check_consistency
from ringhaul.cluster.schema import TableSchema, find_table, quote_identifier
from ringhaul.cql.types import CqlType
from ringhaul.errors import UsageError
from ringhaul.scan.ranges import FULL_RING, TokenRange, pack_ranges, plan_ranges
from ringhaul.scan.ring import read_estimates, read_ring

if TYPE_CHECKING:
    from ringhaul.query.select import Select

#: Units for each worker process at least, so that none is idle at the end for long.
UNITS_PER_SLOT = 4
#: Data of a unit, as the server's estimates have it: seconds of work.
UNIT_BYTES = 64 << 20
#: Partitions that one unit looks up at most.
KEYS_PER_UNIT_MAX = 200


@dataclass(frozen=True, kw_only=True)
class Read:
    """A SELECT that can be answered."""

    table: TableSchema
    sql: str
    #: None: it is all columns of all rows, and was not looked at, as reading SQL takes a command
    #: longer than all that it does itself.
    select: Select | None

    @property
    def names(self) -> tuple[str, ...]:
        """Of the result's columns."""
        return self.table.column_names if self.select is None else self.select.names

    @property
    def types(self) -> tuple[CqlType, ...]:
        """Of the result's columns."""
        if self.select is None:
            return tuple(self.table.types.values())
        return self.select.types

    @property
    def type_texts(self) -> tuple[str, ...]:
        """Of the result's columns: as the schema has them, or of what the server computes."""
        if self.select is None:
            return tuple(self.table.type_of(name) for name in self.names)
        fetches = [item.scalar.column for item in self.select.items]
        return tuple(
            self.table.type_of(fetch.name) if fetch and fetch.is_column else str(cql_type)
            for fetch, cql_type in zip(fetches, self.types, strict=True)
        )


def read_select(session: Session, wanted: Wanted) -> Read:
    """Raises `QueryError` or `UsageError` for what cannot be read, or not at the session's
    consistency; `ClusterError` for a table that is not there."""
    read = _read(session, wanted)
    refuse_local(session, read.table)
    check_consistency(session, read.table.keyspace, Use(writes=False))
    return read


def refuse_local(session: Session, table: TableSchema) -> None:
    """Raise `UsageError` for a table of which each node of several has one of its own: ranges are
    read from any node, and the rows would be a mixture."""
    metadata = session.cluster.metadata
    keyspace = metadata.keyspaces[table.keyspace]
    local = keyspace.virtual or isinstance(keyspace.replication_strategy, LocalStrategy)
    nodes = len(metadata.all_hosts())
    if local and nodes > 1:
        raise UsageError(
            f"each of the {nodes} nodes has a {table.name} of its own: ask the one that is meant "
            "(cqlsh HOST)"
        )


def _read(session: Session, wanted: Wanted) -> Read:
    metadata = session.cluster.metadata
    sql = wanted.sql
    if sql is None:
        table = table_of(session, wanted)
        sql = _select_text(table, wanted)
        if wanted.is_whole_table:
            return Read(table=table, sql=sql, select=None)
    from ringhaul.query.select import parse_select

    select = parse_select(sql, lambda keyspace, table: find_table(metadata, keyspace, table))
    return Read(table=select.table, sql=sql, select=select)


def plan_units(session: Session, read: Read, slots: int) -> list[str]:
    """The token ranges of each unit, in token order; none if it is known that no row is wanted.

    Raises `ClusterError` as `read_ring` does.
    """
    table = read.table
    where = None if read.select is None else read.select.where
    bounds = FULL_RING
    ring = read_ring(session, table.keyspace)  # which refuses other tokens than Murmur3's
    if where is not None:
        if where.nothing:
            return []
        if where.keys is not None:
            return _key_units(_tokens_of(session, table, where.keys), slots)
        if where.tokens:
            bounds = TokenRange(*where.tokens)
    units = plan_ranges(
        ring,
        read_estimates(session, table.keyspace, table.table),
        units_min=UNITS_PER_SLOT * slots,
        bytes_per_unit=UNIT_BYTES,
        bounds=bounds,
    )
    return [pack_ranges(unit.ranges) for unit in units]


def _key_units(tokens: Sequence[int], slots: int) -> list[str]:
    """A range of one token for each partition, spread over the units."""
    each = max(1, min(-(-len(tokens) // (UNITS_PER_SLOT * slots)), KEYS_PER_UNIT_MAX))
    parts = (tokens[first : first + each] for first in range(0, len(tokens), each))
    return [pack_ranges(TokenRange(token - 1, token) for token in part) for part in parts]


def _tokens_of(
    session: Session, table: TableSchema, keys: Sequence[tuple[object, ...]]
) -> list[int]:
    """The tokens of partition keys, ascending, each once."""
    names = [quote_identifier(name) for name in table.partition_key]
    prepared = session.prepare(
        f"SELECT {names[0]} FROM {_table_text(table)} "
        f"WHERE {' AND '.join(f'{name} = ?' for name in names)}"
    )
    routing = (prepared.bind(key).routing_key for key in keys)
    return sorted({Murmur3Token.from_key(key).value for key in routing})


def table_of(session: Session, wanted: Wanted) -> TableSchema:
    """The table that --keyspace and --table name. Raises `UsageError` or `ClusterError`."""
    return find_table(session.cluster.metadata, *table_names(wanted.table, wanted.keyspace))


def _select_text(table: TableSchema, wanted: Wanted) -> str:
    items, tail = list(wanted.items) or ["*"], ""
    if wanted.where:
        from ringhaul.query.where import parse_where

        parse_where(wanted.where, table)  # refuses what is more than a condition
    if wanted.counts:
        items, tail = _count_items(table, wanted)
    condition = f" WHERE {_condition(wanted.where, tail)}\n" if wanted.where else ""
    return f"SELECT {', '.join(items)} FROM {_table_text(table)}{condition}{tail}"


def _condition(text: str, tail: str) -> str:
    """The condition as given. In front of a `tail`: without the semicolon, the ALLOW FILTERING or
    the comment that it may end with."""
    if not tail:
        return text
    from ringhaul.query.sql import condition_sql, parse_condition

    tree = parse_condition(text)
    return text if tree is None else condition_sql(tree)


def _count_items(table: TableSchema, wanted: Wanted) -> tuple[list[str], str]:
    """What a count selects, and what follows its WHERE."""
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
