"""`load --dry-run`: read and convert a sample, show mapping and plan, write nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any

from producer.outputs.stdout import prints_to_stderr
from producer.plan.heads import Heads
from producer.plan.new_table import Planned
from producer.plan.table_sample import SAMPLE_BLOCKS_MAX
from producer.plan.transforms import first_records
from producer.plan.unit_count import CountedUnits, count_units
from producer.text import bytes_text, count_text
from ringhaul.cluster.schema import TableSchema
from ringhaul.errors import EXIT_COMPLETE, EXIT_REJECTS, EXIT_TOO_MANY_ERRORS
from ringhaul.formats.split import Position
from ringhaul.ledger.limits import ErrorLimit
from ringhaul.load.statement import insert_statement
from ringhaul.optional_pandas import put_off_pandas
from ringhaul.plain_text import lines_of
from ringhaul.records.job import LoadJob, LoadSource
from ringhaul.records.reading import read_records
from ringhaul.records.rejects import Reject
from ringhaul.records.rows import Part, RowEncoder
from ringhaul.records.unit import TO_THE_END
from ringhaul.records.wildcard import EVERY
from ringhaul.transform.chain import Chain

if TYPE_CHECKING:
    from ringhaul.transform.chain import Transform

SAMPLE_BYTES = 1 << 20
SAMPLE_SOURCES = 3
#: Reasons that are shown of a sample, each with its first record.
REASONS_SHOWN = 5
#: How many results of transforms are shown.
ROWS_SHOWN = 3
RESULT_CHARACTERS_MAX = 160
#: What differs between the reasons of one kind: quoted values and numbers.
_OF_VALUES = re.compile(r'".*"|[0-9]+', re.DOTALL)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def dry_run_json(
    job: LoadJob,
    heads: Heads,
    slots: int,
    transforms: tuple[Transform, ...] = (),
    planned: Planned | None = None,
) -> dict[str, Any]:
    """Return what the load would do, and a converted sample of each of the first sources, for
    programs.

    `slots`: worker processes that share it. `transforms`: the job's transforms. `planned`: the
    table that would be created before it. Fields are only ever added.
    """
    if not transforms:
        put_off_pandas()
    table, source = job.table, job.sources[0]
    given = source.results or source.fields
    counted = count_units(job, heads)
    return {
        "message_type": "plan",
        "kind": "load",
        "table": table.name,
        "files": len(job.sources),
        "bytes": job.total_bytes,
        "transforms": list(job.transforms),
        "where": job.where or None,
        "consistency": job.consistency,
        "mapping": [
            {
                "field": field,
                "column": column,
                "type": table.type_of(column),
                "key": _part_of_key(table, column),
            }
            for field, column in source.mapping
        ],
        "timestamp_field": source.timestamp_field,
        "ttl_field": source.ttl_field,
        "not_loaded": [name for name in given if name not in source.loaded],
        "statement": insert_statement(
            table,
            source.columns,
            job.ttl_s,
            ttl_bound=source.ttl_bound,
            filled=source.filled,
        ),
        "units": counted.total,
        "units_more": not counted.all_of_them,
        "unit_bytes": job.unit_bytes,
        "worker_processes": slots,
        "strategy": job.strategy,
        "first_timestamp_us": job.base_us,
        "new_table": _new_table_json(planned),
        "samples": [
            _sample_json(job, heads, sampled, _wanted_start(job, heads, index, counted), transforms)
            for index, sampled in enumerate(job.sources[:SAMPLE_SOURCES])
        ],
    }


def dry_run_code(plan: Mapping[str, Any], limit: ErrorLimit) -> int:
    """Return the exit code of a dry run. It is 0 if some of the sample would be loaded and the load
    would not be stopped; else the exit code of a load whose files end with the sample."""
    samples = plan["samples"]
    records, rejected, rows = (
        sum(sample[name] for sample in samples) for name in ("records", "rejected", "rows")
    )
    if limit.exceeded(rejected=rejected, seen=records):
        return EXIT_TOO_MANY_ERRORS
    return EXIT_REJECTS if rejected and not rows else EXIT_COMPLETE


def _new_table_json(planned: Planned | None) -> dict[str, Any] | None:
    if planned is None:
        return None
    schema, reasons = planned.table.schema, planned.table.reasons
    return {
        "statement": str(planned.table.statement),
        "columns": [
            {"name": column.name, "type": column.cql_type, "reason": reasons[column.name]}
            for column in schema.columns
        ],
        "partition_key": list(schema.partition_key),
        "clustering_key": list(schema.clustering_key),
        "key_reason": planned.table.key_reason,
        "notes": list(planned.notes),
    }


def dry_run_text(
    job: LoadJob,
    plan: dict[str, Any],
    transforms: tuple[Transform, ...] = (),
    planned: Planned | None = None,
) -> str:
    """Return what the load would do, for people; arguments as for `dry_run_json`. `plan`: what that
    returned."""
    through = f"through {' and '.join(plan['transforms'])} " if plan["transforms"] else ""
    only = f" where {plan['where']}" if plan["where"] else ""
    before = [] if planned is None else [*planned.notes, planned.table.text, ""]
    lines = [
        *before,
        f"would load {count_text(plan['files'], 'file')} ({bytes_text(plan['bytes'])}) "
        f"{through}into {_target_text(job, plan)}{only}; nothing was written",
        "",
        f" {'field':<24} {'column':<24} {'type':<12} key",
    ]
    for pair in plan["mapping"]:
        key = pair["key"] or ""
        lines.append(f" {pair['field']:<24} {pair['column']:<24} {pair['type']:<12} {key}".rstrip())
    source = job.sources[0]
    for field, meant in source.row_fields:
        lines.append(f" {field:<24} ({meant.label})")
    for field, meant, column in job.sources[0].column_fields:
        lines.append(f" {field:<24} ({meant.label} of {column})")
    for function, fixed in (("writetime", source.fixed_times), ("ttl", source.fixed_ttls)):
        lines += [f" {value!r:<24} ({function}({column}))" for column, value in fixed]
    for argument in job.sources[0].arguments:
        lines.append(f" {argument.field:<24} (for {argument.call})")
    for column, value in (*job.sources[0].constants, *job.sources[0].filled):
        lines.append(f" {value!r:<24} {column}")
    if plan["not_loaded"]:
        lines.append(f" not loaded: {', '.join(map(_field_text, plan['not_loaded']))}")
    lines += [
        "",
        f" statement  {plan['statement']}",
        f" plan       {'about ' if plan['units_more'] else ''}"
        f"{count_text(plan['units'], 'unit')} of {_unit_size_text(job, plan)} for "
        f"{count_text(plan['worker_processes'], 'worker process', 'worker processes')}, "
        f"strategy {plan['strategy']}",
        f" timestamps {_timestamps_text(plan, dict(source.fixed_times).get(EVERY))}",
    ]
    for shown in plan["samples"]:
        lines += _sample_lines(shown, transforms=bool(transforms), where=bool(job.where))
    return lines_of(lines)


def _target_text(job: LoadJob, plan: dict[str, Any]) -> str:
    """Return where rows would go."""
    return job.destination.target_text(plan["table"], plan["consistency"])


def _field_text(name: str) -> str:
    """Return the name of a field in a list of them."""
    return name if name.strip() else f"{name!r} (a field without a name)"


def _unit_size_text(job: LoadJob, plan: dict[str, Any]) -> str:
    """Return the size of a unit, which is never more than there is to load. A row group of Parquet
    and a compressed file are one unit, however large they are."""
    units = max(plan["units"], 1)
    size_bytes = plan["bytes"] // units
    if all(source.format != "parquet" and not source.file.whole for source in job.sources):
        size_bytes = min(plan["unit_bytes"], size_bytes)  # --max-rows may want a part of it all
    size = count_text(size_bytes, "byte") if size_bytes < 1024 else bytes_text(size_bytes)
    return size if units == 1 and not plan["units_more"] else f"about {size}"


def _timestamps_text(plan: dict[str, Any], fixed_us: int | None) -> str:
    if fixed_us is not None:
        return f"{_moment_text(fixed_us)} for each record"
    by_place = f"from {_moment_text(plan['first_timestamp_us'])} on, 1 us more for each record"
    field = plan["timestamp_field"]
    return by_place if field is None else f"of {field}; where it is empty {by_place}"


def _moment_text(timestamp_us: int) -> str:
    try:
        moment = _EPOCH + timedelta(microseconds=timestamp_us)
    except OverflowError:  # Cassandra takes times that no calendar has
        return f"{timestamp_us} us"
    return f"{moment:%Y-%m-%dT%H:%M:%S.%fZ}"


def _part_of_key(table: TableSchema, column: str) -> str | None:
    if column in table.clustering_key:
        return "clustering"
    return "partition" if column in table.partition_key else None


@prints_to_stderr()
def _sample_json(
    job: LoadJob,
    heads: Heads,
    source: LoadSource,
    start: Position | None,
    transforms: tuple[Transform, ...],
) -> dict[str, Any]:
    parts = [] if start is None else sample(job, heads, source, start, transforms)
    rejects = [reject for part in parts for reject in part.rejects]
    results: Iterable[dict[str, str]] = ()
    if transforms and start is not None:
        results = _results(job, heads, source, start, transforms)
    return {
        "path": source.file.path,
        "records": sum(part.records for part in parts),
        "rows": sum(len(rows) for part in parts for rows in part.rows),
        "dropped": sum(part.dropped for part in parts),
        "filtered": sum(part.filtered for part in parts),
        "rejected": len(rejects),
        "problems": _problems(rejects),
        "results": list(results),
    }


def _problems(rejects: Sequence[Reject]) -> list[dict[str, Any]]:
    """Return the first reject of each column and reason, the most frequent first."""
    found: dict[tuple[str, str | None, str], list[Reject]] = {}
    for reject in rejects:
        reason = _OF_VALUES.sub("", reject.reason)
        found.setdefault((reject.stage, reject.column, reason), []).append(reject)
    groups = sorted(found.values(), key=len, reverse=True)
    return [
        {
            "file": group[0].file,
            "line": group[0].line,
            "stage": group[0].stage,
            "column": group[0].column,
            "reason": group[0].reason,
            "count": len(group),
        }
        for group in groups[:REASONS_SHOWN]
    ]


def _results(
    job: LoadJob,
    heads: Heads,
    source: LoadSource,
    start: Position,
    transforms: tuple[Transform, ...],
) -> Iterator[dict[str, str]]:
    """Yield the first rows that the transforms produce, by column."""

    pieces, _ = Chain(transforms, source.results).apply(first_records(job, heads, source, start))
    shown = 0
    for piece in pieces:
        for row in range(min(len(piece.rows), ROWS_SHOWN - shown)):
            yield {name: str(column[row]) for name, column in piece.columns.items()}
            shown += 1


def _sample_lines(shown: dict[str, Any], *, transforms: bool, where: bool) -> Iterator[str]:
    line = f" sample     {shown['path']}: {count_text(shown['records'], 'record')}"
    if transforms or where:
        line += f", {count_text(shown['rows'], 'row')}"
    if transforms:
        line += f", {shown['dropped']:,} dropped"
    if where:
        line += f", {shown['filtered']:,} filtered"
    yield f"{line}, {shown['rejected']:,} rejected"
    for problem in shown["problems"]:
        place = f"{problem['file']}:{problem['line']} {problem['column'] or problem['stage']}"
        more = problem["count"] - 1
        yield f"   {place}: {problem['reason']}"
        if more:
            yield f"     and {count_text(more, 'more record')} for this reason"
    if more := shown["rejected"] - sum(problem["count"] for problem in shown["problems"]):
        yield f"   {count_text(more, 'more record')} for other reasons"
    for row in shown["results"]:
        values = (f"{name}={value}" for name, value in row.items())
        yield f"   {', '.join(values)}"[:RESULT_CHARACTERS_MAX]


def _wanted_start(job: LoadJob, heads: Heads, index: int, counted: CountedUnits) -> Position | None:
    """Return the position of a source's first wanted record, or of a record shortly before it; None
    if no record is wanted. Its ordinal counts as the job's bounds do."""
    for unit in counted.units:
        if unit.source == index:
            ordinal = unit.first_ordinal - unit.source_ordinal
            return Position(unit.offset_bytes, ordinal, unit.first_line)
    source = job.sources[index]
    if counted.all_of_them:
        return None
    if source.format == "parquet" and not heads.footer(source.file).groups_count:
        return None
    # A later source's ordinal is not known: all earlier records would have to be counted.
    ordinal = job.ordinal_first if index and not job.bounds_per_source else 0
    return Position(source.start_offset_bytes, ordinal, source.start_line)


def sample(
    job: LoadJob,
    heads: Heads,
    source: LoadSource,
    start: Position,
    transforms: tuple[Transform, ...] = (),
) -> list[Part]:
    """Convert the wanted records of about `SAMPLE_BYTES` from `start` on. What cannot be read, such
    as a quote that is never closed, also counts as a record, in a block of its own."""
    encoder = RowEncoder(job, source, transforms)
    blocks = read_records(source, job, start, TO_THE_END, SAMPLE_BYTES, opener=heads)
    found: list[Part] = []
    read_bytes = 0
    for block in islice(blocks, SAMPLE_BLOCKS_MAX):
        parts = [part for part in encoder.parts(block) if part.records]
        found += parts
        read_bytes += block.size_bytes if parts else 0
        if read_bytes >= SAMPLE_BYTES // 2:  # a block ends before the record that would exceed it
            break
    return found
