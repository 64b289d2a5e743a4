"""Literals in a query, and their conversion to values of a CQL type."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
from sqlglot import exp

from ringhaul.cql.addresses import address_text, parse_address
from ringhaul.cql.column import SHOWN_CHARACTERS_MAX, quote
from ringhaul.cql.decimals import parse_decimal
from ringhaul.cql.long_numbers import digits_of, integer_of
from ringhaul.cql.moments import moment_text
from ringhaul.cql.numbers import parse_real
from ringhaul.cql.temporal import FINER, is_date_like, parse_date, parse_time, parse_timestamp
from ringhaul.cql.temporal_plans import DATE_BIAS
from ringhaul.cql.text_format import TextFormat
from ringhaul.cql.types import TEXTS, CqlType
from ringhaul.query.errors import QueryError
from ringhaul.query.exact_numbers import one_zero
from ringhaul.query.sql import sql_excerpt, without_parentheses

INTEGER_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64, "counter": 64}

_WHOLE = re.compile(r"-?[0-9]+")
_UUID = re.compile(r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_BLOB = re.compile(r"0x(?:[0-9a-f]{2})*", re.IGNORECASE)
#: Kinds that are also names of CQL types.
#: Types whose values have no order that a query could mean.
UNORDERED = ("uuid", "timeuuid", "inet")
MOMENTS = ("date", "time", "timestamp")
#: Types whose cast of a text is a literal: DATE '...' parses as a cast, and `sql` casts bare UUIDs.
_CASTS = {
    exp.DataType.Type.DATE: "date",
    exp.DataType.Type.TIME: "time",
    exp.DataType.Type.TIMESTAMP: "timestamp",
    exp.DataType.Type.TIMESTAMPTZ: "timestamp",
    exp.DataType.Type.UUID: "uuid",
    exp.DataType.Type.VARBINARY: "blob",
}


@dataclass(frozen=True)
class Literal:
    """A literal of a query. `kind`: number, string, boolean, date, time, timestamp, uuid, blob or
    null. `text`: without quotes.
    """

    kind: str
    text: str

    def __str__(self) -> str:
        """The literal as messages show it."""
        text = self.text
        if len(text) > SHOWN_CHARACTERS_MAX:
            text = f"{text[:SHOWN_CHARACTERS_MAX]}..."
        if self.kind in MOMENTS:
            return f"{self.kind.upper()} '{text}'"
        return f"'{text}'" if self.kind == "string" else text


@dataclass(frozen=True)
class Typed:
    """A literal converted to a value of a type."""

    #: The value for the driver to bind: int for timestamp (ms), time (ns) and date (wire form).
    bound: Any
    #: The value in the Arrow form of the type.
    scalar: pa.Scalar


def literal_of(node: exp.Expr) -> Literal | None:
    """Return `node` as a literal, or None if it is not one."""
    node = without_parentheses(node)
    match node:
        case exp.Literal():
            return Literal("string" if node.is_string else "number", str(node.this))
        case exp.Neg():
            inner = literal_of(node.this)
            if inner is None or inner.kind != "number":
                return None
            return Literal("number", inner.text[1:] if inner.text[0] == "-" else f"-{inner.text}")
        case exp.Boolean():
            return Literal("boolean", str(node.this).lower())
        case exp.Null():
            return Literal("null", "NULL")
        case exp.Cast():
            inner = literal_of(node.this)
            kind = _CASTS.get(node.to.this)
            if inner is None or inner.kind != "string" or kind is None or not _is_plain(node):
                return None
            return Literal(kind, inner.text)
        case exp.Placeholder() | exp.Parameter():
            raise QueryError(
                f"{sql_excerpt(node)}: parameters cannot be used here, write the value"
            )
    return None


def _is_plain(cast: exp.Cast) -> bool:
    """Whether a cast has only a value and type: TRY_CAST, TIME(3) and formats change the value."""
    extra = {key for key, value in cast.args.items() if value} - {"this", "to", "_type"}
    return type(cast) is exp.Cast and not extra and not cast.to.expressions


def typed(literal: Literal, cql_type: CqlType, what: str) -> Typed:
    """Convert `literal`, not null, to `cql_type`. `what`: what has that type, for messages.

    Raises `QueryError` that names `what`, the type and the value.
    """
    read = _READERS.get(cql_type.name)
    if read is None:
        raise QueryError(
            f"{what} is {cql_type.name}: it cannot be compared, only tested with IS [NOT] NULL"
        )
    try:
        bound, value = read(literal, cql_type.name)
    except ValueError as error:
        raise QueryError(f"{what} is {cql_type.name}: {error}") from None
    return Typed(bound, pa.scalar(value, cql_type.arrow()))


def _integer(literal: Literal, name: str) -> tuple[Any, Any]:
    bits = INTEGER_BITS[name]
    if literal.kind != "number" or not _WHOLE.fullmatch(literal.text):
        raise ValueError(f"{literal} is not a whole number")
    value = _whole(literal.text)
    if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
        raise ValueError(f"{literal} is outside {-(2 ** (bits - 1))}..{2 ** (bits - 1) - 1}")
    return value, value


def _whole(text: str) -> int:
    """Return the number, or 2 ** 64 with its sign if it has too many digits for 64 bits."""
    digits = text.lstrip("-").lstrip("0")
    value = int(digits or "0") if len(digits) < 20 else 2**64
    return -value if text.startswith("-") else value


def _varint(literal: Literal, _: str) -> tuple[Any, Any]:
    if literal.kind not in ("number", "string") or not _WHOLE.fullmatch(literal.text):
        raise ValueError(f"{literal} is not a whole number")
    value = integer_of(literal.text)
    return value, digits_of(value)


def _decimal(literal: Literal, _: str) -> tuple[Any, Any]:
    if literal.kind not in ("number", "string"):
        raise ValueError(f"{literal} is not a number")
    parse_decimal(literal.text)
    value = one_zero(Decimal(literal.text))
    return value, str(value)


def _real(literal: Literal, name: str) -> tuple[Any, Any]:
    if literal.kind not in ("number", "string") or not literal.text:
        raise ValueError(f"{literal} is not a number")
    value = parse_real(literal.text, name)
    return value, value


def _text(literal: Literal, name: str) -> tuple[Any, Any]:
    if literal.kind != "string":
        quoted = Literal("string", literal.text)
        raise ValueError(f"{literal} is not text; write it in quotes: {quoted}")
    if name == "ascii" and not literal.text.isascii():
        raise ValueError(f"{literal} is not ASCII")
    return literal.text, literal.text


def _boolean(literal: Literal, _: str) -> tuple[Any, Any]:
    word = literal.text.lower()
    if literal.kind not in ("boolean", "string") or word not in ("true", "false"):
        raise ValueError(f"{literal} is neither true nor false")
    return word == "true", word == "true"


def _timestamp(literal: Literal, _: str) -> tuple[Any, Any]:
    if literal.kind not in ("number", "string", "date", "timestamp"):
        raise ValueError(f"{literal} is not a timestamp such as '2024-05-31T23:59:59.123Z'")
    if literal.kind == "date":  # stands for its first midnight
        parse_date(literal.text)
    if _WHOLE.fullmatch(literal.text):  # milliseconds since 1970, as in CQL
        value = _whole(literal.text)
        if not -(2**63) <= value < 2**63:
            raise ValueError(f"{literal} is outside the timestamps that Cassandra can hold")
        if is_date_like(value):
            moment = moment_text(pa.timestamp("ms", "UTC"), value)
            raise ValueError(
                f"{literal} may be a date or milliseconds since 1970; write a date as "
                f"'2024-05-31', and these milliseconds as '{moment}'"
            )
    else:
        value = parse_timestamp(literal.text, TextFormat())
        if FINER.search(literal.text):
            # A load floors such a timestamp, but a bound of a query must not move.
            raise ValueError(f"{literal} is finer than a timestamp, which has milliseconds")
    return value, value


def _date(literal: Literal, _: str) -> tuple[Any, Any]:
    days = parse_date(_quoted(literal, "a date such as '2024-05-31'", "date"))
    return days, days - DATE_BIAS


def _time(literal: Literal, _: str) -> tuple[Any, Any]:
    value = parse_time(_quoted(literal, "a time of day such as '23:59:59.123'", "time"))
    return value, value


def _uuid(literal: Literal, name: str) -> tuple[Any, Any]:
    if literal.kind not in ("uuid", "string") or not _UUID.fullmatch(literal.text):
        raise ValueError(f"{literal} is not a UUID such as 123e4567-e89b-12d3-a456-426614174000")
    value = uuid.UUID(literal.text)
    if name == "timeuuid" and value.version != 1:
        raise ValueError(f"{literal} is not a UUID of version 1")
    return value, value.bytes


def _inet(literal: Literal, _: str) -> tuple[Any, Any]:
    packed = parse_address(_quoted(literal, "an address such as '10.0.0.1'"))
    text = address_text(packed)
    return text, text


def _blob(literal: Literal, _: str) -> tuple[Any, Any]:
    if literal.kind not in ("blob", "string") or not _BLOB.fullmatch(literal.text):
        raise ValueError(f"{quote(literal.text)} is not hexadecimal bytes such as 0x00ff")
    value = bytes.fromhex(literal.text[2:])
    return value, value


def _quoted(literal: Literal, example: str, kind: str = "string") -> str:
    """Return the text of a quoted literal, with or without its `kind` in front."""
    if literal.kind not in ("string", kind):
        raise ValueError(f"{literal} is not {example}")
    return literal.text


#: Type -> reader: (bound value, value in the Arrow form). Raises `ValueError` with the reason.
_READERS: dict[str, Callable[[Literal, str], tuple[Any, Any]]] = {
    **dict.fromkeys(INTEGER_BITS, _integer),
    **dict.fromkeys(TEXTS, _text),
    "varint": _varint,
    "decimal": _decimal,
    "float": _real,
    "double": _real,
    "boolean": _boolean,
    "timestamp": _timestamp,
    "date": _date,
    "time": _time,
    "uuid": _uuid,
    "timeuuid": _uuid,
    "inet": _inet,
    "blob": _blob,
}
