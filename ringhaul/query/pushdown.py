"""The part of a WHERE that Cassandra evaluates itself: token ranges and partition keys."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from sqlglot import exp

from ringhaul.cluster.schema import TableSchema
from ringhaul.query.errors import QueryError
from ringhaul.query.literals import Literal, literal_of, typed
from ringhaul.query.predicates import is_negated
from ringhaul.query.scalars import literal_in
from ringhaul.query.scope import TableScope, function_name
from ringhaul.query.sql import sql_excerpt, without_parentheses

TOKEN_MIN, TOKEN_MAX = -(2**63), 2**63 - 1
#: With more partition keys than this the table is scanned instead of looking up each key.
KEYS_MAX = 10_000
#: Types whose equal values may be different keys: 1.5 and 1.50, 0.0 and -0.0.
_UNLIKE_KEYS = ("decimal", "float", "double")

#: Operation -> range (lo, hi] of the tokens that satisfy it.
_BOUNDS: dict[type[exp.Expr], Callable[[int], tuple[int, int]]] = {
    exp.EQ: lambda value: (value - 1, value),
    exp.LT: lambda value: (TOKEN_MIN, value - 1),
    exp.LTE: lambda value: (TOKEN_MIN, value),
    exp.GT: lambda value: (value, TOKEN_MAX),
    exp.GTE: lambda value: (value - 1, TOKEN_MAX),
}
_MIRRORED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.EQ: exp.EQ,
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
}


def token_bound(node: exp.Expr, scope: TableScope) -> tuple[int, int] | None:
    """Return the range (lo, hi] of a condition on token(); None if `node` is not one.

    Bounds are within int64; lo >= hi means an empty range. No partition has the token -2^63.
    """
    if is_negated(node):
        return None
    if isinstance(node, exp.Between) and _is_token(node.this):
        scope.find(node.this)
        low, high = _token(node.args["low"], node), _token(node.args["high"], node)
        return _clamped(low - 1, high)
    bounds = _BOUNDS.get(type(node))
    if bounds is None:
        return None
    side, value, kind = node.this, node.expression, type(node)
    if not _is_token(side):
        side, value, kind = value, side, _MIRRORED[type(node)]
    if not _is_token(side):
        return None
    scope.find(without_parentheses(side))
    return _clamped(*_BOUNDS[kind](_token(value, node)))


def refuse_token(node: exp.Expr) -> None:
    """Raise `QueryError` if a condition that is not a bound contains token()."""
    if any(_is_token(part) for part in node.walk()):
        raise QueryError(
            f"{sql_excerpt(node)}: token() can only be compared with whole numbers: = < <= > >= "
            "or BETWEEN, and joined to other conditions by AND"
        )


def intersection(bounds: list[tuple[int, int]]) -> tuple[int, int] | None:
    """Return the intersection of `bounds`; None if there are none."""
    if not bounds:
        return None
    low, high = max(low for low, _ in bounds), min(high for _, high in bounds)
    return (low, max(low, high))


def partition_keys(parts: list[exp.Expr], scope: TableScope) -> list[tuple[Any, ...]] | None:
    """Return every partition key that satisfies `parts`, which are joined by AND.

    None if they do not restrict the whole key by = or IN, or leave more than `KEYS_MAX` keys.
    """
    table = scope.table
    allowed: dict[str, dict[Any, None]] = {}
    for part in parts:
        found = _values(part, scope)
        if found is None:
            continue
        column, values = found
        before = allowed.get(column)
        allowed[column] = values if before is None else {v: None for v in before if v in values}
    if not _restricted(table, allowed):
        return None
    choices = [list(allowed[column]) for column in table.partition_key]
    count = 1
    for choice in choices:
        count *= len(choice)
    if count > KEYS_MAX:
        return None
    return list(itertools.product(*choices))


def _restricted(table: TableSchema, allowed: dict[str, dict[Any, None]]) -> bool:
    return all(
        column in allowed and table.parsed_type(column).name not in _UNLIKE_KEYS
        for column in table.partition_key
    )


def _values(node: exp.Expr, scope: TableScope) -> tuple[str, dict[Any, None]] | None:
    """Return the column and the values of `column = value` or `column IN (values)`."""
    if is_negated(node):
        return None
    if isinstance(node, exp.In) and node.expressions:
        side, values = node.this, node.expressions
    elif isinstance(node, exp.EQ):
        side, values = node.this, [node.expression]
        if literal_in(side, scope) is not None:
            side, values = node.expression, [node.this]
    else:
        return None
    side = without_parentheses(side)
    if not isinstance(side, exp.Column) or literal_in(side, scope) is not None:
        return None
    column = scope.find(side)
    if column is None or column.name not in scope.table.partition_key:
        return None
    literals = [literal_in(value, scope) for value in values]
    if any(literal is None for literal in literals):
        return None
    known = [item for item in literals if isinstance(item, Literal) and item.kind != "null"]
    return column.name, {typed(item, column.type, column.label).bound: None for item in known}


def _is_token(node: exp.Expr) -> bool:
    return function_name(without_parentheses(node)) == "token"


def _token(node: exp.Expr, whole: exp.Expr) -> int:
    literal = literal_of(node)
    if literal is None or literal.kind != "number" or not literal.text.lstrip("-").isdigit():
        raise QueryError(f"{sql_excerpt(whole)}: token() is compared with a whole number")
    return int(Decimal(literal.text))


def _clamped(low: int, high: int) -> tuple[int, int]:
    low = min(max(low, TOKEN_MIN), TOKEN_MAX)
    return low, max(low, min(high, TOKEN_MAX))
