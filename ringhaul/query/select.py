"""A SELECT over one table: the columns to read, the result to compute, and what is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest

import pyarrow as pa
from sqlglot import exp

from ringhaul.cluster.schema import TableSchema
from ringhaul.cql.computed_items import Computed
from ringhaul.cql.empties import marked_column
from ringhaul.cql.types import CqlType
from ringhaul.query.computed_scalars import (
    Describe,
    computed_scalar,
    limit_of_partitions,
    undescribed,
)
from ringhaul.query.errors import QueryError
from ringhaul.query.functions import Aggregate, aggregate_of, is_aggregate
from ringhaul.query.literals import literal_of
from ringhaul.query.predicates import Predicate, predicate_of
from ringhaul.query.scalars import Scalar, cannot, column_scalar, scalar_of
from ringhaul.query.scope import Fetch, TableScope
from ringhaul.query.select_text import SelectText, split_select
from ringhaul.query.sql import label_of, name_of, parse_statement, sql_excerpt, without_parentheses
from ringhaul.query.where import Where, each_once, where_of

#: Supported parts of a statement; any other is refused by name.
_ANSWERED = ("expressions", "from", "where", "group", "having", "order", "limit", "distinct")
_SAID = {
    "joins": "joins",
    "laterals": "joins",
    "with": "WITH",
    "windows": "window functions",
    "qualify": "QUALIFY",
    "offset": "OFFSET",
    "locks": "FOR UPDATE",
    "pivots": "PIVOT",
    "sample": "TABLESAMPLE",
    "into": "SELECT INTO",
    "except_": "* EXCEPT",
    "limit_options": "LIMIT with PERCENT or WITH TIES",
    "expressions": "LIMIT BY",
    "with_fill": "WITH FILL",
}


#: Digits of a number of rows, which must fit in an int64.
_LIMIT_DIGITS_MAX = 18


@dataclass(frozen=True)
class Item:
    """A column of the result."""

    name: str
    scalar: Scalar


@dataclass(frozen=True)
class Order:
    """An item of ORDER BY. `scalar` is computed from the result's groups and aggregates."""

    scalar: Scalar
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class Select:
    """A supported SELECT. Without aggregates, `project` each batch."""

    table: TableSchema
    #: Columns that batches must hold, with distinct names; empty if rows are only counted.
    fetches: tuple[Fetch, ...]
    where: Where
    is_aggregate: bool
    #: Computed from the batches' columns, or from `groups` and `aggregates` by their labels.
    items: tuple[Item, ...]
    groups: tuple[Fetch, ...] = ()
    aggregates: tuple[Aggregate, ...] = ()
    having: Predicate | None = None
    order: tuple[Order, ...] = ()
    #: Most rows of the result; without aggregates the caller must apply it.
    limit: int | None = None
    #: Most rows of a partition, which the server applies.
    per_partition: int | None = None
    computed: tuple[Computed, ...] = ()  #: what the server computes for each row

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The names of `fetches`."""
        return tuple(fetch.name for fetch in self.fetches)

    @property
    def names(self) -> tuple[str, ...]:
        """The result's columns."""
        return tuple(item.name for item in self.items)

    @property
    def types(self) -> tuple[CqlType, ...]:
        """The result's types; its arrays have their Arrow forms."""
        return tuple(item.scalar.type for item in self.items)

    def project(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows that match the WHERE, with the result's columns. Not for aggregates."""
        kept = self.where.filter(batch)
        return pa.RecordBatch.from_arrays(
            [item.scalar.evaluate(kept) for item in self.items], list(self.names)
        )

    def project_marked(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Like `project`, for files: columns that hold empty values are in their marked forms."""
        kept = self.where.filter(batch)
        return pa.RecordBatch.from_arrays(
            [
                item.scalar.evaluate(kept)
                if item.scalar.column is None
                else marked_column(kept, item.scalar.column.name)
                for item in self.items
            ],
            list(self.names),
        )


def parse_select(
    sql: str,
    tables: Callable[[str, str], TableSchema],
    keyspace: str = "",
    describe: Describe = undescribed,
) -> Select:
    """Parse `sql`. `tables` returns a table by keyspace and name, or raises its own error;
    `keyspace` is the default keyspace; `describe` says what the server makes of its expressions.
    Raises `QueryError`.
    """
    text = split_select(sql)
    tree = parse_statement(text.sql)
    if isinstance(tree, exp.SetOperation):
        raise QueryError(f"{type(tree).__name__.upper()} cannot be answered: query one table")
    if not isinstance(tree, exp.Select):
        raise QueryError(f"only SELECT can be answered, not {sql_excerpt(tree)[:40]!r}")
    _refuse(tree, _ANSWERED)
    scope = _scope(tree, tables, keyspace)
    try:
        return _Reader(tree, scope, text, describe).select()
    except RecursionError:
        raise QueryError("cannot read the query: it is nested too deeply") from None


def selects_rows(sql: str) -> bool:
    """Return whether a SELECT is about rows: it has no aggregate, no GROUP BY and no DISTINCT.

    Raises `QueryError` for a text that is not SQL.
    """
    tree = parse_statement(split_select(sql).sql)
    if not isinstance(tree, exp.Select) or tree.args.get("group") or tree.args.get("distinct"):
        return False
    return not any(map(_calls_aggregate, tree.expressions))


def has_limit(sql: str) -> bool:
    """Return whether a statement has a LIMIT. Raises `QueryError` for a text that is not SQL."""
    return parse_statement(split_select(sql).sql).args.get("limit") is not None


def _refuse(tree: exp.Expr, answered: tuple[str, ...]) -> None:
    for key, value in tree.args.items():
        name = key.rstrip("_")
        if value and name not in answered:
            raise QueryError(f"{_SAID.get(name, name.upper())} cannot be answered")


def _scope(
    tree: exp.Select, tables: Callable[[str, str], TableSchema], keyspace: str
) -> TableScope:
    source = tree.args.get("from_") or tree.args.get("from")
    if source is None:
        raise QueryError("the query has no FROM: name the table as keyspace.table")
    table = source.this
    if isinstance(table, exp.Subquery):
        raise QueryError("subqueries cannot be answered: FROM takes a table")
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        raise QueryError(f"{sql_excerpt(table)} cannot be answered: FROM takes a table")
    _refuse(table, ("this", "db", "alias"))
    found = table.args.get("db")
    keyspace = name_of(found) if found is not None else keyspace
    if not keyspace:
        raise QueryError(f"FROM {sql_excerpt(table)}: name the table as keyspace.table")
    alias = table.args.get("alias")
    schema = tables(keyspace, name_of(table.this))
    return TableScope(schema, name_of(alias.this) if alias is not None else "")


class _Reader:
    """Reads one SELECT; also the scope of names in its results."""

    def __init__(
        self, tree: exp.Select, scope: TableScope, text: SelectText, describe: Describe
    ) -> None:
        self._tree = tree
        self._scope = scope
        self._text, self._describe = text, describe
        self._aggregates: dict[str, Aggregate] = {}
        self._groups: dict[str, Fetch] = {}
        #: Place in `_wanted` -> what the server computes there.
        self._for_server: dict[int, str] = {}
        #: (name or None, expression) of each item, with * expanded.
        self._wanted = self._expanded()
        self._aliases = {name: node for name, node in self._wanted if name is not None}

    def select(self) -> Select:
        tree = self._tree
        where = tree.args.get("where")
        found_where = where_of(where.this if where is not None else None, self._scope)
        if self._is_aggregate():
            return self._aggregate(found_where)
        for clause in ("having", "order"):
            if tree.args.get(clause):
                word = {"having": "HAVING", "order": "ORDER BY"}[clause]
                raise QueryError(
                    f"{word} is only for aggregates: rows come in the order of their tokens"
                )
        computed = self._computed()
        items = [
            self._plain_item(name, node)
            if place not in computed
            else Item(name or computed[place].name, computed_scalar(computed[place]))
            for place, (name, node) in enumerate(self._wanted)
        ]
        fetches = tuple(fetch for item in items for fetch in item.scalar.fetches)
        return Select(
            table=self._scope.table,
            fetches=each_once(fetches + found_where.fetches),
            where=found_where,
            is_aggregate=False,
            items=_named_once(items),
            limit=self._limit(),
            per_partition=limit_of_partitions(
                self._text.per_partition, found_where, self._scope.table
            ),
            computed=tuple(dict.fromkeys(computed.values())),
        )

    def find(self, node: exp.Expr) -> Fetch | None:
        """Resolve a name or an aggregate over groups."""
        if is_aggregate(node):
            aggregate = aggregate_of(node, self._scope)
            aggregate = self._aggregates.setdefault(aggregate.label, aggregate)
            return Fetch(aggregate.label, "", aggregate.type, is_column=False)
        if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
            raise QueryError("* cannot be combined with aggregates")
        fetch = self._scope.find(node)
        if fetch is not None and fetch.name not in self._groups:
            raise QueryError(f"{fetch.label} must be in GROUP BY or inside an aggregate")
        return fetch

    def _aggregate(self, where: Where) -> Select:
        if self._text.per_partition is not None:
            raise QueryError("PER PARTITION LIMIT is for rows, not for aggregates and groups")
        for fetch in each_once(tuple(self._group_columns())):
            if fetch.type.name == "duration" or not fetch.type.scalar:
                raise QueryError(f"{fetch.label} is {fetch.type.name}: it cannot be grouped by")
            self._groups[fetch.name] = fetch
        items = [self._result_item(name, node) for name, node in self._wanted]
        having = self._tree.args.get("having")
        predicate = None
        if having is not None:
            predicate = predicate_of(self._without_aliases(having.this), self)
        order = [self._order(node) for node in self._ordered()]
        for label in self._aggregates.keys() & self._groups.keys():
            raise QueryError(f'{label} cannot be combined with the column "{label}" of GROUP BY')
        arguments = [a.argument for a in self._aggregates.values() if a.argument is not None]
        fetches = tuple(fetch for argument in arguments for fetch in argument.fetches)
        return Select(
            table=self._scope.table,
            fetches=each_once(tuple(self._groups.values()) + fetches + where.fetches),
            where=where,
            is_aggregate=True,
            items=_named_once(items),
            groups=tuple(self._groups.values()),
            aggregates=tuple(self._aggregates.values()),
            having=predicate,
            order=tuple(order),
            limit=self._limit(),
        )

    def _expanded(self) -> list[tuple[str | None, exp.Expr]]:
        found: list[tuple[str | None, exp.Expr]] = []
        for node, item in zip_longest(self._tree.expressions, self._text.items):
            if item is not None and (item.for_server or self._scope.needs_server(item.path, node)):
                self._for_server[len(found)] = item.cql
                found.append((item.alias, node))
            elif isinstance(node, exp.Alias):
                found.append((name_of(node.args["alias"]), node.this))
            elif isinstance(node, exp.Star) or (
                isinstance(node, exp.Column) and isinstance(node.this, exp.Star)
            ):
                _refuse(node, ("this", "table", "db"))
                for name in self._scope.table.column_names:
                    found.append((None, exp.column(exp.to_identifier(name, quoted=True))))
            else:
                found.append((None, node))
        return found

    def _computed(self) -> dict[int, Computed]:
        """Return what the server computes, by its place in the result."""
        texts = tuple(dict.fromkeys(self._for_server.values()))
        if not texts:
            return {}
        known = {one.cql: one for one in self._describe(self._scope.table, texts)}
        return {place: known[text] for place, text in self._for_server.items()}

    def _is_aggregate(self) -> bool:
        tree = self._tree
        return bool(
            tree.args.get("group")
            or tree.args.get("distinct")
            or any(_calls_aggregate(node) for _, node in self._wanted)
        )

    def _group_columns(self) -> Iterator[Fetch]:
        group = self._tree.args.get("group")
        if self._tree.args.get("distinct"):
            yield from self._distinct_columns(group)
        if group is None:
            return
        _refuse(group, ("expressions",))
        for node in group.expressions:
            place = self._place(node, "GROUP BY")
            target = node if place is None else self._wanted[place][1]
            if place is None and isinstance(node, exp.Column):
                target = self._column_or_alias(node)
            if isinstance(target, exp.Rollup | exp.Cube | exp.GroupingSets):
                raise QueryError(
                    f"{sql_excerpt(target)} cannot be answered: GROUP BY takes columns"
                )
            if _calls_aggregate(target):
                raise QueryError(f"GROUP BY {sql_excerpt(node)}: an aggregate cannot be grouped by")
            fetch = self._scope.find(without_parentheses(target))
            if fetch is None:
                raise QueryError(f"GROUP BY {sql_excerpt(node)}: only columns can be grouped by")
            yield fetch

    def _distinct_columns(self, group: exp.Expr | None) -> Iterator[Fetch]:
        distinct = self._tree.args["distinct"]
        if distinct.args.get("on"):
            raise QueryError("DISTINCT ON cannot be answered")
        if group is not None or any(_calls_aggregate(node) for _, node in self._wanted):
            raise QueryError("SELECT DISTINCT cannot be answered beside aggregates and GROUP BY")
        for name, node in self._wanted:
            column = self._plain_item(name, node).scalar.column
            assert column is not None
            yield column

    def _column_or_alias(self, node: exp.Column) -> exp.Expr:
        """Return the item with the alias `node`, unless the table has a column of that name."""
        name = self._alias(node)
        if name is not None and name not in self._scope.table.column_names:
            return self._aliases[name]
        return node

    def _alias(self, node: exp.Expr) -> str | None:
        """Return the name in `node` if it is an alias of an item."""
        if not isinstance(node, exp.Column) or len(node.parts) > 1:
            return None
        if not isinstance(node.this, exp.Identifier):
            return None
        name = name_of(node.this)
        return name if name in self._aliases else None

    def _without_aliases(self, node: exp.Expr) -> exp.Expr:
        return node.transform(
            lambda part: self._alone(part) if isinstance(part, exp.Column) else part
        )

    def _alone(self, node: exp.Column) -> exp.Expr:
        """Return the expression that `node` names, in parentheses if its operators could combine
        with the surroundings: aggregates are identified by their text."""
        meant = self._column_or_alias(node)
        return exp.paren(meant) if isinstance(meant, exp.Binary | exp.Unary) else meant

    def _plain_item(self, name: str | None, node: exp.Expr) -> Item:
        node = without_parentheses(node)
        fetch = None if literal_of(node) is not None else self._scope.find(node)
        if fetch is None:
            raise QueryError(cannot(node))
        return Item(name or fetch.name, column_scalar(fetch))

    def _result_item(self, name: str | None, node: exp.Expr) -> Item:
        scalar = scalar_of(node, self)
        if name is None:
            column = scalar.column
            name = column.name if column is not None else label_of(node)
        return Item(name, scalar)

    def _ordered(self) -> list[exp.Ordered]:
        order = self._tree.args.get("order")
        return list(order.expressions) if order is not None else []

    def _order(self, node: exp.Ordered) -> Order:
        _refuse(node, ("this", "desc", "nulls_first"))
        place, alias = self._place(node.this, "ORDER BY"), self._alias(node.this)
        if place is not None:
            target = self._wanted[place][1]
        elif alias is not None:  # even if the table has a column of that name
            target = self._aliases[alias]
        else:
            target = self._without_aliases(node.this)
        return Order(
            scalar_of(target, self), bool(node.args.get("desc")), bool(node.args.get("nulls_first"))
        )

    def _place(self, node: exp.Expr, clause: str) -> int | None:
        """Return the index, from 0, of the item that a number in `clause` means."""
        literal = literal_of(node)
        if literal is None:
            return None
        if literal.kind != "number" or not literal.text.isdigit():
            raise QueryError(f"{clause} {literal}: give a column, or a place from 1")
        digits = literal.text.lstrip("0") or "0"
        place = int(digits) if len(digits) <= _LIMIT_DIGITS_MAX else 0
        if not 1 <= place <= len(self._wanted):
            given = digits[:_LIMIT_DIGITS_MAX]
            raise QueryError(f"{clause} {given}: the result has {len(self._wanted)} columns")
        return place - 1

    def _limit(self) -> int | None:
        limit = self._tree.args.get("limit")
        if limit is None:
            return None
        if isinstance(limit, exp.Limit):
            _refuse(limit, ("expression",))
        literal = literal_of(limit.expression) if isinstance(limit, exp.Limit) else None
        if literal is None or literal.kind != "number" or not literal.text.isdigit():
            raise QueryError(f"{sql_excerpt(limit).strip()}: LIMIT takes a whole number")
        if len(literal.text.lstrip("0")) > _LIMIT_DIGITS_MAX:
            raise QueryError(f"LIMIT takes a whole number of at most {_LIMIT_DIGITS_MAX} digits")
        return int(literal.text)


def _calls_aggregate(node: exp.Expr) -> bool:
    return any(is_aggregate(part) for part in node.walk())


def _named_once(items: list[Item]) -> tuple[Item, ...]:
    for name, count in Counter(item.name for item in items).items():
        if count > 1:
            raise QueryError(f"two columns of the result are called {name!r}: name one with AS")
    return tuple(items)
