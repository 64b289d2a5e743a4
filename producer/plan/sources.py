"""The sources of a load that are no CSV: what their fields are, and into which columns they go.

Like a CSV header, names and types are looked at when the load is planned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from producer.plan.files import each_file, first_block
from producer.plan.jsonl_source import plan_jsonl, refuse_misspelt
from producer.plan.parquet_source import plan_parquet
from producer.request.load import LoadRequest, refuse_unread
from ringhaul.cluster.schema import TableSchema
from ringhaul.errors import SourceMissing, UsageError
from ringhaul.formats.header import SourceEmpty, check_names, read_header
from ringhaul.formats.split import START, Position
from ringhaul.formats.suffixes import format_of
from ringhaul.records.job import LoadSource
from ringhaul.records.mapping import (
    NO_ROW_FIELDS,
    find_fields,
    map_fields,
)
from ringhaul.sources.files import open_whole
from ringhaul.sources.source import SourceFile

#: What usually stands between fields, and how it is given.
_DELIMITERS = {"\t": "\\t", ";": ";", "|": "|", ",": ","}


def plan_sources(
    request: LoadRequest, files: Sequence[SourceFile], table: TableSchema
) -> list[LoadSource | None]:
    """A source for each file; None: one without a record among others, as sets of parts have them.

    Raises `SourceEmpty` if none of them has a record.
    """
    refuse_unread(request, {format_of(file.path, request.file_format) for file in files})
    empty: dict[SourceFile, SourceEmpty] = {}

    def planned(file: SourceFile) -> LoadSource | None:
        try:
            return plan_source(request, file, table)
        except SourceEmpty as error:
            empty[file] = error
            return None

    sources = each_file(files, planned)
    if not any(sources):
        raise empty[files[0]]
    refuse_misspelt(request, [source for source in sources if source is not None])
    return sources


def with_empty(
    request: LoadRequest,
    files: Sequence[SourceFile],
    planned: Sequence[LoadSource | None],
    sources: Sequence[LoadSource],
) -> tuple[LoadSource, ...]:
    """`sources` and, at their places, those of `planned` that are None.

    A file without a record says nothing of fields: it has those of another one, as workers prepare
    the statement of a source before they read it.
    """
    others = iter(sources)
    like = replace(sources[0], start_offset_bytes=0, start_line=1)
    return tuple(
        replace(like, file=file, format=format_of(file.path, request.file_format))
        if source is None
        else next(others)
        for file, source in zip(files, planned, strict=True)
    )


def plan_source(request: LoadRequest, file: SourceFile, table: TableSchema) -> LoadSource:
    """One source's fields and mapping, and where its records begin."""
    file_format = format_of(file.path, request.file_format)
    if file_format == "jsonl":
        return plan_jsonl(request, file, table)
    if file_format == "parquet":
        return plan_parquet(request, file, table)
    start = START
    fields: Sequence[str] = request.columns
    if request.header:
        fields, start = _read_fields(request, file, table)
    else:
        first_block(file, request.dialect)
    if request.transforms:
        mapping: tuple[tuple[str, str], ...] = ()  # of what comes out of them
        row = NO_ROW_FIELDS
        if not fields:
            raise UsageError(
                f"{file.path}: --transform with --no-header needs --columns, the fields' names"
            )
    else:
        # Like COPY, a file without a header and without --columns has the table's columns.
        fields = fields or [c for c in table.column_names if c not in request.skip_columns]
        row = request.row_fields(fields, file.path)
        if request.by_name:
            no_header = request.dialect.option("no-header")
            otherwise = f"; if the first record is data, give {no_header}"
            mapping = find_fields(fields, table, source=file.path, otherwise=otherwise)
        else:
            mapping = map_fields(
                fields,
                table,
                mapping=request.mapping,
                skip=request.skip_columns if request.header or request.columns else (),
                source=file.path,
                taken=row,
            )
    return LoadSource(
        file=file,
        fields=tuple(fields),
        mapping=mapping,
        start_offset_bytes=start.offset_bytes,
        start_line=start.line,
        timestamp_field=row.timestamp,
        ttl_field=row.ttl,
    )


def _read_fields(
    request: LoadRequest, file: SourceFile, table: TableSchema
) -> tuple[Sequence[str], Position]:
    """The fields of a file with a header, and where its records begin."""
    try:
        with open_whole(file, request.dialect) as stream:
            names, start = read_header(stream, request.dialect)
        # Whoever says which fields there are, or by --mapping which are loaded, needs no other
        # name; a transform gets all fields by their names.
        by_name = request.by_name or request.mapping
        if not request.columns and (request.transforms or not by_name):
            check_names(names, () if request.transforms else request.skip_columns)
    except SourceMissing:
        raise  # names the file itself
    except UsageError as error:
        raise type(error)(f"{file.path} {error}") from error
    fields = request.columns or names
    if len(names) == 1 and (len(fields) > 1 or names[0] not in table.column_names):
        _check_delimiter(request, file, names[0])
    if len(fields) != len(names):
        raise UsageError(
            f"{file.path}: --columns names {len(fields)} fields, its header has {len(names)}: "
            f"{', '.join(names[:12])}"
        )
    return fields, start


def _check_delimiter(request: LoadRequest, file: SourceFile, name: str) -> None:
    """Refuse a header that is one field as the delimiter is another one."""
    if request.transforms or {name, "0"} & set(request.mapping) or len(request.columns) == 1:
        return  # the one field is what is wanted
    for character, spelt in _DELIMITERS.items():
        if character in name:
            raise UsageError(
                f"{file.path}: the header is one field, {name[:60]!r}; give "
                f"{request.dialect.option('delimiter')} '{spelt}' if that stands between its fields"
            )
