"""Run the transforms on the first records of each source before a load starts, to find out which
columns they produce.

They run here as they will in the workers: so a command whose host does not allow them, or whose
results fit no column, ends before any row is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from config.settings import Settings
from producer.outputs.stdout import prints_to_stderr
from producer.plan.heads import LOOK_BYTES, Heads
from producer.request.load import LoadDraft
from producer.text import count_text
from ringhaul.cluster.schema import TableSchema
from ringhaul.errors import SetupUnusable, UsageError
from ringhaul.formats.split import Position
from ringhaul.mapping.field_columns import other_case
from ringhaul.mapping.targets import find_targets
from ringhaul.records.field_readers import field_reader
from ringhaul.records.job import LoadJob, LoadSource
from ringhaul.records.reading import read_records
from ringhaul.records.shape import misfit, source_batch
from ringhaul.records.unit import TO_THE_END
from ringhaul.transform import RECORD
from ringhaul.transform.chain import Chain, Transform, declared_columns
from ringhaul.transform.errors import TransformError
from ringhaul.transform.loading import check_names
from tasks.transforms import transforms_of

#: Bytes read to find a record that is readable and wanted.
BLOCKS_MAX = 1600


@prints_to_stderr()
def plan_transforms(names: Sequence[str], settings: Settings) -> tuple[Transform, ...]:
    """Load the transforms of these names. Raises `SetupUnusable` for what this host does not
    allow."""
    check_names(names)
    try:
        return transforms_of(settings, names)
    except TransformError as error:
        raise SetupUnusable(str(error)) from error


@prints_to_stderr()
def with_results(
    job: LoadJob, request: LoadDraft, heads: Heads, transforms: tuple[Transform, ...]
) -> LoadJob:
    """Return the job with the transforms' results known for each source: their names and where they
    go.

    Raises `UsageError` if the first records yield no row, or if a result has no column.
    """
    kinds = [(source.format, source.fields, _types(heads, source)) for source in job.sources]
    alike: dict[Any, list[LoadSource]] = {}
    for kind, source in zip(kinds, job.sources, strict=True):
        alike.setdefault(kind, []).append(source)
    known = {
        kind: _with_result(job, *_example(job, heads, sources), request, transforms)
        for kind, sources in alike.items()
    }
    sources = (
        replace(
            known[kind],
            file=source.file,
            start_offset_bytes=source.start_offset_bytes,
            start_line=source.start_line,
            any_fields=source.any_fields,
        )
        for kind, source in zip(kinds, job.sources, strict=True)
    )
    return replace(job, sources=tuple(sources))


def _example(
    job: LoadJob, heads: Heads, sources: Sequence[LoadSource]
) -> tuple[LoadSource, pa.RecordBatch]:
    """Return the first source that has a record, with its first records; if none has, the first
    source."""
    examples = ((source, first_records(job, heads, source)) for source in sources)
    empty = next(examples)
    if empty[1].num_rows:
        return empty
    return next((example for example in examples if example[1].num_rows), empty)


def first_records(
    job: LoadJob, heads: Heads, source: LoadSource, wanted_from: Position | None = None
) -> pa.RecordBatch:
    """Return the first readable records of a source as a transform gets them.

    `wanted_from`: position of the first record that the job wants, or of a record shortly before.
    """
    if source.format != "parquet" or heads.footer(source.file).groups_count:
        start = wanted_from or Position(source.start_offset_bytes, 0, source.start_line)
        skips = wanted_from is not None or source is job.sources[0] or job.bounds_per_source
        first = job.ordinal_first if skips else 0
        fields = field_reader(job, source)
        blocks = read_records(source, job, start, TO_THE_END, LOOK_BYTES, opener=heads)
        for block in islice(blocks, BLOCKS_MAX):
            wanted = block.position.ordinal + np.arange(block.records_count) >= first
            if block.defect is None and wanted.any():
                return source_batch(source, fields.parse(block, wanted))[0]
    return pa.RecordBatch.from_pylist([], schema=_schema(heads, source))


def _with_result(
    job: LoadJob,
    source: LoadSource,
    batch: pa.RecordBatch,
    request: LoadDraft,
    transforms: tuple[Transform, ...],
) -> LoadSource:
    """Return the source with the result of `batch`, its first records."""
    if RECORD in source.fields:
        raise UsageError(
            f"{source.file.path}: a field is named {RECORD}, like the column in which transforms "
            "number the records; give the fields other names with --columns"
        )
    chain = Chain(transforms, declared_columns(transforms))
    try:
        pieces, errors = chain.apply(batch)
        if not pieces and not errors:  # one of several transforms leaves out all records
            pieces, _ = chain.apply(batch.slice(0, 0))
    except TransformError as error:
        raise UsageError(f"{source.file.path}: {error}") from error
    columns: dict[str, Any] = {}
    for piece in pieces:
        columns = {**piece.columns, **columns}
    results = tuple(name for piece in pieces for name in piece.columns)
    results = tuple(dict.fromkeys(results))
    if errors and not any(len(piece.rows) for piece in pieces):
        raise UsageError(
            f"{source.file.path}: no row is left of the first "
            f"{count_text(batch.num_rows, 'record')}: {errors[min(errors)]}"
        )
    if not results:
        raise UsageError(
            f"{source.file.path}: {transforms[-1].name} leaves out the first {batch.num_rows:,} "
            "records, so its columns are not known: name them with @each_row(columns=[...])"
        )
    source = _mapped(results, source, request, job.table)
    _check_types(columns, source, job.table)
    return source


def _mapped(
    results: tuple[str, ...], source: LoadSource, request: LoadDraft, table: TableSchema
) -> LoadSource:
    place = f"{source.file.path}: after {' and '.join(request.transforms)}"
    row = request.row_fields(results, place)
    known = table.column_names
    if not request.mapping and not set(results) & set(known) and not other_case(results, known):
        raise UsageError(
            f"{place}: no column is one of {table.name} (there are {', '.join(results[:12])}; the "
            f"table has {', '.join(known[:12])})"
        )
    targets = find_targets(
        results,
        table,
        mapping=request.mapping,
        skip=request.skipped(results, known),
        source=place,
        taken=row,
    )
    return replace(targets.of_source(source), results=results)


def _check_types(columns: Mapping[str, Any], source: LoadSource, table: TableSchema) -> None:
    for name, column in source.mapping:
        why = misfit(table.parsed_type(column), columns[name])
        if why is not None:
            raise UsageError(
                f"{source.file.path}: the transforms give {name!r} for {table.type_of(column)} of "
                f"{table.name}.{column}, and {why}"
            )
    of_columns = [(name, meant) for name, meant, _ in source.column_fields]
    for name, meant in (*source.row_fields, *of_columns):
        values = columns[name]
        why = None if isinstance(values, list) else meant.refusal(values.type)
        if why is not None:
            raise UsageError(
                f"{source.file.path}: the transforms give {name!r} for {meant.label}, and {why}"
            )


def _types(heads: Heads, source: LoadSource) -> pa.Schema | None:
    """Return the types of the fields; None if all are text."""
    return _schema(heads, source) if source.format == "parquet" else None


def _schema(heads: Heads, source: LoadSource) -> pa.Schema:
    if source.format == "parquet":
        schema: pa.Schema = heads[source.file].columns().schema.remove_metadata()
        return schema
    return pa.schema([pa.field(name, pa.string()) for name in source.fields])
