"""Columns whose values are in the names of a file's folders: `year=2023/region=north/a.parquet`.

They become constants of the file's mapping, so that they are converted, checked and loaded like
constants that a user writes there. Without the option, they are taken for columns of the table that
a file does not have itself.
"""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from producer.notes import Note
from producer.request.input_draft import InputDraft
from producer.request.load import LoadDraft
from ringhaul.cluster.schema import TableSchema, nearest
from ringhaul.errors import SourceMissing, UsageError
from ringhaul.formats.header import SourceEmpty
from ringhaul.formats.hive import values_of
from ringhaul.mapping.field_columns import other_case
from ringhaul.mapping.language import Entry, Term
from ringhaul.records.job import LoadSource
from ringhaul.sources.source import SourceFile

OPTION = "--hive-partitioning"


#: How many columns a note names.
SHOWN_MAX = 3

#: plan(request, file) -> the source of the file.
PlanSource = Callable[[InputDraft, SourceFile], LoadSource]
#: present(request, source) -> the fields that the file of a source has.
Present = Callable[[InputDraft, LoadSource], Collection[str]]


class FoundPartitions:
    """Plans files in folders that name columns, without `--hive-partitioning`: a column of the
    table that a file does not have gets the value of its folder."""

    def __init__(self, table: TableSchema, plan: PlanSource) -> None:
        self._table, self._plan = table, plan
        #: What the last file lacked: the next one probably does as well.
        self._expected: tuple[str, ...] = ()

    def source(self, request: InputDraft, file: SourceFile, present: Present) -> LoadSource:
        """Return the source of a file. Raises as `plan` and `with_partitions` do."""
        offered = {} if _decides_itself(request) else offered_columns(request, file, self._table)
        if not offered:
            return self._plan(request, file)
        expected = tuple(name for name in self._expected if name in offered)
        if expected and (request.header or request.columns):  # or it depends on their number
            try:
                source = self._planned_with(request, file, expected)
            except UsageError:
                pass
            else:
                if not {*expected} & _columns_of(source.fields, self._table):
                    return source
        try:
            source = self._plan(request, file)
        except (SourceEmpty, SourceMissing):
            raise
        except UsageError:
            # Perhaps for the lack of a key column; if not, the same is wrong again.
            return self._planned_with(request, file, tuple(offered))
        has = {*present(request, source)}
        filled = {column for field, column in source.mapping if field in has}
        filled |= {column for column, _ in (*source.constants, *source.filled)}
        lacks = tuple(name for name in offered if name not in filled)
        return self._planned_with(request, file, lacks) if lacks else source

    def _planned_with(
        self, request: InputDraft, file: SourceFile, columns: tuple[str, ...]
    ) -> LoadSource:
        source = self._plan(with_partitions(request, file, self._table, columns), file)
        self._expected = columns
        return with_nulls(request, source, self._table, columns)


def _decides_itself(request: InputDraft) -> bool:
    """Return whether the request says by other means what is loaded."""
    listed = bool(request.mapping) and not request.mapping.rest
    return listed or bool(request.transforms) or request.by_name


def offered_columns(
    request: InputDraft, file: SourceFile, table: TableSchema
) -> dict[str, str | None]:
    """Return the values that the folders of a file have for columns of the table, by column."""
    if "=" not in posixpath.dirname(file.path):
        return {}
    try:
        values = _values(file)
    except UsageError:
        return {}
    spelt = other_case(values, table.column_names)
    columns = {
        spelt.get(name, name): value
        for name, value in values.items()
        if name not in request.skip_columns
    }
    mapped = {(right or left).text for left, right in request.mapping.entries}
    known = {*table.column_names} - {*request.skip_columns} - mapped
    return {column: value for column, value in columns.items() if column in known}


def _columns_of(fields: Sequence[str], table: TableSchema) -> set[str]:
    spelt = other_case(fields, table.column_names)
    return {spelt.get(field, field) for field in fields}


def partition_notes(
    request: LoadDraft, sources: Sequence[LoadSource], table: TableSchema
) -> list[Note]:
    """Return notes about columns that were taken from the names of folders without the option, and
    about columns that were left out although names of folders have values."""
    if request.partitioned or request.by_name:
        return []
    taken, left = dict[str, None](), dict[str, None]()
    for source in sources:
        if request.create_table:
            left |= dict.fromkeys(_unmade(source, table))
        constants = dict(source.constants)
        filled = {*source.columns, *source.results, *(column for column, _ in source.filled)}
        for column, value in offered_columns(request, source.file, table).items():
            if value is not None and constants.get(column) == value:
                taken[column] = None
            elif value is not None and column not in filled:
                left[column] = None
    notes = []
    if taken and not _decides_itself(request):
        free = [name for name in taken if name not in table.primary_key]
        advice = f". --skip-columns {shlex.quote(free[0])} leaves it out" if free else ""
        notes.append(
            Note(
                f"{_named(taken)} taken from the names of folders, as {OPTION} does: the files "
                f"have no such field{advice}"
            )
        )
    if left:
        if request.create_table:
            advice = "create the table with such columns first, without --create-table"
        elif request.transforms:
            advice = "--transform does not see them"
        else:
            advice = f"{OPTION} takes them"
        text = f"warning: {_named(left)} not loaded, though names of folders have values: {advice}"
        notes.append(Note(text, warns=True))
    return notes


def _unmade(source: LoadSource, table: TableSchema) -> list[str]:
    """Return the names of folders that a new table has no column for."""
    try:
        values = _values(source.file)
    except UsageError:
        return []
    spelt = other_case(values, table.column_names)
    return [name for name in values if spelt.get(name, name) not in table.column_names]


def _named(columns: Collection[str]) -> str:
    names = list(columns)
    more = f" and {len(names) - SHOWN_MAX:,} more" if len(names) > SHOWN_MAX else ""
    return f"{', '.join(names[:SHOWN_MAX])}{more} {'is' if len(names) == 1 else 'are'}"


def with_partitions(
    request: InputDraft,
    file: SourceFile,
    table: TableSchema,
    columns: Collection[str] | None = None,
) -> InputDraft:
    """Return the request for one file, with the values of its folders; `columns`: only for these.

    Raises `UsageError` for a folder that names no column, unless `columns` are given, and for null
    in a key column.
    """
    every = values = _values(file)
    if columns is not None:
        spelt = other_case(values, table.column_names)
        values = {name: value for name, value in values.items() if spelt.get(name, name) in columns}
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
    fields = request.columns
    if not (request.header or fields or request.mapping):
        # A file without names has the columns that its folders do not give, in their usual order.
        given = {unknown.get(name, name) for name in values}
        skipped = {*given, *request.skip_columns}
        fields = [column for column in table.column_names if column not in skipped]
    mapping = replace(request.mapping, entries=tuple(entries), rest=rest)
    skip = [name for name in request.skip_columns if name not in every]
    return replace(request, mapping=mapping, skip_columns=skip, columns=fields)


def with_nulls(
    request: InputDraft,
    source: LoadSource,
    table: TableSchema,
    only: Collection[str] | None = None,
) -> LoadSource:
    """Return a source with the columns that its folders make null, if nulls are written. `only`:
    leave all other columns as they are."""
    if request.nulls != "tombstone" or request.verifies:
        return source
    values = _values(source.file)
    columns = other_case(values, table.column_names)
    nulls = [
        (columns.get(name, name), "null")
        for name, value in values.items()
        if value is None
        and name not in request.skip_columns
        and (only is None or columns.get(name, name) in only)
    ]
    null = {column for column, _ in nulls}
    # In JSON, any column may be a field.
    mapping = tuple(pair for pair in source.mapping if pair[1] not in null)
    return replace(source, mapping=mapping, filled=(*source.filled, *nulls))


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
