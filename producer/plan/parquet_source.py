"""Plan a Parquet source: its columns, and the table's columns that they fill."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence

from producer.plan.files import _refuse_columns, settled
from producer.plan.heads import SourceHead
from producer.request.input_draft import InputDraft
from ringhaul.cluster.schema import TableSchema
from ringhaul.cql.typed import refusal
from ringhaul.errors import SourceCorrupt, UsageError
from ringhaul.formats.parquet_footer import Footer
from ringhaul.formats.parquet_leaves import check_readable
from ringhaul.formats.parquet_read import parquet_errors
from ringhaul.mapping.field_columns import RowFields, find_fields, other_case
from ringhaul.mapping.targets import Targets, find_targets
from ringhaul.records.job import LoadSource
from ringhaul.sources.source import SourceFile

#: What a field's metadata says of a type that is not one of Parquet's.
_EXTENSION, _PERIOD = b"ARROW:extension:name", b"pandas.period"


def plan_parquet(request: InputDraft, head: SourceHead, table: TableSchema) -> LoadSource:
    """Plan a Parquet source, whose columns have names and types."""
    file = head.file
    _refuse_columns(request, file, "the names of its columns")
    try:
        footer, schema = head.columns()
    except SourceCorrupt as error:
        raise UsageError(str(error)) from error
    for name, count in Counter(schema.names).items():
        if count > 1:
            raise UsageError(f"{file.path}: {name!r} names {count} columns of the file")
    if request.transforms:
        _check_readable(footer, schema.names, file)
        return LoadSource(file=file, fields=tuple(schema.names), mapping=(), format="parquet")
    row = request.row_fields(schema.names, file.path)
    targets = _targets_of(request, schema.names, row, file, table)
    for name, column in targets.mapping:
        arrow = schema.field(name).type
        if (schema.field(name).metadata or {}).get(_EXTENSION) == _PERIOD:
            raise UsageError(
                f"{file.path}: column {name!r} has periods of pandas, which the file keeps as "
                "numbers since 1970: write its .dt.to_timestamp(), or a text"
            )
        why = refusal(table.parsed_type(column), arrow)
        if why is not None:
            within = f" ({why})" if table.parsed_type(column).of else ""
            skip = f"leave it out with --skip-columns {shlex.quote(name)}, or "
            leave_out = "" if request.by_name else skip
            raise UsageError(
                f"{file.path}: column {name!r} has the type {arrow}, which does not become "
                f"{table.type_of(column)} of {table.name}.{column}{within}; {leave_out}write the "
                "file with another type"
            )
    source = targets.of_source(
        LoadSource(file=file, fields=tuple(schema.names), mapping=(), format="parquet")
    )
    columns = [(name, meant) for name, meant, _ in source.column_fields]
    for name, meant in (*source.row_fields, *columns):
        why = meant.refusal(schema.field(name).type)
        if why is not None:
            raise UsageError(f"{file.path}: {meant.option} {name}: {why}")
    named = [name for name, *_ in (*targets.mapping, *source.row_fields, *columns)]
    _check_readable(footer, named, file)
    return source


def _check_readable(footer: Footer, names: Sequence[str], file: SourceFile) -> None:
    """Raise `UsageError` if a column that is wanted cannot be read."""
    try:
        with parquet_errors(file.path):
            check_readable(footer, names)
    except SourceCorrupt as error:
        raise UsageError(str(error)) from error


def _targets_of(
    request: InputDraft,
    names: Sequence[str],
    row: RowFields,
    file: SourceFile,
    table: TableSchema,
) -> Targets:
    """Return what the columns of a Parquet file fill."""
    if request.by_name and not request.mapping:
        return Targets(find_fields(names, table, source=file.path))
    known = table.column_names
    skip = request.skipped(names, known)
    if not request.mapping and not set(names) & set(known) and not other_case(names, known):
        raise UsageError(
            f"{file.path}: no column of it is one of {table.name} (it has "
            f"{', '.join(names[:12])}; the table has {', '.join(known[:12])})"
        )
    targets = find_targets(
        names,
        table,
        mapping=request.mapping,
        skip=skip,
        source=file.path,
        taken=row,
    )
    targets = settled(request, targets, table, file)
    return targets
