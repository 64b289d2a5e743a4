"""Which field of the file goes into which column. Pure; every refusal names the option to use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ringhaul.cluster.schema import TableSchema, nearest
from ringhaul.cql.nested import loadable
from ringhaul.cql.types import UnknownType
from ringhaul.errors import UsageError


def map_fields(
    fields: Sequence[str],
    table: TableSchema,
    *,
    mapping: Mapping[str, str],
    skip: Sequence[str],
    source: str,
) -> tuple[tuple[str, str], ...]:
    """(field, column) pairs in the order of the fields.

    Without `mapping` every field goes to the column of its name. With it (field name or
    0-based position -> column) only the fields it names are loaded. Fields in `skip` are left
    out. Raises `UsageError` for a field without a column, a column twice, a type that cannot be
    loaded, or a primary key column that no field fills.
    """
    _check_skips(fields, skip, source)
    wanted = _by_mapping(fields, mapping, source) if mapping else {name: name for name in fields}
    pairs = tuple(
        (field, wanted[field]) for field in fields if field in wanted and field not in skip
    )
    known = table.column_names
    unknown = [(field, column) for field, column in pairs if column not in known]
    if not mapping and pairs and len(unknown) == len(pairs):
        raise UsageError(
            f"{source}: the header names no column of {table.name} (it reads "
            f"{', '.join(fields[:8])}; the table has {', '.join(known[:12])}). "
            "If the file has no header, give --no-header"
        )
    for field, column in unknown:
        raise UsageError(
            f"{source}: field {field!r} has no column {column!r} in {table.name}. Leave it out "
            f"with --skip-columns {field}, or name its column with --mapping {field}=COLUMN"
            f"{nearest(column, known)}"
        )
    _check_pairs(pairs, table, source)
    return pairs


def not_loadable(table: TableSchema, column: str) -> str | None:
    """Why no INSERT can write a column; None: it can."""
    cql_type = table.type_of(column)
    try:
        if loadable(table.parsed_type(column)):
            return None
    except UnknownType:
        return f"column {column!r} has type {cql_type}, which ringhaul does not know"
    return f"column {column!r} has type {cql_type}: a counter is only ever added to, not set"


def map_names(
    table: TableSchema, *, mapping: Mapping[str, str], skip: Sequence[str], source: str
) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """Fields and (field, column) pairs of a source whose records name their values (jsonl).

    The fields are every name that may stand in a record: those of the columns, of the mapping, and
    of `skip`. Columns that no INSERT can write are left out. Raises `UsageError` as `map_fields`.
    """
    free = [c for c in table.column_names if c not in skip and not_loadable(table, c) is None]
    names = list(mapping) if mapping else free
    fields = tuple(dict.fromkeys([*names, *skip]))
    pairs = map_fields(fields, table, mapping=mapping, skip=skip, source=source)
    return fields, pairs


def _check_skips(fields: Sequence[str], skip: Sequence[str], source: str) -> None:
    for name in skip:
        if name not in fields:
            raise UsageError(
                f"{source}: --skip-columns names {name!r}, which is no field of it"
                f"{nearest(name, fields)}"
            )


def _by_mapping(fields: Sequence[str], mapping: Mapping[str, str], source: str) -> dict[str, str]:
    """Field name -> column for an explicit mapping; a number is a 0-based position."""
    wanted: dict[str, str] = {}
    for name, column in mapping.items():
        if name in fields:
            wanted[name] = column
        elif name.isdecimal() and int(name) < len(fields):
            wanted[fields[int(name)]] = column
        else:
            raise UsageError(
                f"{source}: --mapping names field {name!r}, which it does not have; its fields are "
                f"{', '.join(fields[:12])}{nearest(name, fields)}"
            )
    return wanted


def _check_pairs(pairs: Sequence[tuple[str, str]], table: TableSchema, source: str) -> None:
    columns = [column for _, column in pairs]
    for column in columns:
        if columns.count(column) > 1:
            names = {field for field, other in pairs if other == column}
            alike = "; they have one name: name all fields by --columns" if len(names) == 1 else ""
            raise UsageError(f"{source}: two fields go to column {column!r} (--mapping){alike}")
        why = not_loadable(table, column)
        if why is not None:
            raise UsageError(f"{source}: {why}; leave it out with --skip-columns")
    missing = [column for column in table.primary_key if column not in columns]
    if missing:
        raise UsageError(
            f"{source}: no field for primary key column {', '.join(map(repr, missing))} of "
            f"{table.name}; name one with --mapping FIELD={missing[0]}"
        )
