"""Plan the sources of a load: their fields, and the columns that these fill.

Headers, names and types are read when the load is planned.
"""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Collection, Sequence
from dataclasses import replace

from producer.plan.files import each_file, first_fields, records_count, settled
from producer.plan.heads import Heads, SourceHead
from producer.plan.jsonl_source import names_seen, plan_jsonl, refuse_misspelt
from producer.plan.parquet_source import plan_parquet
from producer.plan.partitions import (
    FoundPartitions,
    offered_columns,
    partition_hint,
    with_nulls,
    with_partitions,
)
from producer.plan.short_header import short_header
from producer.plan.titles import SEPARATOR_LINE, header_position
from producer.request.input_draft import InputDraft
from producer.request.load import refuse_unread
from ringhaul.cluster.schema import TableSchema
from ringhaul.errors import SourceMissing, UsageError
from ringhaul.formats.fixed_read import fixed_dialect
from ringhaul.formats.header import SourceEmpty, check_names, read_header
from ringhaul.formats.split import START, Block, Position
from ringhaul.formats.suffixes import format_of
from ringhaul.mapping.field_columns import find_fields
from ringhaul.mapping.targets import Targets, find_targets
from ringhaul.option_names import input_option
from ringhaul.records.job import LoadSource
from ringhaul.sources.source import SourceFile
from ringhaul.storage.access import is_url, mask_url

#: Usual delimiters, and how they are written on a command line.
_DELIMITERS = {"\t": "\\t", ";": ";", "|": "|", ",": ","}


def plan_sources(request: InputDraft, heads: Heads, table: TableSchema) -> list[LoadSource | None]:
    """Return a source for each file; None for one without any record, which sets of part files may
    contain.

    Estimates the records of files behind URLs meanwhile, if the job wants that: then each of them
    is read once, however many there are. Raises `SourceEmpty` if none of them has a record.
    """
    files = heads.files
    refuse_unread(request, {format_of(file.path, request.file_format) for file in files})
    empty: dict[SourceFile, SourceEmpty] = {}
    given = request

    found_partitions = FoundPartitions(
        table, lambda request, file: plan_source(request, heads[file], table)
    )

    def planned(file: SourceFile, skip: int) -> LoadSource | None:
        """`skip`: records of this file that are skipped, and say nothing about the others."""
        request = replace(given, skip_rows=skip)
        try:
            if request.partitioned:
                found = plan_source(with_partitions(request, file, table), heads[file], table)
                return with_nulls(request, found, table)
            return found_partitions.source(
                request, file, lambda request, one: _present(request, heads[file], one, table)
            )
        except SourceEmpty as error:
            empty[file] = error
            return None
        except SourceMissing:
            raise
        except UsageError as error:
            hint = "" if request.partitioned or request.by_name else partition_hint(file, table)
            hint = hint or _others_hint(file, files)
            if not hint:
                raise
            raise UsageError(f"{error}{hint}") from error

    sources: list[LoadSource | None] = []
    left = request.skip_rows
    if not request.bounds_per_source:
        while left and len(sources) < len(files):
            source = planned(files[len(sources)], left)
            sources.append(source)
            if source is not None:
                left -= records_count(heads[source.file], source, request.dialect, left)

    def planned_and_estimated(file: SourceFile) -> LoadSource | None:
        source = planned(file, left)
        text = source is not None and source.format != "parquet"
        if text and request.estimates and is_url(file.path):
            heads[file].estimate(request.dialect)
        return source

    sources += each_file(files[len(sources) :], planned_and_estimated)
    if not any(sources):
        raise empty[files[0]]
    refuse_misspelt(request, heads, [source for source in sources if source is not None])
    return sources


def _present(
    request: InputDraft, head: SourceHead, source: LoadSource, table: TableSchema
) -> Collection[str]:
    """Return the fields that the first records of a file have."""
    if source.format == "jsonl":
        return names_seen(request, head, table)
    if source.format == "csv" and not (request.header or request.columns or request.mapping):
        offered = offered_columns(request, source.file, table)
        count = fields_count(head.first_block(request.dialect, request.skip_rows), request)
        if count == len(source.fields) - len(offered):
            return [field for field in source.fields if field not in offered]
    return source.fields


def _others_hint(file: SourceFile, files: Sequence[SourceFile]) -> str:
    """Return how to load only the other files of a folder, if their suffix tells them apart; else
    nothing. A README beside the data is the usual case."""
    folder, name = posixpath.split(file.path)
    suffix = posixpath.splitext(name)[1]
    others = [posixpath.split(other.path) for other in files if other is not file]
    kinds = {posixpath.splitext(other)[1] for _, other in others}
    if len(kinds) != 1 or suffix in kinds or any(place != folder for place, _ in others):
        return ""
    pattern = posixpath.join(mask_url(folder), f"*{kinds.pop()}")
    return f"; to load only the other files, give {shlex.quote(pattern)}"


def with_empty(
    request: InputDraft,
    files: Sequence[SourceFile],
    planned: Sequence[LoadSource | None],
    sources: Sequence[LoadSource],
) -> tuple[LoadSource, ...]:
    """Return `sources`, with a source for each file without records, whose `planned` is None.

    A file without records says nothing about its fields. It gets another file's fields, because
    workers prepare the statement of a source before they read it.
    """
    others = iter(sources)
    like = replace(sources[0], start_offset_bytes=0, start_line=1)
    return tuple(
        replace(like, file=file, format=format_of(file.path, request.file_format))
        if source is None
        else next(others)
        for file, source in zip(files, planned, strict=True)
    )


def plan_source(request: InputDraft, head: SourceHead, table: TableSchema) -> LoadSource:
    """Plan one source: its fields, its mapping, and where its records start."""
    file = head.file
    file_format = format_of(file.path, request.file_format)
    if file_format == "jsonl":
        return plan_jsonl(request, head, table)
    if file_format == "parquet":
        return plan_parquet(request, head, table)
    fixed = file_format == "fixed"
    start = START
    fields: Sequence[str] = request.columns
    if request.header:
        fields, start = read_fields(request, head, table)
    else:
        dialect = fixed_dialect(request.dialect) if fixed else request.dialect
        block = head.first_block(dialect, request.skip_rows)
        if not fields and not request.transforms and counts_fields(request):
            fields = [str(place) for place in range(fields_count(block, request))]
    if request.transforms:
        targets = Targets(())  # the mapping is about their results
        if not fields:
            raise UsageError(
                f"{file.path}: --transform with --no-header needs --columns, the fields' names"
            )
    else:
        # As in COPY, a file without a header and without --columns has the table's columns.
        fields = fields or [c for c in table.column_names if c not in request.skip_columns]
        try:
            targets = _targets_of(request, fields, file, table)
        except UsageError as error:
            found = short_header(request, head, fields, start, table)
            if not found:
                raise
            raise UsageError(f"{error}. But {found}") from error
    source = LoadSource(
        file=file,
        fields=tuple(fields),
        mapping=(),
        start_offset_bytes=start.offset_bytes,
        start_line=start.line,
        format=file_format,
        layout=tuple(request.layout),
    )
    return targets.of_source(source)


def _targets_of(
    request: InputDraft, fields: Sequence[str], file: SourceFile, table: TableSchema
) -> Targets:
    """Return what the fields of a text file fill."""
    row = request.row_fields(fields, file.path)
    if request.by_name and not request.mapping:
        no_header = input_option("no-header")
        otherwise = f"; if the first record is data, give {no_header}" if request.header else ""
        return Targets(find_fields(fields, table, source=file.path, otherwise=otherwise))
    named = request.header or request.columns or request.mapping
    targets = find_targets(
        fields,
        table,
        mapping=request.mapping,
        skip=request.skipped(fields, table.column_names) if named else (),
        source=file.path,
        taken=row,
    )
    return settled(request, targets, table, file)


def counts_fields(request: InputDraft) -> bool:
    """Return whether a file without names has fields that count from 0, however many it has: the
    mapping names positions alone, or lists columns."""
    return request.mapping.positional or request.mapping.listed


def fields_count(block: Block, request: InputDraft) -> int:
    """Return the number of fields that records have, by the first record of a block.

    Where records may have fewer, there are as many as the mapping needs; also where there is no
    record.
    """
    needed = request.mapping.positions_count
    if not block.records_count:
        return needed
    if block.defect is not None:
        return 1
    count = len(next(first_fields(block, request.dialect)))
    return max(count, needed) if request.dialect.allow_missing_fields else count


def read_fields(
    request: InputDraft, head: SourceHead, table: TableSchema
) -> tuple[Sequence[str], Position]:
    """Return the fields of a file with a header, and where its records start."""
    file = head.file
    try:
        at = START if request.header_at is None else header_position(request, head, table)
        with head.text(request.dialect, at.offset_bytes) as stream:
            names, start = read_header(stream, request.dialect, start=at, known=table.column_names)
        _refuse_separator(request, names)
        # A command that lists the fields, or by --mapping those to load, need not name the others;
        # a transform gets all fields by their names.
        by_name = request.by_name or request.mapping
        if not request.columns and (request.transforms or not by_name):
            check_names(names, () if request.transforms else request.skip_columns)
    except SourceMissing:
        raise  # its message names the file
    except UsageError as error:
        raise type(error)(f"{file.path} {error}") from error
    fields = request.columns or names
    if len(names) == 1 and (len(fields) > 1 or names[0] not in table.column_names):
        _check_delimiter(request, file, names[0])
    # A header may lack the name of the first field, see short_header.py.
    if len(fields) != len(names) and [*fields[1:]] != names:
        raise UsageError(
            f"{file.path}: --columns names {len(fields)} fields, its header has {len(names)}: "
            f"{', '.join(names[:12])}. It names all of them; --mapping loads only some"
        )
    return fields, start


def _refuse_separator(request: InputDraft, names: Sequence[str]) -> None:
    """Refuse a line in place of the header that names the delimiter, as Excel writes it."""
    if request.header_at is None and len(names) <= 2 and SEPARATOR_LINE.fullmatch("".join(names)):
        raise UsageError(
            f"begins with the line {names[0]}, which names the delimiter: give "
            f"{input_option('header-at')} 2, the line of the header, which takes the "
            "delimiter from there"
        )


def _check_delimiter(request: InputDraft, file: SourceFile, name: str) -> None:
    """Refuse a header that is a single field because it has another delimiter."""
    named = {name, "0"} & {*request.mapping.named}
    if request.transforms or named or len(request.columns) == 1:
        return  # a single field is expected
    for character, spelt in _DELIMITERS.items():
        if character in name:
            raise UsageError(
                f"{file.path}: the header is one field, {name[:60]!r}; give "
                f"{input_option('delimiter')} '{spelt}' if that stands between its fields"
            )
