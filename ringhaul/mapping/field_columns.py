"""Map the fields of a file to columns. Pure; every error names the option to use."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from ringhaul.cluster.schema import TableSchema, nearest
from ringhaul.cql.nested import loadable, plain_name
from ringhaul.cql.types import UnknownType
from ringhaul.errors import UsageError
from ringhaul.option_names import job_option
from ringhaul.records.row_fields import TTL, WRITETIME


class RowFields(NamedTuple):
    """The fields that say how a row is written; a column of their name is also loaded from them."""

    timestamp: str | None = None
    ttl: str | None = None


NO_ROW_FIELDS = RowFields()

#: Function in the name of an unload's field, such as `ttl(c)` -> (load's field, its meaning).
_ROW_FUNCTIONS = {
    "writetime": (WRITETIME, "when rows were written"),
    "ttl": (TTL, "how long rows live"),
}


def row_functions(fields: Collection[str], known: Collection[str]) -> list[str]:
    """Return the fields that are named as an unload names write times and TTLs, such as `ttl(c)`,
    and are not columns."""
    return [
        field
        for field in fields
        if field.endswith(")")
        and field.partition("(")[0].lower() in _ROW_FUNCTIONS
        and field not in known
    ]


def map_fields(
    fields: Sequence[str],
    table: TableSchema,
    *,
    skip: Sequence[str],
    source: str,
    taken: RowFields = NO_ROW_FIELDS,
) -> tuple[tuple[str, str], ...]:
    """Return (field, column) pairs in the order of the fields, without a mapping.

    Every field goes to the column of its name, or of its name in other case: see `other_case`.
    Fields in `skip` are left out; fields in `taken`, which say how rows are written, need no
    column. Raises `UsageError` for a field without a column, a column used twice, a type that
    cannot be loaded, or a primary key column without a field.
    """
    check_skips(fields, skip, source)
    known = table.column_names
    left_out = {*skip} | {name for name in taken if name is not None and name not in known}
    meant = other_case([name for name in fields if name not in left_out], known)
    wanted = {name: meant.get(name, name) for name in fields}
    pairs = tuple(
        (field, wanted[field]) for field in fields if field in wanted and field not in left_out
    )
    columns = set(known)
    unknown = [(field, column) for field, column in pairs if column not in columns]
    if pairs and len(unknown) == len(pairs):
        raise UsageError(
            f"{source}: the header names no column of {table.name} (it reads "
            f"{', '.join(fields[:8])}; the table has {', '.join(known[:12])}). "
            f"If the file has no header, give {job_option('no-header')} and the names of its "
            f"fields with {job_option('columns')}; without them its fields fill the table's "
            "columns in this order"
        )
    for field, column in unknown:
        raise UsageError(
            f"{source}: field {field!r} has no column {column!r} in {table.name}. "
            f"{way_out(field, column)}{nearest(column, known)}"
        )
    check_pairs(pairs, table, source)
    return pairs


def way_out(field: str, column: str) -> str:
    """Return what to do about a field without a column."""
    skip = f"{job_option('skip-columns')} {shlex.quote(field)}"
    function = field.partition("(")[0].lower()
    if field == column and row_functions([field], ()):
        meant, meaning = _ROW_FUNCTIONS[function]
        taken = f"{meant.option} {shlex.quote(field)}"
        return (
            f"If it says {meaning}, load takes {taken}, or for its column alone "
            f"{job_option('mapping')} '*=*,{function}(*)'; or leave it out with {skip}"
        )
    pair = shlex.quote(f"{field}=COLUMN")
    return f"Leave it out with {skip}, or name its column with {job_option('mapping')} {pair}"


def refuse_row_functions(fields: Sequence[str], source: str) -> None:
    """Raise `UsageError` for an unload's field that says how rows were written: it is meant for an
    option, not for a column."""
    for field in fields:
        if field.endswith(")") and field.partition("(")[0].lower() in _ROW_FUNCTIONS:
            raise UsageError(f"{source}: {field!r}: {way_out(field, field)}")


def find_row_fields(
    fields: Sequence[str], wanted: RowFields, *, source: str, positions: bool = True
) -> RowFields:
    """Find the `wanted` fields by their names or, if these are not names, 0-based `positions`.

    Raises `UsageError` for a name that no field has or several have, or that is wanted twice.
    """
    found = []
    for meant, name in zip((WRITETIME, TTL), wanted, strict=True):
        field = name if name in fields else None
        if name is not None and positions:
            field = _field_named(name, fields)
        if name is not None and field is None:
            raise UsageError(
                f"{source}: {meant.option} names field {name!r}, which it does not have; its "
                f"fields are {', '.join(fields[:12])}{nearest(name, fields)}"
            )
        if field is not None and fields.count(field) > 1:
            raise UsageError(
                f"{source}: {meant.option}: {fields.count(field)} fields are named {field!r}; name "
                f"all fields by {job_option('columns')}"
            )
        found.append(field)
    if found[0] is not None and found[0] == found[1]:
        raise UsageError(
            f"{source}: {WRITETIME.option} and {TTL.option} both name field {found[0]!r}: "
            "give each its own field"
        )
    return RowFields(*found)


def other_case(fields: Collection[str], columns: Collection[str]) -> dict[str, str]:
    """Return field -> column for fields that differ from a column only in case, as CQL's names do.

    Only where the meaning is clear: no other field and no other column has the name in any case.
    """
    # SELECT JSON writes names with capitals in quotes.
    quoted = {field: name for field in fields if (name := plain_name(field)) != field}
    exact = {f: name for f, name in quoted.items() if name in columns and name not in fields}
    named, others = _by_lower_case(columns), _by_lower_case(f for f in fields if f not in exact)
    taken = set(exact.values())
    return exact | {
        field: named[lower][0]
        for lower, (field, *more) in others.items()
        if not more
        and len(named.get(lower, ())) == 1
        and field != named[lower][0]
        and named[lower][0] not in taken
    }


def _by_lower_case(names: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(name.lower(), []).append(name)
    return found


def find_fields(
    fields: Sequence[str], table: TableSchema, *, source: str, otherwise: str = ""
) -> tuple[tuple[str, str], ...]:
    """Return (field, column) pairs in the order of the fields, matched by name as in `map_fields`.

    Leaves out other fields. Serves inputs without a mapping option: values of `lookup` and `exec`.
    Raises `UsageError` for a column without exactly one such field, with what to do `otherwise`,
    or with a type that cannot be loaded.
    """
    known = table.column_names
    meant = other_case(fields, known)
    wanted = {field: meant.get(field, field) for field in fields}
    there = set(wanted.values())
    for column in known:
        if fields.count(column) > 1:
            raise UsageError(f"{source}: {fields.count(column)} fields are named {column!r}")
        if column not in there:
            raise UsageError(
                f"{source}: no field is named {column!r}; its fields are "
                f"{', '.join(fields[:12])}{otherwise}{nearest(column, fields)}"
            )
        why = not_loadable(table, column)
        if why is not None:
            raise UsageError(f"{source}: {why}")
    return tuple((field, wanted[field]) for field in fields if wanted[field] in known)


def not_loadable(table: TableSchema, column: str) -> str | None:
    """Return why no INSERT can write a column; None: an INSERT can."""
    cql_type = table.type_of(column)
    try:
        if loadable(table.parsed_type(column)):
            return None
    except UnknownType:
        return f"column {column!r} has type {cql_type}, which ringhaul does not know"
    return (
        f"column {column!r} has type {cql_type}: a counter is only ever added to, not set; "
        "`ringhaul exec` adds to it"
    )


def check_skips(fields: Sequence[str], skip: Sequence[str], source: str) -> None:
    for name in skip:
        if name not in fields:
            raise UsageError(
                f"{source}: {job_option('skip-columns')} names {name!r}, which is not one of its "
                f"fields{nearest(name, fields)}"
            )


def mapped_fields(fields: Sequence[str], mapping: Mapping[str, str], source: str) -> dict[str, str]:
    """Return field name -> column for an explicit mapping; a number is a 0-based position."""
    wanted: dict[str, str] = {}
    for name, column in mapping.items():
        field = _field_named(name, fields)
        if field is None:
            raise UsageError(
                f"{source}: {job_option('mapping')} names field {name!r}, which it does not have; "
                f"its fields are {', '.join(fields[:12])}{nearest(name, fields)}"
            )
        if field in wanted:
            raise UsageError(
                f"{source}: {job_option('mapping')} names field {field!r} twice, by {name!r}, too"
            )
        wanted[field] = column
    return wanted


def _field_named(name: str, fields: Sequence[str]) -> str | None:
    """Return the field with this name, or at this position from 0."""
    if name in fields:
        return name
    return fields[int(name)] if name.isdecimal() and int(name) < len(fields) else None


def check_pairs(
    pairs: Sequence[tuple[str, str]],
    table: TableSchema,
    source: str,
    filled: Collection[str] = (),
) -> None:
    """Raise `UsageError` for (field, column) pairs that make no row: see `map_fields`.

    `filled`: columns that need no field."""
    columns = Counter(column for _, column in pairs)
    for column, count in columns.items():
        if count > 1:
            names = {field for field, other in pairs if other == column}
            alike = (
                f"; they have one name: name all fields by {job_option('columns')}"
                if len(names) == 1
                else ""
            )
            raise UsageError(
                f"{source}: two fields go to column {column!r} ({job_option('mapping')}){alike}"
            )
        why = not_loadable(table, column)
        if why is not None:
            if table.type_of(column) == "counter":  # its row cannot be written without it either
                raise UsageError(f"{source}: {why}")
            raise UsageError(f"{source}: {why}; leave it out with {job_option('skip-columns')}")
    missing = [c for c in table.primary_key if c not in columns and c not in filled]
    if missing:
        raise UsageError(
            f"{source}: no field for primary key column {', '.join(map(repr, missing))} of "
            f"{table.name}; name one with {job_option('mapping')} "
            f"{shlex.quote(f'FIELD={missing[0]}')}"
        )
