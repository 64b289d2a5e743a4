"""The sources of a load that are no CSV: what their fields are, and into which columns they go.

Like a CSV header, names and types are looked at when the load is planned.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from ringhaul.cluster.schema import TableSchema, nearest
from ringhaul.cql.nested import parse_json
from ringhaul.cql.text import TextFormat
from ringhaul.cql.typed import refusal
from ringhaul.errors import SourceCorrupt, UsageError
from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.header import SourceEmpty, refuse_binary
from ringhaul.formats.jsonl_read import line_dialect, record_texts
from ringhaul.formats.split import START, Block, read_blocks
from ringhaul.records.job import LoadSource
from ringhaul.records.mapping import (
    RowFields,
    find_fields,
    find_row_fields,
    map_fields,
    map_names,
    refuse_other_case,
)
from ringhaul.sources.files import SourceFile, open_parquet, open_whole
from ringhaul.storage.access import is_url

T = TypeVar("T")
#: Files behind URLs that are looked at side by side: a thousand of them take some 10 s, not 200.
REMOTE_AT_ONCE = 16
#: Read at a time to see whether a file holds a record at all.
LOOK_BYTES = 64 * 1024


#: Options that say how text is written -> the field of a dialect, and the formats that are read by
#: it. What only allows something is not among them: it may be allowed where it never is.
_TEXT_OPTIONS = {
    "delimiter": ("delimiter", {"csv"}),
    "quote": ("quote", {"csv"}),
    "escape": ("escape", {"csv"}),
    "escape-style": ("escape_style", {"csv"}),
    "line-end": ("line_end", {"csv"}),
    "comment": ("comment", {"csv"}),
    "null": ("null_strings", {"csv"}),
    "encoding": ("encoding", {"csv", "jsonl"}),
}


@dataclass(frozen=True, kw_only=True)
class LoadRequest:
    """The options of `ringhaul load` that make up a job."""

    keyspace: str
    table: str
    kind: str = "load"  #: or verify: the rows are compared with the table's
    file_format: str = "auto"  #: csv | jsonl | parquet | auto: by each file's suffix
    header: bool = True
    columns: Sequence[str] = ()
    mapping: Mapping[str, str] = field(default_factory=dict)
    skip_columns: Sequence[str] = ()
    #: In place of `mapping`: each column is filled by the field of its name, others are left out.
    by_name: bool = False
    dialect: CsvDialect = field(default_factory=CsvDialect)
    text: TextFormat = field(default_factory=TextFormat)
    skip_rows: int = 0
    max_rows: int | None = None
    nulls: str = "unset"
    ttl_s: int = 0
    timestamp: str | None = None
    strategy: str = "pipeline"
    unit_bytes: int = 0
    rows_per_s: int = 0  #: What the job begins with; 0: no limit
    max_errors: str = "1000"
    transforms: Sequence[str] = ()  #: `module:function`, in their order
    where: str = ""
    #: Fields with the rows' write times and TTLs, by name or position.
    timestamp_field: str | None = None
    ttl_field: str | None = None

    @property
    def wanted_row_fields(self) -> RowFields:
        """Those that were asked for, as they were."""
        return RowFields(self.timestamp_field, self.ttl_field)

    def row_fields(
        self, fields: Sequence[str], source: str, *, positions: bool = True
    ) -> RowFields:
        """Those among the fields of a source. Raises `UsageError` for one that is not there."""
        return find_row_fields(fields, self.wanted_row_fields, source=source, positions=positions)


def each_file(files: Sequence[SourceFile], work: Callable[[SourceFile], T]) -> list[T]:
    """What `work` makes of each file, in order. Behind URLs several at once: each waits long."""
    if not any(is_url(file.path) for file in files):
        return [work(file) for file in files]
    with ThreadPoolExecutor(REMOTE_AT_ONCE) as pool:
        return list(pool.map(work, files))


def first_block(file: SourceFile, dialect: CsvDialect) -> Block:
    """The first records of a text file, or what begins as one.

    Raises `SourceEmpty` if there are none, and `UsageError` for what is no text.
    """
    with open_whole(file, dialect) as stream:
        block = next(read_blocks(stream, dialect, block_bytes=LOOK_BYTES, start=START), None)
    if block is None:
        raise SourceEmpty(f"{file.path} is empty: it has no records")
    try:
        refuse_binary(block, dialect)
    except UsageError as error:
        raise UsageError(f"{file.path} {error}") from error
    return block


def refuse_unread(request: LoadRequest, formats: Collection[str]) -> None:
    """Raise `UsageError` for an option about how text is written that no file of these formats is
    read by: whoever gives it takes the data for something else."""
    dialect, usual = request.dialect, CsvDialect()
    for option, (name, readers) in _TEXT_OPTIONS.items():
        if readers.isdisjoint(formats) and getattr(dialect, name) != getattr(usual, name):
            known = "CSV or JSON Lines" if len(readers) > 1 else "CSV"
            raise UsageError(
                f"{dialect.option(option)} is of no use: nothing that is read is {known}; "
                f"{dialect.option('format')}, or a file's suffix, says what it is"
            )


def plan_jsonl(request: LoadRequest, file: SourceFile, table: TableSchema) -> LoadSource:
    """A source of JSON Lines: its fields are whatever may be named in it."""
    _refuse_columns(request, file, "a name with each value")
    dialect = line_dialect(request.dialect)
    block = first_block(file, dialect)
    row = request.wanted_row_fields
    if request.transforms:
        return LoadSource(
            file=file,
            fields=tuple(request.columns or _names_in(block, file, dialect)),
            mapping=(),
            format="jsonl",
            any_fields=request.dialect.allow_extra_fields,
        )
    if request.by_name:
        fields = tuple(table.column_names)
        mapping = find_fields(fields, table, source=file.path)
    else:
        fields, mapping = map_names(
            table,
            mapping=request.mapping,
            skip=request.skip_columns,
            source=file.path,
            taken=row,
        )
    first = next(record_texts(block, dialect))
    _check_first(request, first, fields, file, table)
    return LoadSource(
        file=file,
        fields=fields,
        mapping=mapping,
        format="jsonl",
        any_fields=request.dialect.allow_extra_fields or request.by_name or bool(request.mapping),
        timestamp_field=row.timestamp,
        ttl_field=row.ttl,
    )


def refuse_misspelt(request: LoadRequest, sources: Sequence[LoadSource]) -> None:
    """Raise `UsageError` for a field with write times or TTLs that no file of JSON Lines has in its
    first records: a name that is misspelt would be null in all of them. One file that has it will
    do, as writers leave out what is null; every file of another format was found to have it.

    The same for a field of --mapping that has the like of its name beside it; others may be rare.
    """
    wanted = {source.timestamp_field for source in sources} | {s.ttl_field for s in sources}
    mapped = () if request.transforms else tuple(request.mapping)
    wanted.update(mapped)
    wanted.discard(None)
    if not wanted or any(source.format != "jsonl" for source in sources):
        return
    first, *others = (source.file for source in sources)
    dialect = line_dialect(request.dialect)

    def names_of(file: SourceFile) -> list[str]:
        return _names_of(first_block(file, dialect), dialect)

    names, where = names_of(first), f"{first.path}: in its"
    if others and not wanted <= {*names}:
        for found in each_file(others, names_of):
            names += found
        where = f"{first.path} and {len(others):,} more: in their"
    there = list(dict.fromkeys(names))
    request.row_fields(there, f"{where} first records", positions=False)
    free = [name for name in there if name not in mapped and name not in request.skip_columns]
    for name in mapped:
        if name not in there and (meant := nearest(name, free)):
            raise UsageError(
                f"{where} first records no field is named {name!r} (--mapping){meant} If not, "
                "leave that one out by --skip-columns"
            )


def _names_in(block: Block, file: SourceFile, dialect: CsvDialect) -> list[str]:
    """`_names_of`. Raises `UsageError` if there are none."""
    names = _names_of(block, dialect)
    if not names:
        raise UsageError(
            f"{file.path}: none of its first {block.records_count:,} lines is a JSON object"
        )
    return names


def _names_of(block: Block, dialect: CsvDialect) -> list[str]:
    """The names that stand in the records of a block, in the order in which they come up."""
    names: dict[str, None] = {}
    for text in record_texts(block, dialect):
        try:
            names |= dict.fromkeys(dict(parse_json(text)))
        except (ValueError, TypeError):
            continue  # a reject, once it is read
    return list(names)


def _check_first(
    request: LoadRequest,
    text: bytes,
    fields: Sequence[str],
    file: SourceFile,
    table: TableSchema,
) -> None:
    """Refuse a file whose first record, `text`, shows that all of it is something else."""
    if text.lstrip()[:1] == b"[":
        raise UsageError(
            f"{file.path}: begins with [, as a JSON array does; JSON Lines are wanted, one object "
            f"on each line (jq -c '.[]' makes them of it)"
        )
    try:
        names = list(parse_json(text))
    except (ValueError, TypeError):
        return  # a reject, once it is read
    if names and not set(names) & set(fields):
        if request.by_name:
            find_fields(list(map(str, names)), table, source=f"{file.path}: in the first record")
        if not request.mapping:
            refuse_other_case(
                names, table, skip=request.skip_columns, source=file.path, takes_columns=False
            )
        raise UsageError(
            f"{file.path}: the first record names no column of {table.name} (it has "
            f"{', '.join(map(str, names[:8]))}; the table has {', '.join(table.column_names[:12])})"
        )


def plan_parquet(request: LoadRequest, file: SourceFile, table: TableSchema) -> LoadSource:
    """A Parquet file, whose columns have names and types."""
    _refuse_columns(request, file, "the names of its columns")
    try:
        with open_parquet(file) as opened:
            schema = opened.schema_arrow
    except SourceCorrupt as error:
        raise UsageError(str(error)) from error
    for name, count in Counter(schema.names).items():
        if count > 1:
            raise UsageError(f"{file.path}: {name!r} names {count} columns of it")
    if request.transforms:
        return LoadSource(file=file, fields=tuple(schema.names), mapping=(), format="parquet")
    row = request.row_fields(schema.names, file.path)
    mapping = _columns_of(request, schema.names, row, file, table)
    for name, column in mapping:
        arrow = schema.field(name).type
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
    source = LoadSource(
        file=file,
        fields=tuple(schema.names),
        mapping=mapping,
        format="parquet",
        timestamp_field=row.timestamp,
        ttl_field=row.ttl,
    )
    for name, meant in source.row_fields:
        why = meant.refusal(schema.field(name).type)
        if why is not None:
            raise UsageError(f"{file.path}: {meant.option} {name}: {why}")
    return source


def _columns_of(
    request: LoadRequest,
    names: Sequence[str],
    row: RowFields,
    file: SourceFile,
    table: TableSchema,
) -> tuple[tuple[str, str], ...]:
    """Which column of a Parquet file goes into which of the table."""
    if request.by_name:
        return find_fields(names, table, source=file.path)
    known, skip = table.column_names, request.skip_columns
    if not request.mapping and not set(names) & set(known):
        refuse_other_case(names, table, skip=skip, source=file.path, takes_columns=False)
        raise UsageError(
            f"{file.path}: no column of it is one of {table.name} (it has "
            f"{', '.join(names[:12])}; the table has {', '.join(known[:12])})"
        )
    return map_fields(
        names,
        table,
        mapping=request.mapping,
        skip=skip,
        source=file.path,
        takes_columns=False,
        taken=row,
    )


def _refuse_columns(request: LoadRequest, file: SourceFile, has: str) -> None:
    # A transform gets the same fields of every record, and JSON Lines may not say which.
    columns = () if request.transforms and has.startswith("a name") else request.columns
    for option, given in (("columns", columns), ("no-header", not request.header)):
        if given:
            name = request.dialect.option(option)
            raise UsageError(f"{file.path}: {name} is of no use: the file has {has}")
