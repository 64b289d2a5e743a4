"""The write times and TTLs that a mapping gives to rows and columns. Pure.

They are fields, or constants for every row. Fields named `writetime(c)` or `ttl(c)` are found by
their names where the mapping says so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from ringhaul.cluster.schema import TableSchema
from ringhaul.cql.nested import encode_column
from ringhaul.cql.text_format import TextFormat
from ringhaul.errors import UsageError
from ringhaul.mapping.language import MappingText, Term
from ringhaul.option_names import job_option
from ringhaul.records.row_fields import TTL, WRITETIME, cell_integers
from ringhaul.records.wildcard import EVERY

FUNCTIONS = {"writetime": WRITETIME, "ttl": TTL}


def _by_function() -> dict[str, dict[str, str]]:
    return {function: {} for function in FUNCTIONS}


def _values() -> dict[str, dict[str, int]]:
    return {function: {} for function in FUNCTIONS}


@dataclass
class TargetTimes:
    """Collects the times of one mapping for the fields of one file."""

    table: TableSchema
    source: str
    row: dict[str, str] = field(default_factory=dict)  #: function -> field for whole rows
    #: Function -> column -> field.
    columns: dict[str, dict[str, str]] = field(default_factory=_by_function)
    #: Function -> column, or `EVERY` for rows -> the number in every row.
    fixed: dict[str, dict[str, int]] = field(default_factory=_values)
    #: Function -> field found by its name -> column; it may turn out that the column has no time.
    named: dict[str, dict[str, str]] = field(default_factory=_by_function)

    @property
    def fields(self) -> set[str]:
        """The fields that have a meaning here, and so need no column of their names."""
        found = {*self.row.values()} | {name for name, _ in self.all_pairs()}
        return found | {name for of in self.named.values() for name in of}

    def take(self, function: str, column: str, name: str) -> None:
        """Take the times of a column, or of rows (`EVERY`), from a field."""
        given = self.row.get(function) if column == EVERY else self.columns[function].get(column)
        if given not in (None, name) or column in self.fixed[function]:
            raise UsageError(
                f"{self.source}: {job_option('mapping')} gives the {function} of {_what(column)} "
                f"twice{f', from fields {given!r} and {name!r}' if given else ''}: leave one out"
            )
        if column == EVERY:
            self.row[function] = name
        else:
            self.columns[function][column] = name

    def fix(self, function: str, column: str, constant: Term) -> None:
        """Give a constant to a column, or to rows (`EVERY`)."""
        of_rows = column == EVERY and function in self.row
        if of_rows or column in self.columns[function] or column in self.fixed[function]:
            raise UsageError(
                f"{self.source}: {job_option('mapping')} gives the {function} of {_what(column)} "
                "twice: leave one out"
            )
        self.fixed[function][column] = _number(function, constant)

    def find(self, function: str, fields: Sequence[str], mapped: Mapping[str, str]) -> None:
        """Find the fields that are named as an unload names the times of columns. `mapped`: field
        -> its column, for columns that had other names in the unloaded table."""
        for name in fields:
            times = Term(name).times
            if times is None or times[0] != function or name in mapped:
                continue
            if name in self.table.column_names:
                continue  # it is a column, such as one with times that are compared
            column, *more = times[1] or [""]
            if column not in self.table.column_names:
                column = mapped.get(column, "")
            if column and not more:
                self.named[function][name] = column

    def settle(self, mapping: MappingText, loaded: Collection[str], fields: Sequence[str]) -> None:
        """Take the found fields whose columns are `loaded` and have times.

        Raises `UsageError` if there is no such field although a loaded column could have a time.
        """
        for function in mapping.every_time:
            for name, column in self.named[function].items():
                if column in loaded and column not in self.table.primary_key:
                    self.take(function, column, name)
            given = (self.columns[function], self.named[function], self.fixed[function])
            if any(given) or function in self.row or not any(map(self._has_one, loaded)):
                continue
            if any(Term(column).times is not None for column in loaded):
                continue  # columns with times that are compared
            raise UsageError(
                f"{self.source}: {mapping.source_of(function)} stands for fields named "
                f"{function}(COLUMN), and there is none; its fields are {', '.join(fields[:12])}"
            )

    def _has_one(self, column: str) -> bool:
        """Whether a column has one time for its whole value."""
        key = self.table.primary_key
        return column not in key and not self.table.is_multi_cell(column)

    def check(self, loaded: Collection[str]) -> None:
        """Raise `UsageError` for the time of a column that is not loaded or has no time."""
        for function in FUNCTIONS:
            for column in (*self.columns[function], *self.fixed[function]):
                key = column in self.table.primary_key
                if column == EVERY or (column in loaded and not key):
                    continue
                name = self.columns[function].get(column)
                given = "a constant" if name is None else f"field {name!r}"
                why = "is in the primary key, which has none" if key else "is not loaded"
                raise UsageError(
                    f"{self.source}: {given} gives the {function} of column {column!r}, which {why}"
                )

    def pairs(self, function: str) -> tuple[tuple[str, str], ...]:
        """Return (field, column) pairs."""
        return tuple((name, column) for column, name in self.columns[function].items())

    def all_pairs(self) -> Iterator[tuple[str, str]]:
        for function in FUNCTIONS:
            yield from self.pairs(function)

    def fixed_columns(self) -> set[str]:
        """Return the columns that have a constant time of their own."""
        return {column for of in self.fixed.values() for column in of} - {EVERY}


def is_constant(term: Term) -> bool:
    """Return whether a side of an entry is a literal, with or without a type."""
    return term.literal is not None or term.typed is not None


def _what(column: str) -> str:
    return "rows" if column == EVERY else f"column {column!r}"


def _number(function: str, constant: Term) -> int:
    """Return microseconds since 1970, or seconds to live. Raises `UsageError`."""
    cql_type, text = constant.typed or ("", constant.text)
    quoted = Term(text).literal
    text = text if quoted is None else quoted
    if cql_type.lower() == "timestamp" and text.lstrip("+-").isdecimal():
        text = f"{text}000"  # such a literal is in milliseconds
    meant = FUNCTIONS[function]
    column = meant.encode(encode_column, pa.array([text.encode()], pa.binary()), TextFormat())
    for fault in column.faults.values():
        place = f"{job_option('mapping')} {constant.text}={function}(...)"
        raise UsageError(f"{place}: {fault.words(function)}")
    return int(cell_integers(column.cells)[0])
