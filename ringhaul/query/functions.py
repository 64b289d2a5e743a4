"""Aggregate functions: their arguments, the states that they keep of a group, and their results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from ringhaul.cluster.schema import quote_identifier
from ringhaul.cql.types import FLOATS, CqlType
from ringhaul.query import exact_numbers
from ringhaul.query.errors import QueryError
from ringhaul.query.literals import INTEGER_BITS, UNORDERED, Literal, literal_of
from ringhaul.query.scalars import (
    BIGINT,
    DECIMAL,
    DOUBLE,
    EXACT_TEXTS,
    NUMBERS,
    QUOTIENT_DIGITS,
    VARINT,
    Scalar,
    operand_of,
    true_quotient,
)
from ringhaul.query.scope import AGGREGATES, TableScope, function_name
from ringhaul.query.sketches import bucket_of_share, estimate_distinct, value_of_bucket
from ringhaul.query.sql import sql_excerpt
from ringhaul.query.states import (
    Counters,
    ExactSum,
    FloatExtreme,
    FloatSum,
    Measure,
    Present,
    Rows,
    Spread,
    WholeSum,
    extreme_of,
    sum_of,
)

_NUMERIC = ("sum", "avg", "stddev", "stddev_pop", "variance", "var_pop", "quantile", "median")


@dataclass(frozen=True)
class Aggregate:
    """One aggregate of a query."""

    #: `count`, `count_distinct`, `sum`, ...
    function: str
    #: None for count(*).
    argument: Scalar | None
    #: The name of its column in a result: `sum(total)`.
    label: str
    #: The second argument of `quantile`.
    share: Decimal = Decimal("0.5")

    @property
    def type(self) -> CqlType:
        of = self.argument.type if self.argument is not None else BIGINT
        match self.function:
            case "count" | "count_distinct" | "approx_distinct":
                return BIGINT
            case "min" | "max":
                return of
            case "sum" if of.name not in FLOATS:
                return DECIMAL if of.name == "decimal" else VARINT
            case "avg" if of.name in EXACT_TEXTS:
                return DECIMAL
        return DOUBLE

    def measures(self) -> list[Measure | Counters]:
        """Return the states to keep of the argument's values."""
        if self.argument is None:
            return [Rows()]
        of = self.argument.type
        match self.function:
            case "count":
                return [Present()]
            case "sum" | "avg":
                return [sum_of(of), Present()]
            case "min" | "max":
                return [extreme_of(of, self.function)]
            case "count_distinct":
                return [Counters("distinct", of)]
            case "approx_distinct":
                return [Counters("registers", of)]
            case "quantile" | "median":
                return [Counters("buckets", of)]
        return [Spread()]

    def result(self, states: list[list[pa.Array]], groups_count: int) -> pa.Array:
        """Return one value of `type` per group, from the states of `measures`."""
        match self.function:
            case "count":
                return states[0][0]
            case "sum":
                return _typed(self.type, self._sums(states))
            case "avg":
                return _typed(self.type, self._averages(states))
            case "min" | "max":
                return self._extremes(states[0])
            case "count_distinct":
                return pa.array(np.bincount(states[0][0].to_numpy(), minlength=groups_count))
            case "approx_distinct":
                return _each_group(states[0], groups_count, _distinct_of, pa.int64())
            case "quantile" | "median":
                return _each_group(states[0], groups_count, self._quantile_of, pa.float64())
        less = 0 if self.function in ("stddev_pop", "var_pop") else 1
        return Spread.values(states[0], less, root=self.function.startswith("stddev"))

    def _sums(self, states: list[list[pa.Array]]) -> list[Any]:
        """Return an int, Decimal or float for each group; None for a group without a value."""
        measure = self.measures()[0]
        columns = [column.to_pylist() for column in states[0]]
        counts = states[1][0].to_pylist()
        found: list[Any]
        if isinstance(measure, WholeSum):
            found = [measure.value(limbs) for limbs in zip(*columns, strict=True)]
        elif isinstance(measure, FloatSum):
            found = [measure.value(*parts) for parts in zip(*columns, strict=True)]
        else:
            assert isinstance(measure, ExactSum)
            found = _rescaled(*columns)
        return [value if count else None for value, count in zip(found, counts, strict=True)]

    def _averages(self, states: list[list[pa.Array]]) -> list[Any]:
        assert self.argument is not None
        pairs = zip(self._sums(states), states[1][0].to_pylist(), strict=True)
        if self.argument.type.name in EXACT_TEXTS:
            return [
                None
                if total is None
                else exact_numbers.divide(
                    total, Decimal(count), max(exact_numbers.scale_of(total), 0) + QUOTIENT_DIGITS
                )
                for total, count in pairs
            ]
        if self.argument.type.name in FLOATS:
            return [None if total is None else total / count for total, count in pairs]
        return [true_quotient(total, count) for total, count in pairs]

    def _extremes(self, states: list[pa.Array]) -> pa.Array:
        measure = self.measures()[0]
        if isinstance(measure, FloatExtreme):
            pairs = zip(states[0].to_pylist(), states[1].to_pylist(), strict=True)
            return pa.array([measure.value(*pair) for pair in pairs], states[0].type)
        if self.type.name in EXACT_TEXTS:
            return _typed(self.type, _rescaled(*(column.to_pylist() for column in states)))
        return states[0]

    def _quantile_of(self, buckets: pa.Array, counts: pa.Array) -> float:
        assert self.argument is not None
        order = pc.array_sort_indices(buckets)
        place = bucket_of_share(counts.take(order).to_numpy(), self.share)
        whole = self.argument.type.name in (*INTEGER_BITS, "varint")
        return value_of_bucket(buckets.take(order)[place].as_py(), whole=whole)


def is_aggregate(node: exp.Expr) -> bool:
    return function_name(node) in AGGREGATES


def aggregate_of(node: exp.Expr, scope: TableScope) -> Aggregate:
    """Return the aggregate that `node` calls. Raises `QueryError` for an invalid argument."""
    function = AGGREGATES[function_name(node)]
    argument = node.this
    extra = node.args.get("expressions") or node.args.get("accuracy")
    if extra:
        raise QueryError(f"{sql_excerpt(node)}: {function}() takes one column")
    if function == "count" and isinstance(argument, exp.Star):
        return Aggregate("count", None, "count(*)")
    distinct = isinstance(argument, exp.Distinct)
    if distinct:
        if function != "count" or len(argument.expressions) != 1:
            raise QueryError(f"{sql_excerpt(node)}: DISTINCT is only for count() of one column")
        function, argument = "count_distinct", argument.expressions[0]
    if argument is None:
        raise QueryError(f"{sql_excerpt(node)}: {function}() takes a column")
    operand = operand_of(argument, scope)
    if isinstance(operand, Literal):
        if function == "count" and operand.kind != "null":
            return Aggregate("count", None, f"count({operand})")  # count(1)
        raise QueryError(f"{sql_excerpt(node)}: {function}() takes a column, not a value")
    name = _name_in_label(operand)
    _check_type(function, operand, sql_excerpt(node))
    if function == "quantile":
        share = _share(node)
        return Aggregate(function, operand, f"quantile({name}, {share})", share)
    label = f"count(distinct {name})" if distinct else f"{function}({name})"
    return Aggregate(function, operand, label)


def _name_in_label(operand: Scalar) -> str:
    """Return the operand's name in a label. Labels must be distinct: sum(a + b) differs from the
    sum of a column named "a + b"."""
    column = operand.column
    if column is None:
        return operand.label
    odd = column.is_column and not column.name.isidentifier()
    return quote_identifier(column.name) if odd else column.name


def _check_type(function: str, operand: Scalar, label: str) -> None:
    name = operand.type.name
    if function in _NUMERIC and name not in NUMBERS:
        raise QueryError(f"{label}: {operand.label} is {name}, not a number")
    if function != "count" and (name == "duration" or not operand.type.scalar):
        raise QueryError(f"{label}: {operand.label} is {name}: only count() can be computed of it")
    if function in ("min", "max") and name in UNORDERED:
        raise QueryError(f"{label}: {operand.label} is {name}, which has no order")


def _share(node: exp.Expr) -> Decimal:
    literal = literal_of(node.args["quantile"])
    if literal is None or literal.kind != "number" or not 0 <= Decimal(literal.text) <= 1:
        raise QueryError(f"{sql_excerpt(node)}: the second argument is a number from 0 to 1")
    return Decimal(literal.text)


def _typed(cql_type: CqlType, values: list[Any]) -> pa.Array:
    if cql_type.name in EXACT_TEXTS:
        values = [None if value is None else str(Decimal(value)) for value in values]
    return pa.array(values, cql_type.arrow())


def _rescaled(texts: list[str | None], scales: list[int]) -> list[Decimal | None]:
    return [
        None if text is None else exact_numbers.rescaled(Decimal(text), scale)
        for text, scale in zip(texts, scales, strict=True)
    ]


def _distinct_of(_: pa.Array, ranks: pa.Array) -> int:
    return estimate_distinct(ranks.to_numpy())


def _each_group(
    states: list[pa.Array],
    groups_count: int,
    value_of: Callable[[pa.Array, pa.Array], Any],
    data_type: pa.DataType,
) -> pa.Array:
    """Apply `value_of` to the two counter columns of each group; a group without counters gives 0
    (integers) or null."""
    ids, first, second = states
    order = pc.array_sort_indices(ids)
    sizes = np.bincount(ids.to_numpy(), minlength=groups_count)
    first, second = first.take(order), second.take(order)
    nothing = 0 if pa.types.is_integer(data_type) else None
    found, start = [], 0
    for size in sizes.tolist():
        values = (first.slice(start, size), second.slice(start, size))
        found.append(value_of(*values) if size else nothing)
        start += size
    return pa.array(found, data_type)
