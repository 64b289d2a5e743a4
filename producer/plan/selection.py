"""The columns that an unload reads for its --mapping, as the items of a SELECT."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ringhaul.cluster.schema import TableSchema, nearest, quote_identifier
from ringhaul.errors import UsageError
from ringhaul.mapping.language import Entry, MappingText, Term
from ringhaul.records.wildcard import EVERY


class _Item(NamedTuple):
    """An item of the SELECT."""

    text: str
    field: Term | None = None  #: what the mapping calls it; None: it keeps its own name


def selected_items(
    table: TableSchema, mapping: MappingText, *, named: bool = True, folders: Sequence[str] = ()
) -> list[str]:
    """Return the items of a SELECT: columns, their times, and what the server computes, each AS
    the name of its field.

    They are in the order of the entries; the columns of `*` follow them, and the times of single
    columns these. `named`: files have the names of fields; without them, a name that is a number is
    the position of its field. `folders`: fields that name folders, and have no position. Raises
    `UsageError` for a column that the table does not have, and for a position that is given twice
    or lies beyond the last field.
    """
    items = [*_items(table, mapping)]
    return [item.text for item in (items if named else _by_position(items, folders))]


def without_times(table: TableSchema, mapping: MappingText) -> list[str]:
    """Return the columns that `writetime(*)` or `ttl(*)` leaves out, because each of their elements
    has its own, and whose times the mapping does not name."""
    if not mapping.every_time:
        return []
    mapped = [column for entry in mapping.entries for column, _ in _fields(table, entry) if column]
    columns = [*mapped, *_rest(table, mapping, mapped)]
    named = {entry.left.text for entry in mapping.entries}
    return [
        column
        for column in columns
        if table.is_multi_cell(column) and f"writetime({column})" not in named
    ]


def _items(table: TableSchema, mapping: MappingText) -> Iterator[_Item]:
    mapped: list[str] = []
    times: list[_Item] = []
    for entry in mapping.entries:
        for column, item in _fields(table, entry):
            mapped.append(column)
            yield item
            yield from _every_time(table, mapping, column)
        times += _times(table, entry)
        if not mapping.rest:
            yield from times
            times = []
    for column in _rest(table, mapping, mapped):
        yield _Item(quote_identifier(column))
        yield from _every_time(table, mapping, column)
    yield from times


def _fields(table: TableSchema, entry: Entry) -> Iterator[tuple[str, _Item]]:
    """Yield the column of an entry and its item, if the entry is not about times. What the server
    computes has no column, and perhaps only the server's name for it."""
    left, right = entry
    if left.times is not None or (right is not None and right.times is not None):
        return
    if computed := _computed(table, right or left):
        yield "", _item(computed, "", None if right is None else left)
    elif right is not None and (computed := _call_or_literal(table, left)):
        yield "", _item(computed, "", right)
    else:
        column = _known(table, right or left)
        yield column, _item(quote_identifier(column), column, None if right is None else left)


def _rest(table: TableSchema, mapping: MappingText, mapped: Sequence[str]) -> Iterator[str]:
    """Yield the columns that `*` stands for."""
    if not mapping.rest:
        return
    for name in mapping.excluded:
        _known(table, Term(name, True))
    for column in table.column_names:
        if column not in mapped and column not in mapping.excluded:
            yield column


def _by_position(items: Sequence[_Item], folders: Sequence[str]) -> list[_Item]:
    """Return the items such that a field whose name is a position has it; the others take the
    places that are left, in their order."""
    apart = [item for item in items if item.field is not None and item.field.text in folders]
    rest = [item for item in items if item not in apart]
    placed: dict[int, _Item] = {}
    for item in rest:
        position = None if item.field is None else item.field.position
        if position is None:
            continue
        if position in placed:
            raise UsageError(f"--mapping gives position {position} to two fields")
        placed[position] = item
    if placed and (beyond := max(placed)) >= len(rest):
        missing = next(place for place in range(beyond) if place not in placed)
        raise UsageError(
            f"--mapping {beyond}=COLUMN: without a header, a number is the position of a field, "
            f"from 0, and each record has {len(rest)}: give what position {missing} holds, or "
            f"other positions"
        )
    others = iter([item for item in rest if item not in placed.values()])
    return [placed[at] if at in placed else next(others) for at in range(len(rest))] + apart


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
    """Return the CQL of a call or a literal; empty for a name, which may have dots and brackets."""
    if term.text in table.column_names:
        return ""
    if term.literal is not None:
        return f"(text){term.text}"
    return term.text if term.typed is not None or term.call else ""


def _every_time(table: TableSchema, mapping: MappingText, column: str) -> Iterator[_Item]:
    """Yield the times of a column that `writetime(*)` and `ttl(*)` stand for, except each time that
    has an entry of its own: it is not written twice."""
    if not column or column in table.primary_key or table.is_multi_cell(column):
        return
    named = [_single_time(entry) for entry in mapping.entries]
    for function in dict.fromkeys(mapping.every_time):
        if (function, [column]) not in named:
            yield _Item(f"{function}({quote_identifier(column)})")


def _times(table: TableSchema, entry: Entry) -> Iterator[_Item]:
    """Yield the item of an entry about the times of a single column."""
    times = _single_time(entry)
    if times is None or _is_every(entry):
        return
    left, right = entry
    function, columns = times
    if EVERY in columns or len(columns) > 1:
        raise UsageError(
            f"--mapping {entry.text}: each column of a row has its own; give {function}(COLUMN), "
            f"or {function}({EVERY}) alone for a field for each column"
        )
    text = f"{function}({quote_identifier(_known(table, Term(columns[0], True)))})"
    yield _item(text, text, right if left.times is not None else left)


def _single_time(entry: Entry) -> tuple[str, list[str]] | None:
    """Return the function and the columns of an entry about times."""
    left, right = entry
    if left.times is not None or right is None:
        return left.times
    return right.times


def _item(text: str, own: str, field: Term | None) -> _Item:
    """Return an item under the name of its field; `own`: the name that it has by itself."""
    if field is None or field.text == own:
        return _Item(text, field)
    return _Item(f"{text} AS {quote_identifier(field.text)}", field)


def _is_every(entry: Entry) -> bool:
    return entry.right is None and entry.left.times is not None and EVERY in entry.left.times[1]


def _known(table: TableSchema, term: Term) -> str:
    known: Sequence[str] = table.column_names
    if term.text not in known:
        raise UsageError(
            f"--mapping: {table.name} has no column {term.text!r}{nearest(term.text, known)}"
        )
    return term.text
