"""Which field of the file goes into which column. Pure; every refusal names the option to use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ringhaul.cluster.schema import TableSchema, nearest
from ringhaul.cql.text import supported
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
            raise UsageError(f"{source}: two fields go to column {column!r} (--mapping)")
        cql_type = table.type_of(column)
        if not supported(cql_type):
            raise UsageError(
                f"{source}: column {column!r} has type {cql_type}, which load does not write yet; "
                "leave it out with --skip-columns"
            )
    missing = [column for column in table.primary_key if column not in columns]
    if missing:
        raise UsageError(
            f"{source}: no field for primary key column {', '.join(map(repr, missing))} of "
            f"{table.name}; name one with --mapping FIELD={missing[0]}"
        )
