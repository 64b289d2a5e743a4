"""Show some rows of a table at once: `peek`, and `query` for a SELECT of rows with a LIMIT.

There is no job: the rows come over one session, range by range in the order of their tokens, and
reading ends with the last row that is wanted.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from cassandra import DriverException
from cassandra.cluster import NoHostAvailable, Session
from cassandra.protocol import ErrorMessage

from config.settings import Settings
from producer.options.reads import PeekOptions, QueryOptions
from producer.plan.scan import Read, plan_units, read_selected
from producer.report.result_table import print_result
from producer.request.result_output import check_result_output, result_output
from producer.request.scan import Wanted, check_wanted, listed_items
from producer.request.select_checks import check_row_select
from producer.request.settings import connection_flags, settle
from producer.text import count_text
from ringhaul.cluster.connect import close_session, consistency_level, open_session
from ringhaul.cluster.driver_view import DriverView
from ringhaul.cluster.errors import translate_error
from ringhaul.cql.decode import PageDecoder
from ringhaul.errors import EXIT_COMPLETE, UsageError
from ringhaul.optional_pandas import put_off_pandas
from ringhaul.scan.options import ScanOptions, ScanTarget
from ringhaul.scan.pages import PageReader
from ringhaul.scan.ranges import TokenRange, unpack_ranges
from ringhaul.scan.scan import RangeScan
from ringhaul.scan.statement import first_page_rows, scan_fetches, scan_statement
from tasks.cluster_settings import cluster_config

if TYPE_CHECKING:
    from ringhaul.query.select import Select

#: A longer list is for a file.
ROWS_MAX = 100_000
#: Options of `query` that are about its job, and a SELECT of rows makes none.
_OF_A_JOB = {
    "job_id": "--job-id",
    "on_interrupt": "--on-interrupt",
    "priority": "--priority",
    "progress": "--progress",
    "rate": "--rate",
    "report": "--report",
    "skip_failed": "--skip-failed-ranges",
    "summary": "--summary",
    "workers": "-c",
}


def run_peek(options: PeekOptions) -> int:
    """Run `ringhaul peek`; return the exit code."""
    put_off_pandas()
    wanted = Wanted(
        keyspace=options.keyspace,
        table=options.table,
        items=listed_items(options.columns),
        where=options.where,
    )
    check_wanted(wanted)
    if options.as_json and options.result_format not in ("auto", "json"):
        raise UsageError(f"--json and --format {options.result_format}: give one of them")
    settings = settle(connection_flags(options), options.config_file).settings
    form = "json" if options.as_json else options.result_format or "auto"
    session = open_session(cluster_config(settings))
    try:
        read = read_selected(DriverView(session), wanted)
        rows = read_rows(session, settings, read, options.rows)
    finally:
        close_session(session)
    print_result(rows, read.types, form, None, vertical=True)
    print(f" {_said(rows, options.rows)}", file=sys.stderr, flush=True)
    return EXIT_COMPLETE


def _said(rows: pa.Table, wanted: int) -> str:
    said = count_text(rows.num_rows, "row")
    return f"{said}; -n shows more" if rows.num_rows == wanted else f"{said}: these are all"


def run_row_query(options: QueryOptions) -> int:
    """Run a `ringhaul query` that selects rows; return the exit code."""
    for name, option in _OF_A_JOB.items():
        if name in options.given:
            raise UsageError(
                f"{option} applies to jobs, and a SELECT of rows makes none: leave it out, or use "
                "`ringhaul unload --query`"
            )
    put_off_pandas()
    output = result_output(options)
    check_result_output(output, options)
    check_row_select(options.sql)
    wanted = Wanted(sql=options.sql)
    flags = connection_flags(options) | {"cluster.consistency": options.consistency}
    settings = settle(flags, options.config_file).settings
    session = open_session(cluster_config(settings))
    try:
        read = read_selected(DriverView(session), wanted)
        assert read.select is not None
        limit = read.select.limit
        if limit is None or limit > ROWS_MAX:
            raise UsageError(
                f"LIMIT {limit}: query shows up to {ROWS_MAX:,} rows; `ringhaul unload --query` "
                "writes more"
            )
        rows = read_rows(session, settings, read, limit)
    finally:
        close_session(session)
    print_result(rows, read.types, output.form, output.path or None, vertical=True)
    if not options.quiet:
        print(f" {count_text(rows.num_rows, 'row')}", file=sys.stderr, flush=True)
    return EXIT_COMPLETE


def read_rows(session: Session, settings: Settings, read: Read, rows_max: int) -> pa.Table:
    """Return the first `rows_max` rows of a SELECT without aggregates, in the order of tokens. All
    of them are held in memory.

    Raises as `RangeScan.batches` does, and `ClusterError` if the user may not read the table.
    """
    select = read.select
    assert select is not None
    fields = zip(select.names, select.types, strict=True)
    schema = pa.schema([pa.field(name, kind.arrow()) for name, kind in fields])
    units = plan_units(DriverView(session), read, slots=1) if rows_max else []
    ranges = [one for unit in units for one in unpack_ranges(unit)]
    if not ranges:
        return pa.Table.from_batches([], schema)
    config, table = cluster_config(settings), select.table
    try:
        prepared = session.prepare(scan_statement(select))
    except (DriverException, NoHostAvailable, ErrorMessage) as error:
        raise translate_error(error, where=config.where, user=config.user) from error
    target = ScanTarget(
        PageReader(session), prepared, table.keyspace, table.name, config.where, config.user
    )
    found: list[pa.RecordBatch] = []
    left = rows_max
    for batch in _scan(target, settings, select, ranges, rows_max).batches():
        found.append(select.project(batch).slice(0, left))
        left -= found[-1].num_rows
        if not left:
            break
    return pa.Table.from_batches(found, schema)


def _scan(
    target: ScanTarget,
    settings: Settings,
    select: Select,
    ranges: Sequence[TokenRange],
    rows_max: int,
) -> RangeScan:
    fetches = scan_fetches(select)
    decoder = PageDecoder([fetch.name for fetch in fetches], [fetch.type for fetch in fetches])
    options = ScanOptions(
        consistency=consistency_level(settings.cluster.consistency),
        request_timeout_s=settings.cluster.request_timeout_s,
        page_rows_first=first_page_rows(select, rows_max),
        retries_max=settings.load.retries_max,
        in_order=True,
    )
    return RangeScan(target, ranges, decoder, options)
