"""Columns whose values are in the names of a file's folders: `year=2023/region=north/a.parquet`.

They become constants of the file's mapping, so that they are converted, checked and loaded like
those that a user writes there.
"""

from __future__ import annotations

import posixpath
import shlex
from dataclasses import replace

from producer.request.load import LoadRequest
from ringhaul.cluster.schema import TableSchema, nearest
from ringhaul.errors import UsageError
from ringhaul.formats.hive import values_of
from ringhaul.ledger.kinds import JobKind
from ringhaul.records.job import LoadSource
from ringhaul.records.mapping import other_case
from ringhaul.records.mapping_text import Entry, Term
from ringhaul.sources.source import SourceFile

OPTION = "--hive-partitioning"


def with_partitions(request: LoadRequest, file: SourceFile, table: TableSchema) -> LoadRequest:
    """Return the request for one file, with the values of its folders.

    Raises `UsageError` for a folder that names no column, and for null in a key column.
    """
    values = _values(file)
    unknown = other_case(values, table.column_names)
    entries = list(request.mapping.entries)
    for name, value in values.items():
        if name in request.skip_columns:
            continue
        column = unknown.get(name, name)
        if column not in table.column_names:
            raise UsageError(
                f"{file.path}: folder {name}=... names no column of {table.name}; leave it out "
                f"with --skip-columns {shlex.quote(name)}{nearest(name, table.column_names)}"
            )
        if value is not None:
            literal = "'" + value.replace("'", "''") + "'"
            entries.append(Entry(Term(literal), Term(column, quoted=True)))
        elif column in table.primary_key:
            raise UsageError(
                f"{file.path}: its folder makes {column} null, which is in the primary key and "
                "needs a value; leave such folders out"
            )
    rest = request.mapping.rest or not request.mapping
    columns = request.columns
    if not (request.header or columns or request.mapping):
        # A file without names has the columns that its folders do not give, in their usual order.
        given = {unknown.get(name, name) for name in values}
        skipped = {*given, *request.skip_columns}
        columns = [column for column in table.column_names if column not in skipped]
    mapping = replace(request.mapping, entries=tuple(entries), rest=rest)
    skip = [name for name in request.skip_columns if name not in values]
    return replace(request, mapping=mapping, skip_columns=skip, columns=columns)


def with_nulls(request: LoadRequest, source: LoadSource, table: TableSchema) -> LoadSource:
    """Return a source with the columns that its folders make null, if nulls are written."""
    if request.nulls != "tombstone" or request.kind is not JobKind.LOAD:
        return source
    values = _values(source.file)
    columns = other_case(values, table.column_names)
    nulls = [
        (columns.get(name, name), "null")
        for name, value in values.items()
        if value is None and name not in request.skip_columns
    ]
    return replace(source, filled=(*source.filled, *nulls))


def partition_hint(file: SourceFile, table: TableSchema) -> str:
    """Return what to add to a message about a file in folders that name columns; else nothing."""
    try:
        values = _values(file)
    except UsageError:
        return ""
    spelt = other_case(values, table.column_names)
    known = [name for name in values if spelt.get(name, name) in table.column_names]
    return f"; {OPTION} takes {', '.join(known)} from the names of its folders" if known else ""


def _values(file: SourceFile) -> dict[str, str | None]:
    folders = posixpath.dirname(file.path).split("/")
    try:
        return values_of(folders)
    except UsageError as error:
        raise UsageError(f"{file.path}: {error}") from error
