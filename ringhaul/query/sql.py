"""Parse SQL text with sqlglot, including spellings that only CQL has, and with plain errors."""

from __future__ import annotations

import re

import sqlglot
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError

from ringhaul.cql.column import quote
from ringhaul.query.errors import QueryError

#: Strings, names and comments match to be skipped; unquoted UUIDs and blobs, which are not SQL,
#: are rewritten.
_PIECES = re.compile(
    r"""'(?:[^']++|'')*+' | "(?:[^"]++|"")*+" | --[^\n]* | /\*.*?(?:\*/|\Z)
    | (?P<uuid>\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b)
    | (?P<blob>\b0x[0-9a-f]*\b)""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_ALLOW_FILTERING = re.compile(r"(?<!\s)\s++allow\s++filtering\s*+;?\s*+\Z", re.IGNORECASE)


#: Length limit of a piece of SQL in a message.
EXCERPT_CHARACTERS_MAX = 200


class CqlDialect(Dialect):
    """Standard SQL, with nulls last by default."""

    NULL_ORDERING = "nulls_are_last"


def parse_statement(text: str) -> exp.Expr:
    """Parse one statement, dropping ALLOW FILTERING at its end. Raises `QueryError`."""
    if not text.strip():
        raise QueryError("the query is empty")
    plain = _PIECES.sub(_as_sql, _ALLOW_FILTERING.sub("", text))
    try:
        found = [tree for tree in sqlglot.parse(plain, read=CqlDialect) if tree is not None]
    except SqlglotError as error:
        raise QueryError(f"cannot read the query: {_reason(error)}") from None
    except RecursionError:
        raise QueryError("cannot read the query: it is nested too deeply") from None
    if len(found) != 1:
        raise QueryError(f"the query must be one statement, not {len(found)}")
    return found[0]


def parse_condition(text: str) -> exp.Expr | None:
    """Parse the text that follows WHERE; None if it is empty. Raises `QueryError`."""
    if not text.strip():
        return None
    # The line end terminates a comment at the end of the text.
    tree = parse_statement(f"{_CONDITION_START}{text}\n")
    where = tree.args.get("where")
    extra = [key for key, value in tree.args.items() if value and key.rstrip("_") not in _CONDITION]
    if not isinstance(tree, exp.Select) or where is None or extra:
        raise QueryError(f"{quote(text)} is more than a condition: give only what follows WHERE")
    condition: exp.Expr = where.this
    return condition


_CONDITION = ("expressions", "from", "where")
_CONDITION_START = "SELECT 1 FROM t WHERE "


def refuse_markers(tree: exp.Expr) -> None:
    """Raise `QueryError` for a marker, such as `?` or `:day`: nothing gives it a value."""
    for marker in tree.find_all(exp.Placeholder, exp.Parameter):
        raise QueryError(f"{sql_excerpt(marker)}: parameters cannot be used here, write the value")


def name_of(identifier: exp.Expr) -> str:
    """Return a CQL name: it keeps its case if quoted, and else becomes lower case."""
    text = str(identifier.this)
    return text if identifier.args.get("quoted") else text.lower()


def sql_excerpt(node: exp.Expr) -> str:
    """Return a piece of SQL for a message: only its beginning if it is long."""
    text = label_of(node)
    return text if len(text) <= EXCERPT_CHARACTERS_MAX else f"{text[:EXCERPT_CHARACTERS_MAX]}..."


def label_of(node: exp.Expr) -> str:
    """Return a whole piece of SQL, to name a column of the result and to identify expressions."""
    return node.sql(dialect=CqlDialect, normalize_functions="lower")


def condition_sql(condition: exp.Expr) -> str:
    """Return a condition as text that parses to the same tree, whatever follows it. Raises
    `QueryError`."""
    try:
        return condition.sql(dialect=CqlDialect, normalize_functions="lower", comments=False)
    except RecursionError:
        raise QueryError("cannot read the condition: it is nested too deeply") from None


def without_parentheses(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _as_sql(match: re.Match[str]) -> str:
    if match["uuid"]:
        return f"CAST('{match[0]}' AS UUID)"
    if match["blob"]:
        return f"CAST('{match[0]}' AS VARBINARY)"
    return match[0]


def _reason(error: SqlglotError) -> str:
    details = getattr(error, "errors", None)
    if not details:
        return "a quote or a bracket is not closed"
    first = details[0]
    near = (first.get("highlight") or "").strip()
    before = (first.get("start_context") or "").removeprefix(_CONDITION_START).strip()[-30:]
    if first["description"].startswith("Required keyword"):
        return f"something is missing after {quote(f'{before} {near}'.strip())}"
    return f"{quote(near)} is not expected after {quote(before)}"
