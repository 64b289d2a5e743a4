"""Plan a JSON Lines source: its members, and the columns that they fill."""

from __future__ import annotations

import codecs
from collections.abc import Collection, Sequence
from dataclasses import replace

from producer.plan.files import _refuse_columns, each_file, settled
from producer.plan.heads import Heads, SourceHead
from producer.request.input_draft import InputDraft
from ringhaul.cluster.schema import TableSchema, nearest
from ringhaul.cql.nested import parse_json
from ringhaul.errors import UsageError
from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.jsonl_read import inner_value, line_dialect, plain_json, record_texts
from ringhaul.formats.records import first_document
from ringhaul.formats.split import Block
from ringhaul.mapping.field_columns import find_fields, other_case
from ringhaul.mapping.targets import Targets, find_named_targets
from ringhaul.option_names import input_option
from ringhaul.records.job import LoadSource
from ringhaul.sources.source import SourceFile


def plan_jsonl(request: InputDraft, head: SourceHead, table: TableSchema) -> LoadSource:
    """Plan a JSON Lines source. Its fields are all that the mapping may name."""
    file = head.file
    _refuse_columns(request, file, "a name with each value")
    dialect = line_dialect(request.dialect)
    block = head.first_block(dialect, request.skip_rows)
    row = request.wanted_row_fields
    if request.transforms:
        if not block.records_count:  # no transform will see what it has
            block = head.first_block(dialect)
        return LoadSource(
            file=file,
            fields=tuple(request.columns or _names_in(block, file, dialect)),
            mapping=(),
            format="jsonl",
            any_fields=request.dialect.allow_extra_fields,
        )
    seen = _names_seen(block, dialect, table)
    if request.by_name and not request.mapping:
        spelt = {column: field for field, column in other_case(seen, table.column_names).items()}
        fields = tuple(spelt.get(column, column) for column in table.column_names)
        targets = Targets(find_fields(fields, table, source=file.path), row)
    else:
        fields, targets = find_named_targets(
            table,
            mapping=request.mapping,
            skip=request.skipped(seen, table.column_names),
            source=file.path,
            taken=row,
            seen=seen,
        )
        targets = settled(request, targets, table, file)
    if block.records_count:
        first = plain_json(next(record_texts(block, dialect)), dialect)
        _check_layout(request, block, first, file)
        _check_first(request, first, fields, file, table)
    listed = bool(request.mapping) and not request.mapping.rest
    source = LoadSource(
        file=file,
        fields=fields,
        mapping=(),
        format="jsonl",
        any_fields=request.dialect.allow_extra_fields or request.by_name or listed,
        paths=tuple(name for name in request.mapping.paths if name in fields and name not in seen),
    )
    return targets.of_source(source)


def refuse_misspelt(request: InputDraft, heads: Heads, sources: Sequence[LoadSource]) -> None:
    """Raise `UsageError` for a field with write times or TTLs that no JSON Lines file has in its
    first records: a misspelt name would be null in all of them. One file that has it is enough,
    since writers leave out nulls; for files of other formats this was checked before.

    Raises it also for a field of --mapping that is missing while a similar name exists; other
    missing fields may just be rare.
    """
    wanted = {source.timestamp_field for source in sources} | {s.ttl_field for s in sources}
    mapped = () if request.transforms else _mapped(request, sources)
    wanted.update(mapped)
    wanted.discard(None)
    if not wanted or any(source.format != "jsonl" for source in sources):
        return
    first, *others = (source.file for source in sources)
    dialect = line_dialect(request.dialect)

    def names_of(file: SourceFile) -> list[str]:
        skips = file is first or request.bounds_per_source
        block = heads[file].first_block(dialect, request.skip_rows if skips else 0)
        return _names_of(block, dialect, {name for source in sources for name in source.paths})

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


def _mapped(request: InputDraft, sources: Sequence[LoadSource]) -> tuple[str, ...]:
    """Return the names of --mapping that are fields."""
    fields = {name for source in sources for name in source.fields}
    return tuple(name for name in request.mapping.named if name in fields)


def names_seen(request: InputDraft, head: SourceHead, table: TableSchema) -> list[str]:
    """Return the names of members in the first records of a file."""
    dialect = line_dialect(request.dialect)
    return _names_seen(head.first_block(dialect), dialect, table)


def _names_seen(block: Block, dialect: CsvDialect, table: TableSchema) -> list[str]:
    """Return the names of members in the first records: of the very first, if it has a member for
    each column, otherwise of the whole block."""
    first = next(record_texts(block, dialect), b"")
    names = _names_of_record(first, dialect)
    return names if set(table.column_names) <= set(names) else _names_of(block, dialect)


def _names_in(block: Block, file: SourceFile, dialect: CsvDialect) -> list[str]:
    """Return `_names_of` a block. Raises `UsageError` if there are none."""
    names = _names_of(block, dialect)
    if not names:
        raise UsageError(
            f"{file.path}: none of its first {block.records_count:,} lines is a JSON object"
        )
    return names


def _names_of(block: Block, dialect: CsvDialect, paths: Collection[str] = ()) -> list[str]:
    """Return the names of members in the records of a block, in the order of their first
    occurrence."""
    names: dict[str, None] = {}
    for text in record_texts(block, dialect):
        names |= dict.fromkeys(_names_of_record(text, dialect, paths))
    return list(names)


def _names_of_record(text: bytes, dialect: CsvDialect, paths: Collection[str] = ()) -> list[str]:
    """Return the names of a record's members, with those within objects on the way of `paths`; none
    if it becomes a reject when a worker reads it."""
    try:
        record = dict(parse_json(plain_json(text, dialect)))
    except (ValueError, TypeError):
        return []
    names = list(record)
    for path in paths:
        steps = path.split(".")
        for count in range(1, len(steps)):
            within = inner_value(record, steps[:count])
            if isinstance(within, dict):
                names += [".".join([*steps[:count], name]) for name in within]
    return names


def _check_layout(request: InputDraft, block: Block, first: bytes, file: SourceFile) -> None:
    """Refuse a file whose first record shows that its objects are not each on one line."""
    if request.dialect.encoding == "utf-8" and _is_utf_16(block.data[:4]):
        raise UsageError(
            f"{file.path}: begins as text in UTF-16 does; give {input_option('encoding')} utf-16"
        )
    if request.dialect.json_layout != "lines":
        return
    advice = f"give {input_option('json-layout')} documents"
    if first.lstrip()[:1] == b"[":
        raise UsageError(
            f"{file.path}: begins with [, as a JSON array does, and JSON Lines have one object on "
            f"each line; {advice}"
        )
    if first.lstrip()[:1] == b"{" and _takes_lines(request.dialect, block):
        raise UsageError(
            f"{file.path}: its first object takes several lines, and JSON Lines have one object "
            f"on each line; {advice}"
        )


def _is_utf_16(beginning: bytes) -> bool:
    return beginning[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) or b"\0" in beginning


def _takes_lines(dialect: CsvDialect, block: Block) -> bool:
    """Whether the first object continues after its line, and is JSON then."""
    begin, line_end = int(block.starts[0]), int(block.ends[0])
    end = first_document(block.data[begin:], replace(dialect, json_layout="documents"))
    if end is None or begin + end <= line_end:
        return False
    try:
        return isinstance(parse_json(block.data[begin : begin + end]), dict)
    except ValueError:
        return False


def _check_first(
    request: InputDraft,
    text: bytes,
    fields: Sequence[str],
    file: SourceFile,
    table: TableSchema,
) -> None:
    """Refuse a file whose first record, `text`, has no column."""
    try:
        names = list(parse_json(text))
    except (ValueError, TypeError):
        return  # a reject, once it is read
    heads = (path.partition(".")[0] for path in request.mapping.paths)
    if names and not set(names) & {*fields, *heads}:
        if request.by_name:
            find_fields(list(map(str, names)), table, source=f"{file.path}: in the first record")
        raise UsageError(
            f"{file.path}: the first record names no column of {table.name} (it has "
            f"{', '.join(map(str, names[:8]))}; the table has {', '.join(table.column_names[:12])})"
        )
