"""Plan an unload: its SELECT, the columns of its files, its units."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from config.settings import Settings
from producer.notes import Note
from producer.options.reads import UnloadOptions
from producer.outputs.stdout import json_text, prints_to_stderr
from producer.outputs.stdout_parts import StdoutParts, beginning
from producer.plan.plan import Plan
from producer.plan.scan import Read, plan_units, read_select, shares_limit
from producer.plan.selection import without_times
from producer.plan.unload_dry_run import unload_json, unload_text
from producer.request.one_file import in_one_file
from producer.request.output import STDOUT, wants_header
from producer.request.unload import UnloadRequest
from producer.request.written_partitions import check_partitions
from producer.text import count_text
from ringhaul.cluster.view import ClusterView
from ringhaul.cql.names import spell_name
from ringhaul.cql.types import CqlType
from ringhaul.errors import UsageError
from ringhaul.formats.write import OutputFormat, refuse_blank_lines
from ringhaul.ledger.kinds import JobKind
from ringhaul.output.job import Output
from ringhaul.scan.finish import unload_parts
from ringhaul.scan.job import ReadJob
from ringhaul.transform import RECORD
from ringhaul.transform.errors import TransformError

if TYPE_CHECKING:
    from ringhaul.query.select import Select
    from ringhaul.transform.chain import Transform


def plan_unload(
    options: UnloadOptions,
    request: UnloadRequest,
    functions: Sequence[Transform],
    cluster: ClusterView,
    settings: Settings,
    job_id: str,
    slots: int,
) -> Plan:
    """Plan the job of an unload: its SELECT, columns, files and units.

    `functions`: the transforms that the options name. `slots`: worker processes that share the job.
    Raises `UsageError`, `QueryError` or `ClusterError` for what cannot work.
    """
    read = read_select(cluster, request.wanted)
    output = request.output
    limit = None if read.select is None else read.select.limit
    in_order = options.order == "token"
    is_shared = shares_limit(read, in_order=in_order)
    if request.file is not None:
        output = in_one_file(output, request.file, read.table, job_id)
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
    job = ReadJob(
        kind=JobKind.UNLOAD,
        cluster_name=cluster.name,
        table=read.table,
        sql=read.sql,
        consistency=settings.cluster.consistency,
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
    units = plan_units(cluster, read, slots, shares_limit=is_shared)
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
        notes=_notes(read, request, output.format, types),
        own_workers=to_stdout,
        error_limit=request.error_limit,
    )
    if options.dry_run:
        planned = unload_json(job, len(units), slots)
        text = json_text(planned) if options.as_json else unload_text(planned, headline)
        return replace(plan, text=text)
    if not to_stdout:
        return plan
    shown = list(zip(names, types, strict=True))
    first = beginning(output.format, shown, header=wants_header(options, output))
    printer = StdoutParts(Path(output.url), unload_parts, first, in_order=job.token_order)
    return replace(plan, printer=printer)


def transforms_of_unload(options: UnloadOptions, settings: Settings) -> Sequence[Transform]:
    """Load the transforms. Raises `UsageError` if this host lacks or does not allow a transform."""
    if not options.transforms:
        return ()
    from producer.plan.transforms import plan_transforms  # most unloads do not need it

    return plan_transforms(options.transforms, settings)


def _notes(
    read: Read, request: UnloadRequest, fmt: OutputFormat, types: Sequence[CqlType]
) -> list[Note]:
    """Return the notes about what files of this format will lack. `types`: the columns' types."""
    timeless = _timeless_note(without_times(read.table, request.wanted.mapping))
    return [*timeless, *_dropped_notes(fmt, types)]


def _timeless_note(names: Sequence[str]) -> list[Note]:
    """Return a note about columns whose write times and TTLs are not unloaded, if there are any."""
    if not names:
        return []
    return [
        Note(
            f"write times and TTLs of {', '.join(names[:3])}"
            f"{f' and {len(names) - 3:,} more' if len(names) > 3 else ''} are not unloaded: "
            "each element of a collection or user type that is not frozen has its own. With "
            f'Cassandra 5.0, -m \'*=*, writetime(*), "writetime({names[0]})"='
            f"maxwritetime({spell_name(names[0])})' unloads the newest"
        )
    ]


def _dropped_notes(fmt: OutputFormat, types: Sequence[CqlType]) -> list[Note]:
    """Return notes about patterns that leave out a part of their values, if there are such
    columns."""
    found = {scalar for cql_type in types for scalar in _scalars(cql_type)}
    return [
        Note(
            f"--{kind}-format {pattern} leaves out a part of each {kind}: a load of these "
            "files restores only the rest"
        )
        for kind in ("timestamp", "time")
        if kind in found and fmt.values is not None and (pattern := fmt.values.dropped_by(kind))
    ]


def _scalars(cql_type: CqlType) -> Iterator[str]:
    yield cql_type.name
    for inner in cql_type.of:
        yield from _scalars(inner)


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
