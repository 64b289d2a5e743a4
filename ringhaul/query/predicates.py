"""Conditions: true, false or NULL for each row, by SQL's three-valued logic.

Numbers compare by value whatever their types (as doubles if either side is a float or double), text
and blobs by bytes. NaN equals itself and is greater than every other number. UUIDs and addresses
have no order here: only = != IN.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from ringhaul.cql.types import FLOATS, TEXTS, CqlType
from ringhaul.query import exact_numbers
from ringhaul.query.errors import QueryError
from ringhaul.query.literals import MOMENTS, UNORDERED, Literal, literal_of, typed
from ringhaul.query.scalars import (
    EXACT_TEXTS,
    NUMBERS,
    Scalar,
    as_doubles,
    as_number,
    as_texts,
    cannot,
    operand_of,
)
from ringhaul.query.scope import Fetch, Scope
from ringhaul.query.sql import sql_excerpt, without_parentheses

_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_MIRRORED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

Evaluate = Callable[[pa.RecordBatch], pa.Array]


@dataclass(frozen=True)
class Predicate:
    """A condition. `evaluate` takes a batch with `fetches` and returns a bool or null per row."""

    fetches: tuple[Fetch, ...]
    evaluate: Evaluate


def predicate_of(node: exp.Expr, scope: Scope) -> Predicate:
    """Return the predicate of a condition. Raises `QueryError` for what is not supported."""
    node = without_parentheses(node)
    # sqlglot marks NOT LIKE, NOT IN, IS NOT by a flag or by a NOT around, depending on its version.
    return _inverted(_predicate_of(node, scope), is_negated(node))


def is_negated(node: exp.Expr) -> bool:
    return bool(node.args.get("negate"))


def _predicate_of(node: exp.Expr, scope: Scope) -> Predicate:
    match node:
        case exp.And() | exp.Or():
            return _connect(node, [predicate_of(part, scope) for part in node.flatten()])
        case exp.Not():
            inner = predicate_of(node.this, scope)
            return Predicate(inner.fetches, lambda batch: pc.invert(inner.evaluate(batch)))
        case exp.Between():
            return _between(node, scope)
        case exp.In():
            return _in(node, scope)
        case exp.Is():
            return _is(node, scope)
        case exp.Like() | exp.ILike():
            return _like(node, scope, "")
        case exp.Escape():
            escape = literal_of(node.expression)
            if escape is None or len(escape.text) != 1:
                raise QueryError(f"{sql_excerpt(node)}: ESCAPE takes one character")
            return _inverted(_like(node.this, scope, escape.text), is_negated(node.this))
    operation = _COMPARISONS.get(type(node))
    if operation is not None:
        left, right = operand_of(node.this, scope), operand_of(node.expression, scope)
        return comparison(operation, left, right, sql_excerpt(node))
    return _truth(node, scope)


def all_of(parts: list[Predicate]) -> Predicate:
    """Return the conjunction of `parts`; true if there are none."""
    if not parts:
        return _constant(True)
    return _joined(pc.and_kleene, parts)


def conjuncts(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the conditions that are joined by AND."""
    node = without_parentheses(node)
    if isinstance(node, exp.And):
        for part in node.flatten():
            yield from conjuncts(part)
    else:
        yield node


def _connect(node: exp.Expr, parts: list[Predicate]) -> Predicate:
    return _joined(pc.and_kleene if isinstance(node, exp.And) else pc.or_kleene, parts)


def _joined(kernel: Callable[[Any, Any], Any], parts: list[Predicate]) -> Predicate:
    def evaluate(batch: pa.RecordBatch) -> pa.Array:
        found = parts[0].evaluate(batch)
        for part in parts[1:]:
            found = kernel(found, part.evaluate(batch))
        return found

    return Predicate(tuple(fetch for part in parts for fetch in part.fetches), evaluate)


def comparison(
    operation: str, left: Scalar | Literal, right: Scalar | Literal, label: str
) -> Predicate:
    if isinstance(left, Literal) and isinstance(right, Scalar):
        return comparison(_MIRRORED[operation], right, left, label)
    if isinstance(left, Literal):
        assert isinstance(right, Literal)
        return _constants(operation, left, right, label)
    if isinstance(right, Scalar):
        return _pair(operation, left, right, label)
    _check_order(operation, left)
    if right.kind == "null":
        return Predicate(left.fetches, lambda batch: pa.nulls(batch.num_rows, pa.bool_()))
    computed = left.column is None or not left.column.is_column
    exact = left.type.name in NUMBERS and left.type.name != "float"
    if computed and exact and right.kind == "number":
        # A computed value need not keep to a column's type: a sum may be compared with 2.5. But
        # min and max of a float column are floats, for which 0.1 means the float nearest to it.
        return _pair(operation, left, as_number(right, left.type), label)
    value = typed(right, left.type, left.label).scalar
    compare = _comparator(left.type, left.type)
    return Predicate(left.fetches, lambda batch: compare(operation, left.evaluate(batch), value))


def _pair(operation: str, left: Scalar, right: Scalar, label: str) -> Predicate:
    for side in (left, right):
        _check_order(operation, side)
    kinds = {_kind(left.type), _kind(right.type)}
    if len(kinds) > 1:
        raise QueryError(
            f"{label}: {left.label} is {left.type.name} and {right.label} is {right.type.name}, "
            "which cannot be compared"
        )
    compare = _comparator(left.type, right.type)
    return Predicate(
        left.fetches + right.fetches,
        lambda batch: compare(operation, left.evaluate(batch), right.evaluate(batch)),
    )


def _kind(cql_type: CqlType) -> str:
    """Return the kind of a type; types of the same kind can be compared."""
    name = cql_type.name
    if name in NUMBERS:
        return "number"
    if name in TEXTS:
        return "text"
    return "uuid" if name == "timeuuid" else name


def _check_order(operation: str, side: Scalar) -> None:
    name = side.type.name
    if name == "duration" or not side.type.scalar:
        raise QueryError(
            f"{side.label} is {name}: it cannot be compared, only tested with IS [NOT] NULL"
        )
    if operation not in ("=", "!=") and name in UNORDERED:
        raise QueryError(f"{side.label} is {name}, which has no order: use =, != or IN")


def _comparator(left: CqlType, right: CqlType) -> Callable[[str, Any, Any], pa.Array]:
    names = {left.name, right.name}
    if names & set(FLOATS):
        if names <= {"float"}:
            return _compare_floats
        return lambda operation, a, b: _compare_floats(operation, as_doubles(a), as_doubles(b))
    if names & set(EXACT_TEXTS):
        return lambda operation, a, b: exact_numbers.compare(operation, as_texts(a), as_texts(b))
    if names <= {"boolean"}:
        return lambda operation, a, b: exact_numbers.KERNELS[operation](
            a.cast(pa.int8()), b.cast(pa.int8())
        )
    return lambda operation, a, b: exact_numbers.KERNELS[operation](a, b)


def _compare_floats(operation: str, left: Any, right: Any) -> pa.Array:
    found = exact_numbers.KERNELS[operation](left, right)
    left_nan, right_nan = pc.is_nan(left), pc.is_nan(right)
    if not any(pc.any(side).as_py() for side in (left_nan, right_nan) if _is_array(side)) and not (
        not _is_array(right_nan) and right_nan.as_py()
    ):
        return found
    # Where either side is NaN, compare which of them are NaN instead.
    by_nan = exact_numbers.KERNELS[operation](left_nan.cast(pa.int8()), right_nan.cast(pa.int8()))
    return pc.if_else(pc.or_(left_nan, right_nan), by_nan, found)


def _is_array(value: Any) -> bool:
    return isinstance(value, pa.Array | pa.ChunkedArray)


def _constants(operation: str, left: Literal, right: Literal, label: str) -> Predicate:
    """Compare two literals, such as the 1 = 1 of generated queries."""
    if "null" in (left.kind, right.kind):
        return _constant(None)
    if left.kind != right.kind:
        raise QueryError(f"{label}: {left} and {right} cannot be compared")
    if left.kind == "number":
        first, second = typed_number(left), typed_number(right)
    elif left.kind in MOMENTS:
        first, second = (typed(side, CqlType(side.kind), str(side)).bound for side in (left, right))
    else:
        first, second = left.text, right.text
    return _constant(exact_numbers.OPERATORS[operation](first, second))


def typed_number(literal: Literal) -> Any:
    return typed(literal, CqlType("decimal"), literal.text).bound


def _constant(value: bool | None) -> Predicate:
    scalar = pa.scalar(value, pa.bool_())
    return Predicate((), lambda batch: pa.repeat(scalar, batch.num_rows))


def _between(node: exp.Between, scope: Scope) -> Predicate:
    if node.args.get("symmetric"):
        raise QueryError(f"{sql_excerpt(node)}: BETWEEN SYMMETRIC cannot be answered")
    value = operand_of(node.this, scope)
    low, high = operand_of(node.args["low"], scope), operand_of(node.args["high"], scope)
    label = sql_excerpt(node)
    return all_of([comparison(">=", value, low, label), comparison("<=", value, high, label)])


def _in(node: exp.In, scope: Scope) -> Predicate:
    if node.args.get("query") is not None or node.args.get("unnest") is not None:
        raise QueryError(f"{sql_excerpt(node)}: subqueries cannot be answered")
    value = operand_of(node.this, scope)
    if not node.expressions:
        raise QueryError(f"{sql_excerpt(node)}: the list after IN is empty")
    literals = [operand_of(item, scope) for item in node.expressions]
    if isinstance(value, Literal) or any(isinstance(item, Scalar) for item in literals):
        raise QueryError(f"{sql_excerpt(node)}: IN takes a column and a list of values")
    _check_order("=", value)
    known = [item for item in literals if isinstance(item, Literal) and item.kind != "null"]
    has_null = len(known) < len(literals)
    values = pa.array(
        [typed(item, value.type, value.label).scalar.as_py() for item in known]
        if value.type.name not in _AS_INTEGERS
        else [typed(item, value.type, value.label).scalar.value for item in known],
        value.type.arrow(),
    )
    normal = normaliser(value.type)
    wanted = normal(values)
    unknown = pa.scalar(None, pa.bool_())

    def evaluate(batch: pa.RecordBatch) -> pa.Array:
        array = normal(value.evaluate(batch))
        found = pc.is_in(array, value_set=wanted)
        missing = array.is_null()
        if has_null:  # a value not in the list may equal the unknown value
            missing = pc.or_(missing, pc.invert(found))
        return pc.if_else(missing, unknown, found)

    return Predicate(value.fetches, evaluate)


#: Types whose Python values have a narrower range than CQL's.
_AS_INTEGERS = ("timestamp", "date", "time")


def normaliser(cql_type: CqlType) -> Callable[[pa.Array], pa.Array]:
    """Return a function that makes equal values identical: for IN, groups and distinct values."""
    if cql_type.name in EXACT_TEXTS:
        return _each_once(exact_numbers.canonical)
    if cql_type.name in FLOATS:
        return _one_zero
    return lambda array: array


def _one_zero(array: pa.Array) -> pa.Array:
    """Replace -0.0 by 0.0, and every NaN by a single NaN."""
    nan = pa.scalar(float("nan"), array.type)
    return pc.if_else(pc.is_nan(array), nan, pc.add(array, pa.scalar(0.0, array.type)))


def _each_once(change: Callable[[pa.Array], pa.Array]) -> Callable[[pa.Array], pa.Array]:
    def changed(array: pa.Array) -> pa.Array:
        encoded = pc.dictionary_encode(array)
        return change(encoded.dictionary).take(encoded.indices)

    return changed


def _is(node: exp.Is, scope: Scope) -> Predicate:
    wanted = literal_of(node.expression)
    if wanted is None or wanted.kind not in ("null", "boolean"):
        raise QueryError(f"{sql_excerpt(node)}: IS takes NULL, NOT NULL, TRUE or FALSE")
    if wanted.kind == "boolean":
        inner = predicate_of(node.this, scope)
        value = wanted.text == "true"
        return Predicate(
            inner.fetches, lambda batch: pc.equal(inner.evaluate(batch), value).fill_null(False)
        )
    operand = operand_of(node.this, scope)
    if isinstance(operand, Literal):
        return _constant(operand.kind == "null")
    return Predicate(operand.fetches, lambda batch: operand.evaluate(batch).is_null())


def _inverted(predicate: Predicate, negate: bool) -> Predicate:
    if not negate:
        return predicate
    return Predicate(predicate.fetches, lambda batch: pc.invert(predicate.evaluate(batch)))


def _like(node: exp.Expr, scope: Scope, escape: str) -> Predicate:
    operand, pattern = operand_of(node.this, scope), literal_of(node.expression)
    if isinstance(operand, Literal) or pattern is None or pattern.kind not in ("string", "null"):
        raise QueryError(f"{sql_excerpt(node)}: LIKE takes a column and a pattern in quotes")
    if operand.type.name not in TEXTS:
        raise QueryError(f"{operand.label} is {operand.type.name}: LIKE takes text")
    if pattern.kind == "null":
        return Predicate(operand.fetches, lambda batch: pa.nulls(batch.num_rows, pa.bool_()))
    expression = _pattern_expression(pattern.text, escape)
    try:
        pc.match_substring_regex(pa.array([""]), expression)
    except pa.ArrowInvalid:
        raise QueryError(f"LIKE {pattern}: the pattern is too long; write a shorter one") from None
    ignore_case = isinstance(node, exp.ILike)
    return Predicate(
        operand.fetches,
        lambda batch: pc.match_substring_regex(
            operand.evaluate(batch), expression, ignore_case=ignore_case
        ),
    )


def _pattern_expression(pattern: str, escape: str) -> str:
    """Return the regular expression of a LIKE pattern: % is any text, _ any one character, each
    literal after the escape character."""
    pieces, characters = [""], iter(pattern)
    for character in characters:
        if character == escape:
            following = next(characters, None)
            if following is None:
                said_pattern = Literal("string", pattern)
                raise QueryError(f"LIKE {said_pattern} ends with its escape character")
            pieces.append(re.escape(following))
        else:
            piece = {"%": ".*", "_": "."}.get(character) or re.escape(character)
            if piece != ".*" or pieces[-1] != ".*":  # %% equals %, but costs more
                pieces.append(piece)
    return rf"(?s)\A{''.join(pieces)}\z"


def _truth(node: exp.Expr, scope: Scope) -> Predicate:
    """Return the predicate of a boolean column, or of TRUE, FALSE, NULL."""
    literal = literal_of(node)
    if literal is not None:
        if literal.kind not in ("boolean", "null"):
            raise QueryError(f"{sql_excerpt(node)} is not a condition")
        return _constant(None if literal.kind == "null" else literal.text == "true")
    found = scope.find(node)
    if found is None:
        raise QueryError(cannot(node))
    if found.type.name != "boolean":
        raise QueryError(f"{found.label} is {found.type.name}, not a condition")
    return Predicate((found,), lambda batch: batch.column(found.name))
