"""Plan a table for the files of a load: read a sample of them, choose types and a primary key."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pyarrow as pa

from producer.plan.files import each_file
from producer.plan.sources import read_fields
from producer.request.load import LoadRequest
from producer.text import count_text
from ringhaul.cluster.schema import TableSchema
from ringhaul.cql.nested import parse_json
from ringhaul.errors import SourceCorrupt, UsageError
from ringhaul.formats.csv_read import read_block
from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.fixed_read import fixed_dialect, read_fixed
from ringhaul.formats.header import SourceEmpty
from ringhaul.formats.jsonl_read import (
    line_dialect,
    null_texts,
    plain_json,
    record_texts,
    with_nulls,
)
from ringhaul.formats.split import START, Block, Position, read_blocks
from ringhaul.formats.suffixes import format_of
from ringhaul.records.infer import (
    TYPED_JSON,
    Inferred,
    NoType,
    infer_arrow,
    infer_json,
    infer_text,
    widened,
)
from ringhaul.records.mapping import NO_ROW_FIELDS, mapped_fields, refuse_row_functions
from ringhaul.records.new_table import NewTable, column_names, new_table, repeated_keys
from ringhaul.records.unit import TO_THE_END
from ringhaul.sources.files import open_parquet
from ringhaul.sources.source import SourceFile
from ringhaul.units.reading import open_records

#: Bytes of text read from each sampled file.
SAMPLE_BYTES = 2 << 20
#: Bytes that are searched for records after those that --skip-rows skips.
SAMPLE_BLOCKS_MAX = 100


@dataclass(frozen=True)
class Planned:
    """A table to create, and what the sample says about it, a line each."""

    table: NewTable
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Sample:
    """The beginning of one file: the values of each column that the table would get."""

    file: SourceFile
    columns: Mapping[str, Any]  #: column -> its values, or its Arrow type
    infer: Callable[[Any], Inferred]
    records: int  #: 0: only types were read


def plan_new_table(request: LoadRequest, files: Sequence[SourceFile]) -> Planned:
    """Return the table that fits a sample of the files: the first, one in the middle, the last.

    Raises `UsageError` for files without names of fields, without records, or whose types differ,
    and for values that no type holds.
    """
    sampled = [*dict.fromkeys([files[0], files[len(files) // 2], files[-1]])]
    samples = [
        sample
        for sample in each_file(sampled, lambda file: _sample(request, file, file == files[0]))
        if sample is not None
    ]
    if not samples:
        raise SourceEmpty(f"{files[0].path}: --create-table needs records, and there are none")
    columns = _joined(samples)
    table = new_table(request.keyspace, request.table, columns, request.primary_key)
    return Planned(table, tuple(_notes(table.schema, samples, len(files))))


def _sample(request: LoadRequest, file: SourceFile, first: bool) -> _Sample | None:
    """Return the sample of a file; None if it has no records. `first`: it holds the records that
    --skip-rows skips."""
    skip = request.skip_rows if first or request.rows_per_file else 0
    by_format = {
        "csv": _sample_csv,
        "fixed": _sample_csv,
        "jsonl": _sample_jsonl,
        "parquet": _sample_parquet,
    }
    try:
        return by_format[format_of(file.path, request.file_format)](request, file, skip)
    except SourceEmpty:
        return None


def _sample_csv(request: LoadRequest, file: SourceFile, skip: int) -> _Sample | None:
    fields: Sequence[str] = request.columns
    start = START
    if request.header:
        nothing = TableSchema(
            keyspace=request.keyspace,
            table=request.table,
            columns=(),
            partition_key=(),
            clustering_key=(),
        )
        fields, start = read_fields(request, file, nothing)
    pairs = _pairs(request, fields, file)
    wanted = [field for field, _ in pairs]
    dialect = fixed_dialect(request.dialect) if request.layout else request.dialect
    block = _first_block(file, dialect, start, skip)
    if block is None:
        return None
    if request.layout:
        text = read_fixed(block, dialect, request.layout, wanted)
    else:
        text = read_block(block, dialect, fields, wanted)
    keep = pa.array(text.records + block.position.ordinal >= skip)
    values = [array.filter(keep) for array in text.columns]
    return _Sample(
        file,
        {column: array for (_, column), array in zip(pairs, values, strict=True)},
        lambda array: infer_text(array, request.text),
        len(values[0]),
    )


def _sample_jsonl(request: LoadRequest, file: SourceFile, skip: int) -> _Sample | None:
    dialect = line_dialect(request.dialect)
    block = _first_block(file, dialect, START, skip)
    if block is None:
        return None
    rows: list[dict[str, Any]] = []
    for number, text in enumerate(record_texts(block, dialect), block.position.ordinal):
        try:
            row = parse_json(plain_json(text, dialect), TYPED_JSON)
        except ValueError:
            continue  # a reject, once it is read
        if isinstance(row, dict) and number >= skip:
            rows.append(row)
    names = [*dict.fromkeys(name for row in rows for name in row)]
    if not names:
        raise UsageError(f"{file.path}: no record of the sample is a JSON object with a name")
    # As in a load, a name of --mapping is not a position, and may be missing in the first records.
    known = [*dict.fromkeys([*names, *request.mapping.named])]
    nulls = null_texts(dialect)
    columns = {
        column: with_nulls([row.get(field) for row in rows], nulls)
        for field, column in _pairs(request, known, file)
    }
    return _Sample(file, columns, lambda values: infer_json(values, request.text), len(rows))


def _sample_parquet(request: LoadRequest, file: SourceFile, skip: int) -> _Sample | None:
    try:
        with open_parquet(file) as opened:
            schema = opened.schema_arrow
    except SourceCorrupt as error:
        raise UsageError(str(error)) from error
    pairs = _pairs(request, schema.names, file)
    types = {column: schema.field(schema.names.index(field)).type for field, column in pairs}
    return _Sample(file, types, infer_arrow, 0)


def _pairs(request: LoadRequest, fields: Sequence[str], file: SourceFile) -> list[tuple[str, str]]:
    """Return the fields that get a column, each with the column's name."""
    row = NO_ROW_FIELDS
    if format_of(file.path, request.file_format) == "jsonl":
        row = request.wanted_row_fields  # a rare name may not be in the sample
    else:
        row = request.row_fields(fields, file.path)
    if request.mapping:
        plain = request.mapping.plain
        if plain is None:
            raise UsageError(
                "--create-table makes columns for the fields that --mapping names: give only "
                "FIELD=COLUMN pairs, each field once"
            )
        wanted = mapped_fields(fields, plain, file.path)
    else:
        wanted = column_names([name for name in fields if name not in row])
    pairs = [
        (field, wanted[field])
        for field in fields
        if field in wanted and field not in request.skip_columns
    ]
    if not request.mapping:
        refuse_row_functions([field for field, _ in pairs], file.path)
    if not pairs:
        raise UsageError(f"{file.path}: every field is left out; a table needs a column")
    return pairs


def _first_block(file: SourceFile, dialect: CsvDialect, start: Position, skip: int) -> Block | None:
    """Return the first records of a text file from `start` on, behind the first `skip`; None if
    there are none."""
    with open_records(file, start.offset_bytes, TO_THE_END, dialect) as stream:
        blocks = read_blocks(stream, dialect, block_bytes=SAMPLE_BYTES, start=start)
        for block in islice(blocks, SAMPLE_BLOCKS_MAX):
            if block.defect is None and block.position.ordinal + block.records_count > skip:
                return block
    return None


def _joined(samples: Sequence[_Sample]) -> dict[str, Inferred]:
    """Return the columns of all samples, each with the type that holds its values in all of them.

    Samples of text are taken together; those of typed files have to agree.
    """
    found: dict[str, Inferred] = {}
    names = dict.fromkeys(name for sample in samples for name in sample.columns)
    for name in names:
        having = [sample for sample in samples if name in sample.columns]
        for place, inferred in _types_of(name, having):
            before = found.get(name)
            if before is None:
                found[name] = inferred
                continue
            wide = widened(before.cql_type, inferred.cql_type)
            if wide is None:
                raise UsageError(
                    f"{place}: column {name!r} would be {inferred.cql_type}, and in an earlier "
                    f"file {before.cql_type}: load such files into separate tables"
                )
            found[name] = before if wide == before.cql_type else inferred
    return found


def _types_of(name: str, samples: Sequence[_Sample]) -> list[tuple[str, Inferred]]:
    """Return the type of a column in each group of samples, with the path of one of its files."""
    texts = [sample for sample in samples if isinstance(sample.columns[name], pa.Array)]
    lists = [sample for sample in samples if isinstance(sample.columns[name], list)]
    groups: list[tuple[_Sample, Any]] = []
    if texts:
        groups.append((texts[0], pa.concat_arrays([one.columns[name] for one in texts])))
    if lists:
        groups.append((lists[0], [value for one in lists for value in one.columns[name]]))
    groups += [(one, one.columns[name]) for one in samples if one not in (*texts, *lists)]
    found = []
    for sample, values in groups:
        try:
            found.append((sample.file.path, sample.infer(values)))
        except NoType as error:
            raise UsageError(
                f"{sample.file.path}: column {name!r}: {error}; leave it out with --skip-columns"
            ) from None
    return found


def _notes(table: TableSchema, samples: Sequence[_Sample], files: int) -> list[str]:
    """Return what the sample says: how large it is, and keys that are missing or repeated."""
    records = sum(sample.records for sample in samples)
    of_files = count_text(files, "file")
    if len(samples) < files:
        of_files = f"{len(samples)} of {of_files}"
    if not records:
        return [f"types as in {of_files}"]
    notes = [f"types from the first {count_text(records, 'record')} of {of_files}"]
    with_key = [
        sample
        for sample in samples
        if sample.records and all(name in sample.columns for name in table.primary_key)
    ]
    keys = [
        key
        for sample in with_key
        for key in zip(*(_values(sample.columns[name]) for name in table.primary_key), strict=True)
    ]
    missing = sum(None in key for key in keys)
    if missing:
        notes.append(
            f"warning: {count_text(missing, 'sampled record')} without a value for the primary key "
            "would be rejected"
        )
    again = repeated_keys([key for key in keys if None not in key])
    if again:
        notes.append(
            f"warning: {count_text(again, 'sampled record')} with a primary key that another one "
            "has: the later one overwrites the earlier. Name more columns with --primary-key"
        )
    return notes


def _values(column: Any) -> list[object]:
    """Return the values of a sampled column in a form that can be compared and hashed."""
    if isinstance(column, pa.Array):
        return list(column.to_pylist())
    return [None if value is None else repr(value) for value in column]
