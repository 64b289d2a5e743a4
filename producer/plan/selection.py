"""The columns that an unload reads for its --mapping, as the items of a SELECT."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ringhaul.cluster.schema import TableSchema, nearest, quote_identifier
from ringhaul.errors import UsageError
from ringhaul.records.mapping_text import EVERY, Entry, MappingText, Term


def selected_items(table: TableSchema, mapping: MappingText) -> list[str]:
    """Return the items of a SELECT: columns, their times, and what the server computes, each AS
    the name of its field.

    Raises `UsageError` for a column that the table does not have.
    """
    functions = [e.left.times[0] for e in mapping.entries if _is_every(e) and e.left.times]
    items = []
    for column, text, name in _fields(table, mapping):
        items.append(_item(text, column, name))
        items += [
            f"{function}({quote_identifier(column)})"
            for function in dict.fromkeys(functions)
            if column and column not in table.primary_key and not table.is_multi_cell(column)
        ]
    for entry in mapping.entries:
        items += _time_items(table, entry)
    return items


def without_times(table: TableSchema, mapping: MappingText) -> list[str]:
    """Return the columns that `writetime(*)` or `ttl(*)` leaves out, because each of their elements
    has its own, and whose times the mapping does not name."""
    if not any(map(_is_every, mapping.entries)):
        return []
    columns = [column for column, *_ in _fields(table, mapping) if column]
    named = {entry.left.text for entry in mapping.entries}
    return [
        column
        for column in columns
        if table.is_multi_cell(column) and f"writetime({column})" not in named
    ]


def _fields(table: TableSchema, mapping: MappingText) -> Iterator[tuple[str, str, str]]:
    """Yield (column, its CQL, name of its field). What the server computes has no column, and
    perhaps only the server's name for it."""
    mapped = []
    for entry in mapping.entries:
        left, right = entry
        if left.times is not None or (right is not None and right.times is not None):
            continue
        if computed := _computed(table, right or left):
            yield "", computed, "" if right is None else left.text
            continue
        if right is not None and (computed := _call_or_literal(table, left)):
            yield "", computed, right.text
            continue
        column = _known(table, right or left)
        mapped.append(column)
        yield column, quote_identifier(column), left.text
    if not mapping.rest:
        return
    for name in mapping.excluded:
        _known(table, Term(name, True))
    for column in table.column_names:
        if column not in mapped and column not in mapping.excluded:
            yield column, quote_identifier(column), column


def _computed(table: TableSchema, term: Term) -> str:
    """Return the CQL of what the server computes for a field; empty for a name."""
    if (
        not term.quoted
        and term.text not in table.column_names
        and any(c in term.text for c in ".[")
    ):
        return term.text if term.literal is None else f"(text){term.text}"
    return _call_or_literal(table, term)


def _call_or_literal(table: TableSchema, term: Term) -> str:
    """Do the same on the side of the fields, whose names may have dots and brackets."""
    if term.text in table.column_names:
        return ""
    if term.literal is not None:
        return f"(text){term.text}"
    return term.text if term.typed is not None or term.call else ""


def _time_items(table: TableSchema, entry: Entry) -> Iterator[str]:
    """Yield the items of an entry about the times of single columns."""
    left, right = entry
    if _is_every(entry):
        return
    times, name = left.times, right
    if times is None and right is not None:
        times, name = right.times, left
    if times is None:
        return
    function, columns = times
    if EVERY in columns or len(columns) > 1:
        raise UsageError(
            f"--mapping {entry.text}: each column of a row has its own; give {function}(COLUMN), "
            f"or {function}({EVERY}) alone for a field for each column"
        )
    text = f"{function}({quote_identifier(_known(table, Term(columns[0], True)))})"
    yield _item(text, text, name.text if name is not None else text)


def _item(text: str, own: str, name: str) -> str:
    return text if name == own else f"{text} AS {quote_identifier(name)}"


def _is_every(entry: Entry) -> bool:
    return entry.right is None and entry.left.times is not None and EVERY in entry.left.times[1]


def _known(table: TableSchema, term: Term) -> str:
    known: Sequence[str] = table.column_names
    if term.text not in known:
        raise UsageError(
            f"--mapping: {table.name} has no column {term.text!r}{nearest(term.text, known)}"
        )
    return term.text
