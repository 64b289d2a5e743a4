"""`load --dry-run`: read and convert a sample, show mapping and plan, write nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from producer.feed import split_sources
from producer.words import bytes_text, count_text
from ringhaul.formats.split import Position
from ringhaul.load.job import LoadJob, LoadSource
from ringhaul.load.reading import parquet_metadata, read_records
from ringhaul.load.rows import Part, RowEncoder
from ringhaul.load.statement import insert_statement
from ringhaul.load.unit import TO_THE_END, LoadUnit

if TYPE_CHECKING:
    from ringhaul.transform.chain import Transform

SAMPLE_BYTES = 1 << 20
#: Looked at for records that --skip-rows does not pass over: those of a long unit.
SAMPLE_BLOCKS_MAX = 100
SAMPLE_SOURCES = 3
REJECTS_SHOWN = 5
#: Of what transforms give.
ROWS_SHOWN = 3
RESULT_CHARACTERS_MAX = 160
UNITS_COUNTED_MAX = 10_000


def dry_run_text(job: LoadJob, slots: int, transforms: tuple[Transform, ...] = ()) -> str:
    """What the load would do, and what a sample of each of the first sources shows.

    `transforms`: those that the job names.
    """
    table = job.table
    through = f"through {' and '.join(job.transforms)} " if job.transforms else ""
    only = f" where {job.where}" if job.where else ""
    lines = [
        f"would load {count_text(len(job.sources), 'file')} ({bytes_text(job.total_bytes)}) "
        f"{through}into {table.name}{only} at {job.consistency}; nothing was written",
        "",
        f" {'field':<24} {'column':<24} {'type':<12} key",
    ]
    source = job.sources[0]
    for field, column in source.mapping:
        key = "partition" if column in table.partition_key else ""
        key = "clustering" if column in table.clustering_key else key
        lines.append(f" {field:<24} {column:<24} {table.type_of(column):<12} {key}".rstrip())
    given = source.results or source.fields
    skipped = [name for name in given if name not in dict(source.mapping)]
    if skipped:
        lines.append(f" not loaded: {', '.join(skipped)}")
    columns = [column for _, column in source.mapping]
    units = list(islice(split_sources(job), UNITS_COUNTED_MAX))
    more = "+" if len(units) == UNITS_COUNTED_MAX else ""
    lines += [
        "",
        f" statement  {insert_statement(table, columns, job.ttl_s)}",
        f" plan       {len(units):,}{more} units of about {bytes_text(job.unit_bytes)} for "
        f"{count_text(slots, 'worker process', 'worker processes')}, "
        f"strategy {job.strategy}",
        f" timestamps from {job.base_us} us, one more for each record",
    ]
    for index, sampled in enumerate(job.sources[:SAMPLE_SOURCES]):
        start = _wanted_start(job, index, units)
        lines += _sample_lines(job, sampled, start, transforms)
    return "\n".join(lines)


def _sample_lines(
    job: LoadJob, source: LoadSource, start: Position | None, transforms: tuple[Transform, ...]
) -> Iterator[str]:
    parts = [] if start is None else sample(job, source, start, transforms)
    rejects = [reject for part in parts for reject in part.rejects]
    shown = f" sample     {source.file.path}: {sum(part.records for part in parts):,} records"
    if transforms or job.where:
        shown += f", {sum(len(rows) for part in parts for rows in part.rows):,} rows"
    if transforms:
        shown += f", {sum(part.dropped for part in parts):,} dropped"
    if job.where:
        shown += f", {sum(part.filtered for part in parts):,} filtered"
    yield f"{shown}, {len(rejects):,} rejected"
    for reject in rejects[:REJECTS_SHOWN]:
        yield f"   {reject.where} {reject.column or reject.stage}: {reject.reason}"
    if transforms and start is not None:
        yield from _result_lines(job, source, start, transforms)


def _result_lines(
    job: LoadJob, source: LoadSource, start: Position, transforms: tuple[Transform, ...]
) -> Iterator[str]:
    """The first rows that transforms give, by column."""
    from producer.plan_transform import first_records
    from ringhaul.transform.chain import Chain

    pieces, _ = Chain(transforms, source.results).apply(first_records(job, source, start))
    shown = 0
    for piece in pieces:
        for row in range(min(len(piece.rows), ROWS_SHOWN - shown)):
            values = (f"{name}={column[row]}" for name, column in piece.columns.items())
            yield f"   {', '.join(values)}"[:RESULT_CHARACTERS_MAX]
            shown += 1


def _wanted_start(job: LoadJob, index: int, units: Sequence[LoadUnit]) -> Position | None:
    """Where the records that are wanted of a source begin, or shortly before; None: none is."""
    for unit in units:
        if unit.source == index:
            return Position(unit.offset_bytes, unit.first_ordinal, unit.first_line)
    source = job.sources[index]
    if len(units) < UNITS_COUNTED_MAX:
        return None
    if source.format == "parquet" and not parquet_metadata(source.file).num_row_groups:
        return None
    return Position(source.start_offset_bytes, job.ordinal_first, source.start_line)


def sample(
    job: LoadJob, source: LoadSource, start: Position, transforms: tuple[Transform, ...] = ()
) -> list[Part]:
    """What would become of the records of the first block from `start` on that has wanted ones."""
    encoder = RowEncoder(job, source, transforms)
    blocks = read_records(source, job, start, TO_THE_END, SAMPLE_BYTES)
    for block in islice(blocks, SAMPLE_BLOCKS_MAX):
        parts = list(encoder.parts(block))
        if any(part.records for part in parts):
            return parts
    return []
