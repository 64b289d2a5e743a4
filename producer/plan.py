"""From what the user asked for to a `LoadJob`: sources, headers, mapping, timestamps.

Everything that can be wrong is found here, before the job exists and before any row is written.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from cassandra.cluster import Session

from config.settings import Settings
from producer.options import refuse_blank
from producer.plan_sources import (
    LoadRequest,
    each_file,
    first_block,
    plan_jsonl,
    plan_parquet,
    refuse_misspelt,
    refuse_unread,
)
from ringhaul.cluster.consistency import Use, check_consistency
from ringhaul.cluster.schema import TableSchema, find_table
from ringhaul.errors import SourceMissing, UsageError
from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.header import SourceEmpty, check_names, read_header
from ringhaul.formats.split import START, Position
from ringhaul.formats.suffixes import format_of
from ringhaul.ledger.limits import ErrorLimit
from ringhaul.records.job import ORDINAL_END, LoadJob, LoadSource
from ringhaul.records.mapping import NO_ROW_FIELDS, find_fields, map_fields
from ringhaul.records.reading import parquet_metadata
from ringhaul.records.row_fields import TTL, TTL_S_MAX, WRITETIME
from ringhaul.sources.estimate import Estimate, estimate, most_records
from ringhaul.sources.files import SourceFile, open_whole

if TYPE_CHECKING:
    from ringhaul.transform.chain import Transform

__all__ = ["LoadRequest", "check_request", "parse_timestamp_us", "plan_load", "unit_bytes_auto"]

UNIT_BYTES_MIN = 1 << 20
UNIT_BYTES_MAX = 64 << 20
UNITS_PER_SLOT = 4
#: What a unit takes at its share of `--rate`: what is done again when its worker is stopped. A load
#: of a day by 16 processes is 11,520 such units, about 1 MB of the ledger (ADR 0014).
UNIT_PACED_S = 120
UNIT_BYTES_PACED_MIN = 16 << 10
#: Row timestamps are int64; half of it leaves room for the ordinals of any input.
TIMESTAMP_US_MAX = 2**62
#: What usually stands between fields, and how it is given.
_DELIMITERS = {"\t": "\\t", ";": ";", "|": "|", ",": ","}


def check_request(request: LoadRequest) -> None:
    """Raise `UsageError` or `QueryError` for what cannot work whatever the table and the files are:
    to be told before any of them is asked."""
    ErrorLimit.parse(request.max_errors)
    if request.file_format != "auto":
        refuse_unread(request, {request.file_format})
    if not 0 <= request.ttl_s <= TTL_S_MAX:
        raise UsageError(f"--ttl {request.ttl_s}: give 0 to {TTL_S_MAX} seconds (20 years)")
    for meant, field in zip((WRITETIME, TTL), request.wanted_row_fields, strict=True):
        refuse_blank(meant.option, field, "the name of a field")
    if request.timestamp is not None:
        parse_timestamp_us(request.timestamp)
        if request.timestamp_field is not None:
            raise UsageError(
                "--timestamp and --timestamp-field both say when rows were written: give one"
            )
    if request.where:
        from ringhaul.query.sql import parse_condition  # what most loads do not need to import

        parse_condition(request.where)


def plan_load(
    request: LoadRequest,
    files: Sequence[SourceFile],
    session: Session,
    settings: Settings,
    slots: int,
) -> LoadJob:
    """The job that was asked for. Raises `UsageError` or `ClusterError` for what cannot work.

    `request`: one that `check_request` has let pass.
    """
    metadata = session.cluster.metadata
    table = find_table(metadata, request.keyspace, request.table)
    check_consistency(session, table.keyspace, Use(writes=request.kind == "load"))
    transforms = _transforms(request, settings)
    planned = plan_sources(request, files, table)
    sources = tuple(source for source in planned if source is not None)
    total_bytes = sum(file.size_bytes for file in files)
    by_file = {source.file: source for source in sources}
    estimates = each_file(list(by_file), lambda file: _estimate(by_file[file], request.dialect))
    records = sum(found.records for found in estimates)
    first = request.skip_rows
    end = ORDINAL_END if request.max_rows is None else first + request.max_rows
    job = LoadJob(
        table=table,
        cluster_name=metadata.cluster_name,
        sources=sources,
        dialect=request.dialect,
        text=request.text,
        base_us=_base_us(request, most_records(estimates)),
        unit_bytes=request.unit_bytes
        or unit_bytes_auto(
            total_bytes, slots, records_count=records, rows_per_s=request.rows_per_s
        ),
        ttl_s=request.ttl_s,
        nulls=request.nulls,
        consistency=settings.cluster.consistency,
        strategy=request.strategy,
        ordinal_first=first,
        ordinal_end=end,
        block_bytes=settings.load.block_bytes,
        transforms=tuple(request.transforms),
        where=request.where,
        kind=request.kind,
    )
    if transforms:
        from producer.plan_transform import with_results

        job = with_results(job, request, transforms)
    if job.where:
        _check_where(job)
    return replace(job, sources=with_empty(request, files, planned, job.sources))


def _transforms(request: LoadRequest, settings: Settings) -> tuple[Transform, ...]:
    """Those that are asked for. Raises `UsageError` for what this host does not allow."""
    if not request.transforms:
        return ()
    from producer.plan_transform import plan_transforms  # what most loads do not need to import

    return plan_transforms(request.transforms, settings)


def _check_where(job: LoadJob) -> None:
    """Raise `UsageError` for a condition that records of some source cannot be told by."""
    from ringhaul.records.condition import record_condition

    for mapping in {source.mapping for source in job.sources}:
        record_condition(job.where, job.table, [column for _, column in mapping])


def unit_bytes_auto(
    total_bytes: int, slots: int, *, records_count: int = 0, rows_per_s: int = 0
) -> int:
    """Unit size so that every worker process gets several units and none lasts for minutes.

    `records_count`: about how many there are. `rows_per_s`: the limit on the job, which its worker
    processes share; 0: none.
    """
    size = min(max(total_bytes // (UNITS_PER_SLOT * slots), UNIT_BYTES_MIN), UNIT_BYTES_MAX)
    if not rows_per_s:
        return size
    record_bytes = total_bytes / max(1, records_count)
    paced_bytes = int(rows_per_s / slots * UNIT_PACED_S * record_bytes)
    return min(size, max(paced_bytes, UNIT_BYTES_PACED_MIN))


def plan_sources(
    request: LoadRequest, files: Sequence[SourceFile], table: TableSchema
) -> list[LoadSource | None]:
    """A source for each file; None: one without a record among others, as sets of parts have them.

    Raises `SourceEmpty` if none of them has a record.
    """
    refuse_unread(request, {format_of(file.path, request.file_format) for file in files})
    empty: dict[SourceFile, SourceEmpty] = {}

    def planned(file: SourceFile) -> LoadSource | None:
        try:
            return plan_source(request, file, table)
        except SourceEmpty as error:
            empty[file] = error
            return None

    sources = each_file(files, planned)
    if not any(sources):
        raise empty[files[0]]
    refuse_misspelt(request, [source for source in sources if source is not None])
    return sources


def with_empty(
    request: LoadRequest,
    files: Sequence[SourceFile],
    planned: Sequence[LoadSource | None],
    sources: Sequence[LoadSource],
) -> tuple[LoadSource, ...]:
    """`sources` and, at their places, those of `planned` that are None.

    A file without a record says nothing of fields: it has those of another one, as workers prepare
    the statement of a source before they read it.
    """
    others = iter(sources)
    like = replace(sources[0], start_offset_bytes=0, start_line=1)
    return tuple(
        replace(like, file=file, format=format_of(file.path, request.file_format))
        if source is None
        else next(others)
        for file, source in zip(files, planned, strict=True)
    )


def plan_source(request: LoadRequest, file: SourceFile, table: TableSchema) -> LoadSource:
    """One source's fields and mapping, and where its records begin."""
    file_format = format_of(file.path, request.file_format)
    if file_format == "jsonl":
        return plan_jsonl(request, file, table)
    if file_format == "parquet":
        return plan_parquet(request, file, table)
    start = START
    fields: Sequence[str] = request.columns
    if request.header:
        fields, start = _read_fields(request, file, table)
    else:
        first_block(file, request.dialect)
    if request.transforms:
        mapping: tuple[tuple[str, str], ...] = ()  # of what comes out of them
        row = NO_ROW_FIELDS
        if not fields:
            raise UsageError(
                f"{file.path}: --transform with --no-header needs --columns, the fields' names"
            )
    else:
        # Like COPY, a file without a header and without --columns has the table's columns.
        fields = fields or [c for c in table.column_names if c not in request.skip_columns]
        row = request.row_fields(fields, file.path)
        if request.by_name:
            no_header = request.dialect.option("no-header")
            otherwise = f"; if the first record is data, give {no_header}"
            mapping = find_fields(fields, table, source=file.path, otherwise=otherwise)
        else:
            mapping = map_fields(
                fields,
                table,
                mapping=request.mapping,
                skip=request.skip_columns if request.header or request.columns else (),
                source=file.path,
                taken=row,
            )
    return LoadSource(
        file=file,
        fields=tuple(fields),
        mapping=mapping,
        start_offset_bytes=start.offset_bytes,
        start_line=start.line,
        timestamp_field=row.timestamp,
        ttl_field=row.ttl,
    )


def _read_fields(
    request: LoadRequest, file: SourceFile, table: TableSchema
) -> tuple[Sequence[str], Position]:
    """The fields of a file with a header, and where its records begin."""
    try:
        with open_whole(file, request.dialect) as stream:
            names, start = read_header(stream, request.dialect)
        # Whoever says which fields there are, or by --mapping which are loaded, needs no other
        # name; a transform gets all fields by their names.
        by_name = request.by_name or request.mapping
        if not request.columns and (request.transforms or not by_name):
            check_names(names, () if request.transforms else request.skip_columns)
    except SourceMissing:
        raise  # names the file itself
    except UsageError as error:
        raise type(error)(f"{file.path} {error}") from error
    fields = request.columns or names
    if len(names) == 1 and (len(fields) > 1 or names[0] not in table.column_names):
        _check_delimiter(request, file, names[0])
    if len(fields) != len(names):
        raise UsageError(
            f"{file.path}: --columns names {len(fields)} fields, its header has {len(names)}: "
            f"{', '.join(names[:12])}"
        )
    return fields, start


def _check_delimiter(request: LoadRequest, file: SourceFile, name: str) -> None:
    """Refuse a header that is one field as the delimiter is another one."""
    if request.transforms or {name, "0"} & set(request.mapping) or len(request.columns) == 1:
        return  # the one field is what is wanted
    for character, spelt in _DELIMITERS.items():
        if character in name:
            raise UsageError(
                f"{file.path}: the header is one field, {name[:60]!r}; give "
                f"{request.dialect.option('delimiter')} '{spelt}' if that stands between its fields"
            )


def _estimate(source: LoadSource, dialect: CsvDialect) -> Estimate:
    """About how many records a source holds."""
    if source.format == "parquet":
        rows_count = int(parquet_metadata(source.file).num_rows)
        return Estimate(rows_count, rows_count)
    return estimate(source.file, dialect)


def _base_us(request: LoadRequest, records_max: int) -> int:
    """The row timestamp of the first record.

    Without --timestamp, as far before now as there may be records: the last one is then not
    later than the job's start, and never beats what an application writes from now on.
    """
    if request.timestamp is None:
        return time.time_ns() // 1000 - records_max
    return parse_timestamp_us(request.timestamp)


def parse_timestamp_us(text: str) -> int:
    """Microseconds since the epoch from a number of them, an ISO 8601 date and time or `now`."""
    if text == "now":
        return time.time_ns() // 1000
    if re.fullmatch("-?[0-9]+", text):
        if abs(timestamp_us := int(text)) > TIMESTAMP_US_MAX:
            raise UsageError(
                f"--timestamp {text}: beyond what Cassandra can hold; give microseconds since 1970"
            )
        return timestamp_us
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"--timestamp {text!r}: give microseconds since 1970, a date such as "
            "2026-01-31T12:00:00Z, or now"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
