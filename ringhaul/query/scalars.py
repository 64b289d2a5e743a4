"""Expressions with one value per row: columns, and arithmetic on numbers.

Whole numbers are computed as bigint with overflow checks; varint and decimal exactly; float and
double as double. A quotient of whole numbers is a double, as is anything with a double in it; a
quotient with a decimal in it has 6 digits more after the point than its operands, rounded half to
even. Division by zero is NULL.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from ringhaul.cql.types import FLOATS, CqlType
from ringhaul.query import exact_numbers
from ringhaul.query.errors import QueryError
from ringhaul.query.literals import INTEGER_BITS, Literal, literal_of, typed
from ringhaul.query.scope import AGGREGATES, Fetch, Scope, function_name
from ringhaul.query.sql import label_of, name_of, sql_excerpt, without_parentheses

BIGINT, VARINT, DECIMAL, DOUBLE = map(CqlType, ("bigint", "varint", "decimal", "double"))
EXACT_TEXTS = ("varint", "decimal")
NUMBERS = (*INTEGER_BITS, *EXACT_TEXTS, *FLOATS)
#: Digits after the point that a quotient of decimals has in addition to its operands' digits.
QUOTIENT_DIGITS = 6

_ARITHMETIC: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
}
_CHECKED = {"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked}
_CONSTANTS = ("nan", "infinity")


@dataclass(frozen=True)
class Scalar:
    """An expression. `evaluate` takes a batch and returns an array in the Arrow form of `type`."""

    type: CqlType
    label: str
    fetches: tuple[Fetch, ...]
    evaluate: Callable[[pa.RecordBatch], pa.Array]
    #: The column, if the expression is just a column.
    column: Fetch | None = None


def column_scalar(fetch: Fetch) -> Scalar:
    return Scalar(
        fetch.type, fetch.label, (fetch,), lambda batch: batch.column(fetch.name), column=fetch
    )


def operand_of(node: exp.Expr, scope: Scope) -> Scalar | Literal:
    """Return one side of a comparison. Raises `QueryError` if it cannot be computed."""
    node = without_parentheses(node)
    literal = literal_in(node, scope)
    if literal is not None:
        return literal
    found = scope.find(node)
    if found is not None:
        return column_scalar(found)
    operation = _ARITHMETIC.get(type(node))
    if operation is not None:
        return _arithmetic(node, operation, scope)
    if isinstance(node, exp.Neg):
        zero = Literal("number", "0")
        return _combine("-", zero, operand_of(node.this, scope), label_of(node))
    raise QueryError(cannot(node))


def literal_in(node: exp.Expr, scope: Scope) -> Literal | None:
    """Return `node` as a literal, including CQL's NaN and Infinity; None if it is not one."""
    node = without_parentheses(node)
    return literal_of(node) or _constant(node, scope)


def scalar_of(node: exp.Expr, scope: Scope) -> Scalar:
    """Like `operand_of`, but a number literal becomes a value for every row."""
    operand = operand_of(node, scope)
    return as_number(operand) if isinstance(operand, Literal) else operand


def as_number(literal: Literal, beside: CqlType | None = None) -> Scalar:
    """Return a number literal in the smallest type that holds it, or as a double if `beside` is a
    float or double."""
    if literal.kind != "number":
        raise QueryError(f"{literal} is not a number")
    if beside is not None and beside.name in FLOATS:
        cql_type = DOUBLE
    elif not literal.text.lstrip("-").isdigit():
        cql_type = DECIMAL
    else:
        cql_type = BIGINT if -(2**63) <= int(Decimal(literal.text)) < 2**63 else VARINT
    scalar = typed(literal, cql_type, literal.text).scalar
    return Scalar(cql_type, literal.text, (), lambda batch: pa.repeat(scalar, batch.num_rows))


def cannot(node: exp.Expr) -> str:
    """Return the message for an unsupported expression."""
    if isinstance(node, exp.Window):
        return f"{sql_excerpt(node)}: window functions (OVER) cannot be answered"
    if isinstance(node, exp.Subquery | exp.Query | exp.Exists):
        return f"{sql_excerpt(node)}: subqueries cannot be answered"
    if isinstance(node, exp.Star):
        return "* cannot be used here"
    if function_name(node) in AGGREGATES:
        return f"{sql_excerpt(node)}: an aggregate is only allowed in SELECT, HAVING and ORDER BY"
    if isinstance(node, exp.Cast):
        return (
            f"{sql_excerpt(node)}: casts cannot be answered; a value is read as its column's type"
        )
    name = function_name(node)
    if name and not isinstance(node, exp.Case | exp.Connector):
        return f"{sql_excerpt(node)}: the function {name}() is not known here"
    return f"{sql_excerpt(node)} cannot be answered"


def as_doubles(array: Any) -> pa.Array:
    """Return numbers of any type as the nearest doubles. `array` may be a scalar."""
    try:
        return array.cast(pa.float64(), safe=False)
    except pa.ArrowInvalid:  # text such as 1E+999
        if isinstance(array, pa.Scalar):
            return pa.scalar(float(array.as_py()), pa.float64())
        return pa.array([None if v is None else float(v) for v in array.to_pylist()], pa.float64())


def as_texts(array: pa.Array) -> pa.Array:
    """Return whole or exact numbers as text."""
    return array if pa.types.is_string(array.type) else array.cast(pa.string())


def _constant(node: exp.Expr, scope: Scope) -> Literal | None:
    """Return CQL's NaN or Infinity as a literal, unless a column has that name."""
    sign = ""
    if isinstance(node, exp.Neg):
        node, sign = node.this, "-"
    if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier):
        return None
    if node.this.args.get("quoted") or name_of(node.this) not in _CONSTANTS:
        return None
    try:
        scope.find(node)
    except QueryError:
        return Literal("number", sign + str(node.this.this))
    return None


def _arithmetic(node: exp.Expr, operation: str, scope: Scope) -> Scalar:
    left = operand_of(node.this, scope)
    return _combine(operation, left, operand_of(node.expression, scope), label_of(node))


def _combine(operation: str, left: Scalar | Literal, right: Scalar | Literal, label: str) -> Scalar:
    first = left if isinstance(left, Scalar) else as_number(left, _type_of(right))
    second = right if isinstance(right, Scalar) else as_number(right, _type_of(left))
    for side in (first, second):
        if side.type.name not in NUMBERS:
            raise QueryError(f"{label}: {side.label} is {side.type.name}, not a number")
    kind = _kind(first.type, second.type, operation)
    compute = _COMPUTE[kind]

    def evaluate(batch: pa.RecordBatch) -> pa.Array:
        return compute(operation, first.evaluate(batch), second.evaluate(batch), label)

    return Scalar(CqlType(kind), label, first.fetches + second.fetches, evaluate)


def _type_of(operand: Scalar | Literal) -> CqlType | None:
    return operand.type if isinstance(operand, Scalar) else None


def _kind(first: CqlType, second: CqlType, operation: str) -> str:
    names = {first.name, second.name}
    if names & set(FLOATS):
        return "double"
    if "decimal" in names:
        return "decimal"
    if operation == "/":
        return "double"
    return "varint" if "varint" in names else "bigint"


def _whole(operation: str, left: pa.Array, right: pa.Array, label: str) -> pa.Array:
    try:
        return _CHECKED[operation](left.cast(pa.int64()), right.cast(pa.int64()))
    except pa.ArrowInvalid:
        raise QueryError(f"{label} is outside the range of a bigint for some row") from None


def _exact(operation: str, left: pa.Array, right: pa.Array, label: str) -> pa.Array:
    del label
    lefts, rights = (
        exact_numbers.values_of(as_texts(left)),
        exact_numbers.values_of(as_texts(right)),
    )
    compute = _EXACT[operation]
    found = [
        None if a is None or b is None else compute(a, b)
        for a, b in zip(lefts, rights, strict=True)
    ]
    return pa.array(
        [None if value is None else str(exact_numbers.one_zero(value)) for value in found],
        pa.string(),
    )


def _double(operation: str, left: pa.Array, right: pa.Array, label: str) -> pa.Array:
    del label
    if operation == "/" and not any(pa.types.is_floating(side.type) for side in (left, right)):
        return _quotient(left, right)
    a, b = as_doubles(left), as_doubles(right)
    if operation == "/":
        b = pc.if_else(pc.equal(b, 0.0), pa.scalar(None, pa.float64()), b)
        return pc.divide(a, b)
    return {"+": pc.add, "-": pc.subtract, "*": pc.multiply}[operation](a, b)


def _quotient(left: pa.Array, right: pa.Array) -> pa.Array:
    """Divide whole numbers: return the doubles nearest to the exact quotients."""
    if pa.types.is_string(left.type) or pa.types.is_string(right.type):
        pairs = zip(
            exact_numbers.values_of(as_texts(left)),
            exact_numbers.values_of(as_texts(right)),
            strict=True,
        )
    else:
        pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
    return pa.array([true_quotient(a, b) for a, b in pairs], pa.float64())


def true_quotient(value: Any, by: Any) -> float | None:
    """Return the double nearest to the quotient of whole numbers; None for NULL or a zero `by`."""
    if value is None or not by:
        return None
    try:
        return int(value) / int(by)
    except OverflowError:
        return float(np.inf if (value < 0) == (by < 0) else -np.inf)


def _divide(left: Decimal, right: Decimal) -> Decimal | None:
    if not right:
        return None
    scale = max(exact_numbers.scale_of(left), exact_numbers.scale_of(right), 0) + QUOTIENT_DIGITS
    return exact_numbers.divide(left, right, scale)


def _multiply(left: Decimal, right: Decimal) -> Decimal:
    if len(left.as_tuple().digits) + len(right.as_tuple().digits) > exact_numbers.DIGITS_MAX:
        raise exact_numbers.too_long()
    return exact_numbers.CONTEXT.multiply(left, right)


_EXACT: dict[str, Callable[[Decimal, Decimal], Decimal | None]] = {
    "+": exact_numbers.add,
    "-": lambda left, right: exact_numbers.add(left, right.copy_negate()),
    "*": _multiply,
    "/": _divide,
}
_COMPUTE: dict[str, Callable[[str, pa.Array, pa.Array, str], pa.Array]] = {
    "bigint": _whole,
    "varint": _exact,
    "decimal": _exact,
    "double": _double,
}
