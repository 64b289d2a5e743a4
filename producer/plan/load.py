"""Plan a `LoadJob` from a draft: sources, headers, mapping, timestamps.

All errors that can be found early are found here, before the job exists and any row is written.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from config.settings import Settings
from producer.destination.way import LoadFacts
from producer.destination.ways import plan_destination
from producer.plan.column_times import with_times
from producer.plan.empties import with_empties
from producer.plan.files import each_file
from producer.plan.heads import Heads
from producer.plan.sources import plan_sources, with_empty
from producer.plan.transforms import plan_transforms, with_results
from producer.request.load import LoadDraft, parse_timestamp_us
from ringhaul.cluster.consistency import Use, check_consistency
from ringhaul.cluster.schema import TableSchema
from ringhaul.cluster.tables import TableMissing, find_table
from ringhaul.cluster.view import ClusterView
from ringhaul.destination.base import UnitBounds
from ringhaul.destination.cql import UNIT_BYTES_PACED_MIN
from ringhaul.errors import UsageError
from ringhaul.ledger.kinds import JobKind
from ringhaul.records.job import ORDINAL_END, LoadJob, LoadSource
from ringhaul.records.wildcard import EVERY
from ringhaul.sources.estimate import Estimate, most_records

if TYPE_CHECKING:
    from ringhaul.transform.chain import Transform

UNIT_BYTES_MIN = 1 << 20
#: Duration of a unit at its share of `--rate`, and so the work that is repeated if its worker is
#: stopped. A load of a day by 16 processes is 11,520 such units: 1 MB of the ledger (ADR 0014).
UNIT_PACED_S = 120


def plan_load(
    request: LoadDraft,
    heads: Heads,
    cluster: ClusterView,
    settings: Settings,
    slots: int,
    new_table: TableSchema | None = None,
) -> LoadJob:
    """Plan the job of a request. Raises `UsageError` or `ClusterError` for what cannot work.

    `request`: checked by `check_draft`. `new_table`: a table that will be created before the job.
    """
    files = heads.files
    table = new_table or _table(request, cluster)
    if request.times:
        table = with_times(table)
    check_consistency(cluster, table.keyspace, Use(writes=request.kind is JobKind.LOAD))
    transforms = _transforms(request, settings)
    planned = plan_sources(request, heads, table)
    sources = tuple(source for source in planned if source is not None)
    _refuse_two_times(request, sources)
    total_bytes = sum(file.size_bytes for file in files)
    destination = plan_destination(
        LoadFacts(
            wanted=request.wanted,
            table=table,
            sources=sources,
            ttl_s=request.ttl_s,
            input_bytes=total_bytes,
            processes=slots,
            cluster=cluster,
            settings=settings,
        )
    )
    if request.kind is JobKind.LOAD:
        _refuse_counters(table)  # SSTables have their own words for it
    by_file = {source.file: source for source in sources}
    estimates = each_file(list(by_file), lambda file: _estimate(request, heads, by_file[file]))
    records = sum(found.records for found in estimates)
    first = request.skip_rows
    job = LoadJob.of(
        request,
        table=table,
        cluster_name=cluster.name,
        sources=sources,
        base_us=_base_us(request, most_records(estimates)),
        unit_bytes=request.unit_bytes
        or unit_bytes_auto(
            total_bytes,
            slots,
            records_count=records,
            rows_per_s=request.rows_per_s,
            bytes_per_s=request.bytes_per_s,
            bounds=destination.unit_bounds(transformed=bool(request.transforms)),
        ),
        ordinal_first=first,
        ordinal_end=ORDINAL_END if request.max_rows is None else first + request.max_rows,
        destination=destination,
    )
    if not job.repeatable:
        # A batch that is refused would be sent again as rows.
        job = replace(job, strategy="single")
    job = with_empties(job, request)
    if transforms:
        job = with_results(job, request, heads, transforms)
    computed = request.kind is JobKind.LOAD and any(source.filled for source in job.sources)
    if computed and new_table is None:  # nothing is computed for columns of a new one
        from producer.plan.arguments import with_arguments  # most loads do not need it

        job = replace(job, sources=with_arguments(cluster, heads, job.table, job.sources))
    if job.where:
        _check_where(job)
    return replace(job, sources=with_empty(request, files, planned, job.sources))


def _table(request: LoadDraft, cluster: ClusterView) -> TableSchema:
    try:
        return find_table(cluster, request.keyspace, request.table)
    except TableMissing as error:
        if request.kind is not JobKind.LOAD or request.transforms or str(error).endswith("?"):
            raise
        raise TableMissing(f"{error}; --create-table makes one for what the files hold") from error


def _refuse_counters(table: TableSchema) -> None:
    """Raise `UsageError` for a table with counters: the server refuses each INSERT into it, even
    of a key alone. Fields for the counters themselves are refused with the sources."""
    for column in table.columns:
        if column.cql_type == "counter":
            raise UsageError(
                f"{table.name} has counters, so no row can be inserted: `ringhaul exec` adds to "
                f"{column.name!r} with an UPDATE"
            )


def _refuse_two_times(request: LoadDraft, sources: Sequence[LoadSource]) -> None:
    """Raise `UsageError` for an option that says for all rows what a constant also says."""
    given = {"--timestamp": request.timestamp is not None, "--ttl": bool(request.ttl_s)}
    for source in sources:
        for option, fixed in (("--timestamp", source.fixed_times), ("--ttl", source.fixed_ttls)):
            if given[option] and EVERY in dict(fixed):
                raise UsageError(
                    f"{option} and a constant of --mapping both say it for all rows: give one"
                )


def _transforms(request: LoadDraft, settings: Settings) -> tuple[Transform, ...]:
    """Load the transforms. Raises `UsageError` for a transform that this host does not allow."""
    if not request.transforms:
        return ()
    return plan_transforms(request.transforms, settings)


def _check_where(job: LoadJob) -> None:
    """Raise `UsageError` for a condition that cannot be evaluated for the records of some
    source."""
    from ringhaul.records.condition import record_condition

    for columns in {tuple(source.columns) for source in job.sources}:
        record_condition(job.where, job.table, columns)


def unit_bytes_auto(
    total_bytes: int,
    slots: int,
    *,
    records_count: int = 0,
    rows_per_s: int = 0,
    bytes_per_s: int = 0,
    bounds: UnitBounds,
) -> int:
    """Return a unit size within `bounds` that gives every worker process its units, none of which
    takes minutes at the job's limits.

    `records_count`: estimated number of records. `rows_per_s`, `bytes_per_s`: the job's limits,
    which its worker processes share; 0 if there is none.
    """
    share_bytes = -(-total_bytes // (bounds.units_per_slot * slots))
    size = min(max(share_bytes, UNIT_BYTES_MIN), bounds.bytes_max)
    if rows_per_s:
        record_bytes = total_bytes / max(1, records_count)
        paced_bytes = int(rows_per_s / slots * UNIT_PACED_S * record_bytes)
        size = min(size, max(paced_bytes, UNIT_BYTES_PACED_MIN))
    if bytes_per_s:
        size = min(size, max(bytes_per_s // slots * UNIT_PACED_S, bounds.paced_bytes_min))
    return size


def _estimate(request: LoadDraft, heads: Heads, source: LoadSource) -> Estimate:
    """Estimate how many records a source has."""
    head = heads[source.file]
    if source.format == "parquet":
        return Estimate(head.rows_count, head.rows_count)
    return head.estimate(request.dialect)


def _base_us(request: LoadDraft, records_max: int) -> int:
    """Return the row timestamp of the first record.

    Without --timestamp, it is as many microseconds before now as there may be records: so the last
    record is not later than the job's start, and never wins over what an application writes from
    now on.
    """
    if request.timestamp is None:
        return time.time_ns() // 1000 - records_max
    return parse_timestamp_us(request.timestamp)
