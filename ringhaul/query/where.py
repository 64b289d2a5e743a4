"""A WHERE over one table: the part that Cassandra evaluates, and the part that is filtered here."""

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
    """The rows to select: read the range `tokens`, or the partitions `keys`, then `filter`."""

    #: Columns that `filter` needs in its batches, with distinct names.
    fetches: tuple[Fetch, ...]
    #: Only tokens in (lo, hi] can hold matching rows; no token if lo >= hi. None: any token.
    tokens: tuple[int, int] | None
    #: The only partitions that can hold matching rows, as values to bind in the order of the
    #: partition key; None: any. Never set together with `tokens`.
    keys: list[tuple[Any, ...]] | None
    #: The remaining condition to test on each row, if any.
    predicate: Predicate | None

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The names of `fetches`."""
        return tuple(fetch.name for fetch in self.fetches)

    @property
    def nothing(self) -> bool:
        """Whether no row can match."""
        return self.keys == [] or (self.tokens is not None and self.tokens[0] >= self.tokens[1])

    def filter(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of `batch` for which the remaining condition is true.

        The range `tokens` is not tested again.
        """
        if self.predicate is None:
            return batch
        return batch.filter(self.predicate.evaluate(batch))


def parse_where(text: str, table: TableSchema) -> Where:
    """Parse `text`, which follows WHERE; if empty, every row matches. Raises `QueryError`."""
    return where_of(parse_condition(text), TableScope(table))


def where_of(condition: exp.Expr | None, scope: TableScope) -> Where:
    """Return the `Where` of a parsed condition. Raises `QueryError`."""
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
    """Return distinct fetches. Raises `QueryError` if two different fetches share a name, as
    batches identify columns by name."""
    found: dict[str, Fetch] = {}
    for fetch in fetches:
        other = found.setdefault(fetch.name, fetch)
        if other.cql != fetch.cql:
            raise QueryError(
                f"{other.cql} and {fetch.cql} cannot be read together: the table has a column "
                "with the name of the function"
            )
    return tuple(found.values())
