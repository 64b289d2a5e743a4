"""Run an unload: plan, create the job, follow it, publish the manifest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cassandra.cluster import Session

from config.settings import Loaded
from producer.options.reads import UnloadOptions
from producer.outputs.stdout import json_text, prints_to_stderr
from producer.outputs.stdout_parts import StdoutParts, beginning
from producer.outputs.stdout_spool import spool_folder
from producer.plan.scan import Read, plan_units, read_select, shares_limit
from producer.plan.selection import without_times
from producer.report.reporter import Shown
from producer.request.one_file import OneFile, in_one_file
from producer.request.output import (
    STDOUT,
    check_empty,
    wants_header,
)
from producer.request.unload import UnloadRequest, unload_request
from producer.request.written_partitions import check_partitions
from producer.run.finish import publish_end
from producer.run.job import Plan, plan_slots, run_read
from producer.services.start import Services
from producer.text import count_text
from ringhaul.cql.names import spell_name
from ringhaul.cql.types import CqlType
from ringhaul.errors import UsageError
from ringhaul.formats.write import OutputFormat, refuse_blank_lines
from ringhaul.ledger.kinds import JobKind
from ringhaul.output.job import Output
from ringhaul.plain_text import lines_of
from ringhaul.scan.finish import unload_parts
from ringhaul.scan.job import ReadJob
from ringhaul.transform import RECORD
from ringhaul.transform.errors import TransformError

if TYPE_CHECKING:
    from ringhaul.query.select import Select
    from ringhaul.transform.chain import Transform


def run_unload(options: UnloadOptions, services: Services) -> int:
    """Run `ringhaul unload` with the services that were started for it; the exit code."""
    loaded = services.loaded
    to_stdout = options.output == STDOUT
    with ExitStack() as stack:
        request = unload_request(options, loaded, services.job_id)
        functions = _functions(options.transforms, loaded)
        output = request.output
        if to_stdout and not options.dry_run:
            stack.enter_context(spool_folder(Path(output.url)))
        elif not to_stdout and not options.adopted and not _is_named(request.file):
            check_empty(output.url)
        slots = plan_slots(loaded, own_workers=to_stdout)

        def plan(session: Session) -> Plan:
            return _plan(options, request, functions, services, session, slots)

        return run_read(options, services, plan, output="" if to_stdout else output.url)


def _is_named(file: OneFile | None) -> bool:
    """Return whether the user names one file, so that others in its folder do not matter."""
    return file is not None and bool(file.name)


def _say_dropped(options: UnloadOptions, fmt: OutputFormat, types: Sequence[CqlType]) -> None:
    """Warn about patterns that leave out a part of their values, if there are such columns."""
    found = {scalar for cql_type in types for scalar in _scalars(cql_type)}
    for kind in ("timestamp", "time"):
        if kind in found and fmt.values is not None and (pattern := fmt.values.dropped_by(kind)):
            Shown.from_options(options).say(
                f"--{kind}-format {pattern} leaves out a part of each {kind}: a load of these "
                "files restores only the rest"
            )


def _scalars(cql_type: CqlType) -> Iterator[str]:
    yield cql_type.name
    for inner in cql_type.of:
        yield from _scalars(inner)


def _plan(
    options: UnloadOptions,
    request: UnloadRequest,
    functions: Sequence[Transform],
    services: Services,
    session: Session,
    slots: int,
) -> Plan:
    loaded = services.loaded
    read = read_select(session, request.wanted)
    output = request.output
    limit = None if read.select is None else read.select.limit
    in_order = options.order == "token"
    is_shared = shares_limit(read, in_order=in_order)
    if request.file is not None:
        output = in_one_file(output, request.file, read.table, services.job_id)
    timeless = without_times(read.table, request.wanted.mapping)
    if timeless:
        Shown.from_options(options).say(
            f"write times and TTLs of {', '.join(timeless[:3])}"
            f"{f' and {len(timeless) - 3:,} more' if len(timeless) > 3 else ''} are not unloaded: "
            "each element of a collection or user type that is not frozen has its own. With "
            f'Cassandra 5.0, -m \'*=*, writetime(*), "writetime({timeless[0]})"='
            f"maxwritetime({spell_name(timeless[0])})' unloads the newest"
        )
    if read.select is not None:
        if read.select.is_aggregate:
            raise UsageError("unload writes rows; for aggregates there is `ringhaul query`")
        if not options.transforms:
            _refuse_blank_lines(read.select, output)
    columns = list(zip(read.names, read.type_texts, strict=True))
    names, types = read.names, read.types
    results: tuple[tuple[str, CqlType], ...] = ()
    if options.transforms:
        results = _results(functions, read)
        columns = [(name, str(cql_type)) for name, cql_type in results]
        names, types = zip(*results, strict=True)
        # A transform may return null in any column.
        refuse_blank_lines(output.format, names)
    if output.partition_by:
        check_partitions(output, names, types)
    _say_dropped(options, output.format, types)
    job = ReadJob(
        kind=JobKind.UNLOAD,
        cluster_name=session.cluster.metadata.cluster_name,
        table=read.table,
        sql=read.sql,
        consistency=loaded.settings.cluster.consistency,
        output=output,
        columns=tuple(columns),
        transforms=tuple(options.transforms),
        results=results,
        token_order=in_order or (limit is not None and not is_shared),
        limit=limit,
        shares_limit=is_shared,
        computed=read.select.computed if read.select is not None else (),
        streams=options.output == STDOUT,
        skip_failed=options.skip_failed,
    )
    units = plan_units(session, read, slots, shares_limit=is_shared)
    to_stdout = options.output == STDOUT
    headline = (
        f"unload {job.table.name} -> {'standard output' if to_stdout else output.place}   "
        f"{count_text(len(units), 'unit')}"
    )
    plan = Plan(
        job=job,
        units=units,
        target=job.table.name,
        headline=headline,
        on_end=publish_end,
        own_workers=to_stdout,
        error_limit=request.error_limit,
    )
    if options.dry_run:
        planned = _dry_run_json(job, len(units), slots)
        text = json_text(planned) if options.as_json else _dry_run_text(planned, headline)
        return replace(plan, text=text)
    if not to_stdout:
        return plan
    shown = list(zip(names, types, strict=True))
    first = beginning(output.format, shown, header=wants_header(options, output))
    printer = StdoutParts(Path(output.url), unload_parts, first, in_order=job.token_order)
    return replace(plan, on_look=printer.look, on_end=printer.end)


def _dry_run_json(job: ReadJob, units: int, slots: int) -> dict[str, Any]:
    """Return what the unload would do, for programs. Fields are only ever added."""
    from ringhaul.scan.statement import scan_statement

    assert job.output is not None
    return {
        "message_type": "plan",
        "kind": job.kind,
        "table": job.table.name,
        "output": None if job.streams else job.output.place,
        "transforms": list(job.transforms),
        "consistency": job.consistency,
        "columns": [{"column": name, "type": kind} for name, kind in job.columns],
        "statement": scan_statement(job.select),
        "units": units,
        "worker_processes": slots,
    }


def _dry_run_text(plan: Mapping[str, Any], headline: str) -> str:
    """Return what the unload would do, for people."""
    processes = count_text(plan["worker_processes"], "worker process", "worker processes")
    lines = [f"would {headline} for {processes}", f" statement  {plan['statement']}"]
    if plan["transforms"]:
        columns = (f"{column['column']} {column['type']}" for column in plan["columns"])
        lines.append(f" through    {' and '.join(plan['transforms'])}")
        lines.append(f" columns    {', '.join(columns)}")
    return lines_of(lines)


def _functions(transforms: Sequence[str], loaded: Loaded) -> Sequence[Transform]:
    """Load the transforms. Raises `UsageError` for one that this host lacks or does not allow."""
    if not transforms:
        return ()
    from producer.plan.transforms import plan_transforms  # most unloads do not need it

    return plan_transforms(transforms, loaded.settings)


@prints_to_stderr()
def _results(functions: Sequence[Transform], read: Read) -> tuple[tuple[str, CqlType], ...]:
    """Return the columns that the transforms produce. Raises `UsageError` if there are none."""
    from ringhaul.scan.reshape import planned_results

    if RECORD in read.names:
        raise UsageError(
            f"a column is named {RECORD}, like the one in which transforms number rows: give it "
            "another name with --query SELECT ... AS"
        )
    try:
        return planned_results(read.names, read.types, functions)
    except TransformError as error:
        raise UsageError(str(error)) from error


def _refuse_blank_lines(select: Select, output: Output) -> None:
    """Raise `UsageError` if a row could become a blank line, which readers skip."""
    column = select.items[0].scalar.column
    if column is None or not column.is_column or column.name not in select.table.never_null:
        refuse_blank_lines(output.format, select.names)
