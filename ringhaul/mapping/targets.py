"""What the fields of a file fill: columns, write times, TTLs. Pure; errors name the option to use.

Without a mapping, a field goes to the column of its name (`map_fields`). With one, its entries say
where fields go, and what columns without a field hold.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from ringhaul.cluster.schema import TableSchema, nearest
from ringhaul.cql.cells import NULL_LENGTH
from ringhaul.cql.nested import encode_column
from ringhaul.cql.text import supported
from ringhaul.cql.text_format import TextFormat
from ringhaul.cql.types import CqlType, UnknownType, parse_type
from ringhaul.errors import UsageError
from ringhaul.mapping.field_columns import (
    NO_ROW_FIELDS,
    RowFields,
    check_pairs,
    check_skips,
    map_fields,
    not_loadable,
    other_case,
    way_out,
)
from ringhaul.mapping.language import Entry, MappingText, Term
from ringhaul.mapping.target_times import TargetTimes, is_constant
from ringhaul.option_names import job_option
from ringhaul.records.job import Argument, LoadSource
from ringhaul.records.wildcard import EVERY

Pairs = tuple[tuple[str, str], ...]
#: Names of `writetime(*)` and `ttl(*)` in older versions of Bulk Loader.
_OLD_TIMES = {"__timestamp": "writetime", "__ttl": "ttl"}
#: Tokens of a call: the type of a term, as in `(int)a`; a text; a name.
_TOKEN = re.compile(
    r"(?<![\w\"])\(\s*[A-Za-z][\w<>, ]*\)(?=\s*[\w'\"(\[{:?-])"
    r"|'(?:[^']|'')*+'|\"(?:[^\"]|\"\")*+\"|[A-Za-z_]\w*+"
)
#: Characters after the name of a function, of a keyspace, and of a field within a literal.
_NO_FIELD_BEFORE = ("(", ".", ":")


@dataclass(frozen=True)
class Targets:
    """What the fields of one file fill, and what is filled without a field."""

    mapping: Pairs  #: (field, column)
    row: RowFields = NO_ROW_FIELDS
    times: Pairs = ()  #: (field, column whose write time it holds)
    ttls: Pairs = ()
    constants: Pairs = ()  #: (column, its text in every row)
    #: (column, what the server computes for it), with a marker for each of `arguments`
    filled: Pairs = ()
    arguments: Pairs = ()  #: (field, call of the function that takes it)
    #: (column, or * for rows: its write time in every row)
    fixed_times: tuple[tuple[str, int], ...] = ()
    fixed_ttls: tuple[tuple[str, int], ...] = ()

    @property
    def untimed(self) -> Targets:
        """The targets without write times, TTLs and what the server computes, which a verification
        does not compare."""
        none = {name: () for name in ("times", "ttls", "filled", "arguments")}
        return replace(self, row=NO_ROW_FIELDS, fixed_times=(), fixed_ttls=(), **none)

    @property
    def timed(self) -> bool:
        """Whether the mapping gives write times or TTLs."""
        fixed = self.fixed_times or self.fixed_ttls
        return bool(self.times or self.ttls or fixed) or self.row != NO_ROW_FIELDS

    def of_source(self, source: LoadSource) -> LoadSource:
        """Return the source with these targets."""
        return replace(
            source,
            mapping=self.mapping,
            timestamp_field=self.row.timestamp,
            ttl_field=self.row.ttl,
            column_times=self.times,
            column_ttls=self.ttls,
            constants=self.constants,
            filled=self.filled,
            fixed_times=self.fixed_times,
            fixed_ttls=self.fixed_ttls,
            # The server says their types, see producer/plan/arguments.py.
            arguments=tuple(Argument(*pair, CqlType("text")) for pair in self.arguments),
        )


def find_targets(
    fields: Sequence[str],
    table: TableSchema,
    *,
    mapping: MappingText,
    skip: Sequence[str],
    source: str,
    taken: RowFields = NO_ROW_FIELDS,
    positions: bool = True,
) -> Targets:
    """Return what the fields fill. `positions`: whether numbers in the mapping may mean fields.

    `taken`: the fields that options name for write times and TTLs of rows. Raises `UsageError` as
    `map_fields` does, and for entries that fit neither the fields nor the table.
    """
    if not mapping:
        pairs = map_fields(fields, table, skip=skip, source=source, taken=taken)
        return Targets(pairs, taken)
    check_skips(fields, skip, source)
    return _Resolver(fields, table, mapping, skip, source, taken, positions).targets()


@dataclass
class _Resolver:
    """Resolves one mapping for the fields of one file."""

    fields: Sequence[str]
    table: TableSchema
    mapping: MappingText
    skip: Sequence[str]
    source: str
    taken: RowFields
    positions: bool
    pairs: list[tuple[str, str]] = field(default_factory=list)
    constants: dict[str, str] = field(default_factory=dict)
    filled: dict[str, str] = field(default_factory=dict)
    arguments: list[tuple[str, str]] = field(default_factory=list)
    times: TargetTimes = field(init=False)

    def __post_init__(self) -> None:
        self.times = TargetTimes(self.table, self.source)

    def targets(self) -> Targets:
        for place, entry in enumerate(self.mapping.entries):
            self._take(place, entry)
        for function in self.mapping.every_time:
            names = [name for name in self.fields if name not in self.skip]
            self.times.find(function, names, dict(self.pairs))
        if self.mapping.rest:
            self._take_rest()
        pairs = tuple(pair for pair in dict.fromkeys(self.pairs) if pair[0] not in self.skip)
        loaded = {column for _, column in pairs} | {*self.constants}
        self.times.settle(self.mapping, loaded, self.fields)
        self._check(pairs)
        row = RowFields(
            self._row_field("writetime", self.taken.timestamp),
            self._row_field("ttl", self.taken.ttl),
        )
        return Targets(
            # In the order of the fields, as without a mapping.
            tuple(sorted(pairs, key=lambda pair: self.fields.index(pair[0]))),
            row,
            self.times.pairs("writetime"),
            self.times.pairs("ttl"),
            tuple(self.constants.items()),
            tuple(self.filled.items()),
            tuple(self.arguments),
            tuple(self.times.fixed["writetime"].items()),
            tuple(self.times.fixed["ttl"].items()),
        )

    def _take(self, place: int, entry: Entry) -> None:
        left, right = entry
        if right is None:
            self._take_alone(place, left)
            return
        times = right.times
        if times is None and right.text in _OLD_TIMES and not self._is_column(right):
            times = _OLD_TIMES[right.text], [EVERY]
        if times is not None and not self._is_column(right):
            self._take_times(*times, left)
        elif left.text in self.fields:
            self.pairs.append((left.text, self._column(right, left.text)))
        elif left.times is not None and self._is_column(left):  # a compared column
            self.pairs.append((self._field(right), left.text))
        elif left.times is not None:
            self._take_times(*left.times, right)
        elif left.literal is not None:
            self._fill(self.constants, right, left.literal)
        elif left.typed is not None:
            self._take_typed(*left.typed, right, left)
        elif left.call:
            self._fill(self.filled, right, self._with_markers(left.text))
        else:
            self.pairs.append((name := self._field(left), self._column(right, name)))

    def _with_markers(self, call: str) -> str:
        """Return a call with a marker in place of each field, and note these fields."""

        def marker(found: re.Match[str]) -> str:
            term = _argument(found)
            if term is None:
                return found[0]
            if term.text in self.fields:
                self.arguments.append((term.text, call))
                return "?"
            if term.quoted or (self._is_column(term) and not supported(term.text)):
                self._field(term._replace(quoted=True))  # raises
            return found[0]

        return _TOKEN.sub(marker, call)

    def _take_alone(self, place: int, term: Term) -> None:
        times = None if term.text in self.fields else term.times
        if times is None and self.positions and not self._has_names():
            name = self.fields[place] if place < len(self.fields) else None
            if name is None:
                raise UsageError(
                    f"{self.source}: {job_option('mapping')} lists {len(self.mapping.entries)} "
                    f"columns, and its first loaded record has {_fields_text(self.fields)}"
                )
            self.pairs.append((name, self._column(term, name)))
        elif times is None:
            name = self._field(term)
            meant = other_case([name], self.table.column_names)
            self.pairs.append((name, meant.get(name, self._column(Term(name, True), name))))
        elif EVERY not in times[1]:
            self._take_times(*times, term)

    def _has_names(self) -> bool:
        return list(self.fields) != [str(place) for place in range(len(self.fields))]

    def _take_times(self, function: str, columns: Sequence[str], given: Term) -> None:
        constant = given.text not in self.fields and is_constant(given)
        name = given.text if constant else self._field(given)
        for column in columns:
            if column != EVERY:
                column = self._column(Term(column, True), name)
            if constant:
                self.times.fix(function, column, given)
            else:
                self.times.take(function, column, name)

    def _take_rest(self) -> None:
        """Send the other fields to the columns of their names, as without a mapping."""
        known = self.table.column_names
        excluded = {*self.mapping.excluded, *self.skip}
        for name in self.mapping.excluded:
            if name not in self.fields and name not in known:
                raise UsageError(
                    f"{self.source}: {job_option('mapping')} leaves out {name!r}, which is neither "
                    f"a field nor a column{nearest(name, [*self.fields, *known])}"
                )
        used = {name for name, _ in self.pairs} | self.times.fields
        used |= {name for name in self.taken if name is not None and name not in known}
        mapped = {column for _, column in self.pairs} | {*self.constants, *self.filled}
        free = [name for name in self.fields if name not in used and name not in excluded]
        meant = other_case(free, known)
        arguments = {name for name, _ in self.arguments}
        for name in free:
            column = meant.get(name, name)
            unneeded = column not in known and name in arguments
            if column in mapped or column in excluded or unneeded:
                continue
            self.pairs.append((name, self._column(Term(column, True), name)))

    def _take_typed(self, cql_type: str, text: str, right: Term, left: Term) -> None:
        try:
            kind = parse_type(cql_type)
        except (UnknownType, ValueError):
            kind = None
        if kind is None or not kind.scalar:
            self._fill(self.filled, right, left.text)
            return
        quoted = Term(text).literal
        self._fill(self.constants, right, text if quoted is None else quoted)

    def _fill(self, where: dict[str, str], right: Term, value: str) -> None:
        column = self._column(right, value)
        if column in self.constants or column in self.filled:
            raise UsageError(f"{job_option('mapping')} fills column {column!r} twice")
        where[column] = value

    def _field(self, term: Term) -> str:
        if term.text in self.fields:
            return term.text
        position = term.position if self.positions else None
        if position is not None and position < len(self.fields):
            return self.fields[position]
        has = f"its fields are {', '.join(self.fields[:12])}"
        if not self._has_names():
            has = f"its first loaded record has {_fields_text(self.fields)}, counted from 0"
        raise UsageError(
            f"{self.source}: {job_option('mapping')} names field {term.text!r}, which it does not "
            f"have; {has}{nearest(term.text, self.fields)}"
        )

    def _is_column(self, term: Term) -> bool:
        return term.text in self.table.column_names

    def _column(self, term: Term, name: str) -> str:
        if not self._is_column(term):
            known = self.table.column_names
            raise UsageError(
                f"{self.source}: field {name!r} has no column {term.text!r} in {self.table.name}. "
                f"{way_out(name, term.text)}{nearest(term.text, known)}"
            )
        return term.text

    def _row_field(self, function: str, given: str | None) -> str | None:
        named = self.times.row.get(function)
        if named is not None and given is not None and named != given:
            raise UsageError(
                f"{self.source}: {job_option('mapping')} takes {function}({EVERY}) from field "
                f"{named!r}, and an option from {given!r}: give one of them"
            )
        return given if named is None else named

    def _check(self, pairs: Pairs) -> None:
        for name, column in (*pairs, *self.times.all_pairs()):
            if self.fields.count(name) > 1:
                raise UsageError(
                    f"{self.source}: two fields go to column {column!r} ({job_option('mapping')}); "
                    f"they have one name: name all fields by {job_option('columns')}"
                )
        free = [*self.constants, *self.filled]
        for column in free:
            if any(other == column for _, other in pairs):
                raise UsageError(
                    f"{self.source}: {job_option('mapping')} fills column {column!r} twice"
                )
        check_pairs(pairs, self.table, self.source, filled=free)
        for name, _ in self.arguments:
            if self.fields.count(name) > 1:
                raise UsageError(
                    f"{self.source}: two fields are named {name!r}: name all fields by "
                    f"{job_option('columns')}"
                )
        written = {e.right.text: e.left.text for e in self.mapping.entries if e.right is not None}
        key = self.table.primary_key
        for column in self.filled:
            if column in key:
                raise UsageError(
                    f"{job_option('mapping')} {written[column]}={column}: {column!r} is in the "
                    "primary key, which must be known before a row is sent, and stay the same "
                    "when it is sent again; give it from a field, or use `ringhaul exec`"
                )
            if (why := not_loadable(self.table, column)) is not None:
                raise UsageError(f"{job_option('mapping')} {written[column]}={column}: {why}")
        for column, text in self.constants.items():
            if (why := not_loadable(self.table, column)) is not None:
                raise UsageError(f"{job_option('mapping')} {text!r}={column}: {why}")
            kind = self.table.parsed_type(column)
            values = pa.array([text.encode()], pa.binary())
            found = encode_column(kind, values, TextFormat(), null_length=NULL_LENGTH)
            for fault in found.faults.values():
                raise UsageError(
                    f"{job_option('mapping')} {text!r}={column}: {fault.words(column)}"
                )
        of_columns = {*self.times.all_pairs()} | {*self.times.fixed_columns()}
        if self.arguments and of_columns:
            raise UsageError(
                f"{self.source}: {job_option('mapping')} {self.arguments[0][1]}: a function "
                "cannot take a field beside write times or TTLs of columns, since such a row is "
                "several statements; leave these out, or load the column separately"
            )
        self.times.check({column for _, column in pairs} | {*self.constants})


def _fields_text(fields: Sequence[str]) -> str:
    return f"{len(fields)} field{'' if len(fields) == 1 else 's'}"


def _argument(found: re.Match[str]) -> Term | None:
    """Return the token of a call as a name, if it may mean a field."""
    token, then = found[0], found.string[found.end() :].lstrip()[:1]
    if token[0] in "('" or then in _NO_FIELD_BEFORE:
        return None
    quoted = token.startswith('"')
    return Term(token[1:-1].replace('""', '"') if quoted else token, quoted)


def named_fields(
    mapping: MappingText, table: TableSchema, seen: Collection[str], skip: Collection[str]
) -> Iterator[str]:
    """Yield the names that a mapping may mean in records that name their values (jsonl).

    `seen`: the names in the first records.
    """
    mapped = set()
    for left, right in mapping.entries:
        times = left.times is not None and left.text not in seen
        if times and right is not None and not is_constant(right):
            yield right.text
        elif not times and (
            left.text in seen or (left.literal is None and left.typed is None and not left.call)
        ):
            yield left.text
        elif left.call and not times:
            terms = [_argument(found) for found in _TOKEN.finditer(left.text)]
            yield from (one.text for one in terms if one and (one.quoted or one.text in seen))
        if right is not None:
            mapped.add(right.text)
        elif times:
            yield from (name for name in seen if Term(name).times is not None)
    if not mapping.rest:
        return
    yield from mapping.excluded
    free = [c for c in table.column_names if c not in mapped and not_loadable(table, c) is None]
    free = [column for column in free if column not in {*skip, *mapping.excluded}]
    spelt = {column: name for name, column in other_case(seen, free).items()}
    yield from (spelt.get(column, column) for column in free)


def find_named_targets(
    table: TableSchema,
    *,
    mapping: MappingText,
    skip: Sequence[str],
    source: str,
    taken: RowFields = NO_ROW_FIELDS,
    seen: Collection[str] = (),
) -> tuple[tuple[str, ...], Targets]:
    """Return fields and targets of a source whose records name their values (jsonl).

    The fields are all names that a record may have: of columns, in the mapping, in `skip`, and in
    `taken`, whose fields say how rows are written. Columns that no INSERT can write are left out.
    `seen`: names in the first records; if these spell a column in other case, then so does all of
    the source. Raises `UsageError` like `find_targets`.
    """
    if mapping:
        names = [*named_fields(mapping, table, seen, skip)]
    else:
        free = [c for c in table.column_names if c not in skip and not_loadable(table, c) is None]
        unneeded = {*skip, *taken}
        spelt = {c: f for f, c in other_case([n for n in seen if n not in unneeded], free).items()}
        names = [spelt.get(column, column) for column in free]
    others = (name for name in taken if name is not None)
    fields = tuple(dict.fromkeys([*names, *skip, *others]))
    found = find_targets(
        fields, table, mapping=mapping, skip=skip, source=source, taken=taken, positions=False
    )
    return fields, found
