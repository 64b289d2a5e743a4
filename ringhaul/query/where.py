"""A WHERE over one table: what Cassandra is asked, and what is filtered here."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
from sqlglot import exp

from ringhaul.cluster.schema import TableSchema
from ringhaul.query.errors import QueryError
from ringhaul.query.predicates import Predicate, all_of, conjuncts, predicate_of
from ringhaul.query.pushdown import intersection, partition_keys, refuse_token, token_bound
from ringhaul.query.scope import Fetch, TableScope
from ringhaul.query.sql import parse_condition


@dataclass(frozen=True)
class Where:
    """Which rows are wanted. Read the ranges of `tokens`, or the partitions of `keys`, `filter`."""

    #: What `filter` needs in its batches, by name, each once.
    fetches: tuple[Fetch, ...]
    #: Only tokens in (lo, hi] can hold rows that are wanted; none at all if lo >= hi.
    tokens: tuple[int, int] | None
    #: The only partitions that can hold such rows, as values to bind in the order of the
    #: partition key; None: any. Never beside `tokens`.
    keys: list[tuple[Any, ...]] | None
    #: What is left to test on each row; None: nothing.
    predicate: Predicate | None

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The names of `fetches`."""
        return tuple(fetch.name for fetch in self.fetches)

    @property
    def nothing(self) -> bool:
        """Is it known that no row is wanted?"""
        return self.keys == [] or (self.tokens is not None and self.tokens[0] >= self.tokens[1])

    def filter(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of `batch` for which the rest of the condition is true.

        The bound of `tokens` is not tested again.
        """
        if self.predicate is None:
            return batch
        return batch.filter(self.predicate.evaluate(batch))


def parse_where(text: str, table: TableSchema) -> Where:
    """`text`: what follows WHERE; every row is wanted if it is empty. Raises `QueryError`."""
    return where_of(parse_condition(text), TableScope(table))


def where_of(condition: exp.Expr | None, scope: TableScope) -> Where:
    """From the tree of a condition. Raises `QueryError`."""
    if condition is None:
        return Where((), None, None, None)
    try:
        return _where(condition, scope)
    except RecursionError:
        raise QueryError("cannot read the condition: it is nested too deeply") from None


def _where(condition: exp.Expr, scope: TableScope) -> Where:
    bounds, rest = [], []
    for part in conjuncts(condition):
        bound = token_bound(part, scope)
        if bound is None:
            refuse_token(part)
            rest.append(part)
        else:
            bounds.append(bound)
    predicate = all_of([predicate_of(part, scope) for part in rest]) if rest else None
    tokens = intersection(bounds)
    keys = None if tokens is not None else partition_keys(rest, scope)
    return Where(each_once(predicate.fetches if predicate else ()), tokens, keys, predicate)


def each_once(fetches: tuple[Fetch, ...]) -> tuple[Fetch, ...]:
    """Raises `QueryError` for two of one name: batches know columns by their names."""
    found: dict[str, Fetch] = {}
    for fetch in fetches:
        other = found.setdefault(fetch.name, fetch)
        if other.cql != fetch.cql:
            raise QueryError(
                f"{other.cql} and {fetch.cql} cannot be read together: the table has a column "
                "that is called like the function"
            )
    return tuple(found.values())
