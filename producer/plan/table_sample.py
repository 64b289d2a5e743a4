"""Read a sample of a file whose columns are to become a table: names, and values or types."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import pyarrow as pa

from producer.plan.heads import SourceHead
from producer.plan.sources import read_fields
from producer.request.load import LoadDraft
from ringhaul.cluster.schema import TableSchema
from ringhaul.cql.nested import parse_json
from ringhaul.errors import SourceCorrupt, UsageError
from ringhaul.formats.csv_read import read_block
from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.fixed_read import fixed_dialect, read_fixed
from ringhaul.formats.header import SourceEmpty
from ringhaul.formats.jsonl_read import (
    inner_value,
    line_dialect,
    null_texts,
    plain_json,
    record_texts,
    with_nulls,
)
from ringhaul.formats.parquet_read import parquet_errors, read_batches
from ringhaul.formats.split import START, Block, Position, read_blocks
from ringhaul.formats.suffixes import format_of
from ringhaul.mapping.arrow_inference import infer_arrow, may_need_values
from ringhaul.mapping.field_columns import NO_ROW_FIELDS, mapped_fields, refuse_row_functions
from ringhaul.mapping.inference import TYPED_JSON, Inferred, infer_json, infer_text
from ringhaul.mapping.new_table import column_names
from ringhaul.records.unit import TO_THE_END
from ringhaul.sources.source import SourceFile

#: Bytes of text read at a time from each sampled file.
SAMPLE_BYTES = 2 << 20
#: A sample ends with this many records, or this many bytes.
SAMPLE_RECORDS = 1000
SAMPLE_BYTES_MAX = 16 << 20
#: Blocks that are searched for records behind the skipped ones (--skip-rows).
SAMPLE_BLOCKS_MAX = 100


class ArrowColumn(NamedTuple):
    """A column of a Parquet file."""

    type: pa.DataType
    values: pa.Array | None  #: the first ones, if they decide about the type


@dataclass(frozen=True)
class Sample:
    """The beginning of one file: the values of each column that the table would get."""

    file: SourceFile
    columns: Mapping[str, Any]  #: column -> its values; of Parquet an `ArrowColumn`
    infer: Callable[[Any], Inferred]
    records: int  #: 0: only types were read


def read_sample(request: LoadDraft, head: SourceHead, first: bool, vectors: bool) -> Sample | None:
    """Return the sample of a file; None if it has no records. `first`: it holds the records that
    --skip-rows skips."""
    skip = request.skip_rows if first or request.bounds_per_source else 0
    by_format = {
        "csv": _sample_csv,
        "fixed": _sample_csv,
        "jsonl": _sample_jsonl,
        "parquet": _sample_parquet,
    }
    try:
        file_format = format_of(head.file.path, request.file_format)
        return by_format[file_format](request, head, skip, vectors)
    except SourceEmpty:
        return None


def _sample_csv(request: LoadDraft, head: SourceHead, skip: int, _: bool) -> Sample | None:
    file = head.file
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
        fields, start = read_fields(request, head, nothing)
    pairs = _pairs(request, fields, file)
    wanted = [field for field, _ in pairs]
    dialect = fixed_dialect(request.dialect) if request.layout else request.dialect
    parts: list[list[pa.Array]] = []
    for block in _first_blocks(head, dialect, start, skip):
        if request.layout:
            text = read_fixed(block, dialect, request.layout, wanted)
        else:
            text = read_block(block, dialect, fields, wanted)
        keep = pa.array(text.records + block.position.ordinal >= skip)
        parts.append([array.filter(keep) for array in text.columns])
    if not parts:
        return None
    values = [pa.concat_arrays(arrays) for arrays in zip(*parts, strict=True)]
    return Sample(
        file,
        {column: array for (_, column), array in zip(pairs, values, strict=True)},
        lambda array: infer_text(array, request.text),
        len(values[0]),
    )


def _sample_jsonl(request: LoadDraft, head: SourceHead, skip: int, vectors: bool) -> Sample | None:
    file = head.file
    dialect = line_dialect(request.dialect)
    blocks = _first_blocks(head, dialect, START, skip)
    if not blocks:
        return None
    rows: list[dict[str, Any]] = []
    for block in blocks:
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
    paths = {path: path.split(".") for path in request.mapping.paths if path not in names}
    columns = {
        column: with_nulls([inner_value(row, paths.get(field, (field,))) for row in rows], nulls)
        for field, column in _pairs(request, known, file)
    }
    infer = partial(infer_json, fmt=request.text, vectors=vectors)
    return Sample(file, columns, infer, len(rows))


def _sample_parquet(request: LoadDraft, head: SourceHead, _: int, vectors: bool) -> Sample | None:
    file = head.file
    try:
        footer, schema = head.columns()
        pairs = _pairs(request, schema.names, file)
        types = {field: schema.field(schema.names.index(field)).type for field, _ in pairs}
        wanted = [field for field, arrow in types.items() if may_need_values(arrow)]
        group = next((one for one in range(footer.groups_count) if footer.rows_of(one)), None)
        values = {} if group is None or not wanted else _first_values(head, group, wanted)
    except SourceCorrupt as error:
        raise UsageError(str(error)) from error
    columns = {column: ArrowColumn(types[field], values.get(field)) for field, column in pairs}
    return Sample(file, columns, lambda one: infer_arrow(*one, vectors=vectors), 0)


def _first_values(head: SourceHead, group: int, wanted: Sequence[str]) -> dict[str, pa.Array]:
    """Return the first values of some columns of a row group that has rows."""
    start = Position(group, 0, 0)
    with head.parquet(group, wanted) as opened, parquet_errors(head.file.path):
        batches = read_batches(opened, wanted, size_bytes=1, start=start, block_bytes=SAMPLE_BYTES)
        batch = next(batches).batch
    return {name: batch.column(batch.schema.names.index(name)) for name in wanted}


def _pairs(request: LoadDraft, fields: Sequence[str], file: SourceFile) -> list[tuple[str, str]]:
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


def _first_blocks(head: SourceHead, dialect: CsvDialect, start: Position, skip: int) -> list[Block]:
    """Return the first records of a text file from `start` on, behind the first `skip`.

    A block ends before a record of some MiB. So one with few records is not the whole sample.
    """
    found: list[Block] = []
    records = size = 0
    with head.records(start.offset_bytes, TO_THE_END, dialect) as stream:
        blocks = read_blocks(stream, dialect, block_bytes=SAMPLE_BYTES, start=start)
        for block in islice(blocks, SAMPLE_BLOCKS_MAX):
            if block.defect is None and block.position.ordinal + block.records_count > skip:
                found.append(block)
                records, size = records + block.records_count, size + len(block.data)
                if records >= SAMPLE_RECORDS or size >= SAMPLE_BYTES_MAX:
                    break
    return found
