"""`load --dry-run`: read and convert a sample, show mapping and plan, write nothing."""

from __future__ import annotations

from itertools import islice

from producer.feed import split_sources
from producer.words import bytes_text, count_text
from ringhaul.formats.split import Position
from ringhaul.load.job import LoadJob, LoadSource
from ringhaul.load.reading import parquet_metadata, read_records
from ringhaul.load.rejects import Reject
from ringhaul.load.rows import RowEncoder
from ringhaul.load.statement import insert_statement
from ringhaul.load.unit import TO_THE_END

SAMPLE_BYTES = 1 << 20
SAMPLE_SOURCES = 3
REJECTS_SHOWN = 5
UNITS_COUNTED_MAX = 10_000


def dry_run_text(job: LoadJob, slots: int) -> str:
    """What the load would do, and what a sample of each of the first sources shows."""
    table = job.table
    lines = [
        f"would load {count_text(len(job.sources), 'file')} ({bytes_text(job.total_bytes)}) "
        f"into {table.name} at {job.consistency}; nothing was written",
        "",
        f" {'field':<24} {'column':<24} {'type':<12} key",
    ]
    source = job.sources[0]
    for field, column in source.mapping:
        key = "partition" if column in table.partition_key else ""
        key = "clustering" if column in table.clustering_key else key
        lines.append(f" {field:<24} {column:<24} {table.type_of(column):<12} {key}".rstrip())
    skipped = [name for name in source.fields if name not in dict(source.mapping)]
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
    for sampled in job.sources[:SAMPLE_SOURCES]:
        records, rejects = sample(job, sampled)
        lines.append(
            f" sample     {sampled.file.path}: {records:,} records, {len(rejects):,} rejected"
        )
        lines += [
            f"   {r.where} {r.column or r.stage}: {r.reason}" for r in rejects[:REJECTS_SHOWN]
        ]
    return "\n".join(lines)


def sample(job: LoadJob, source: LoadSource) -> tuple[int, list[Reject]]:
    """Records of the first block of a source, and those of them that would be rejected."""
    start = Position(source.start_offset_bytes, job.ordinal_first, source.start_line)
    encoder = RowEncoder(job, source)
    if source.format == "parquet" and not parquet_metadata(source.file).num_row_groups:
        return 0, []
    for block in read_records(source, job, start, TO_THE_END, SAMPLE_BYTES):
        _, rejects, records = encoder.encode(block)
        return records, rejects
    return 0, []
