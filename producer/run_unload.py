"""Run an unload from its options: settle, plan, create the job, follow it, publish the manifest."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from cassandra.cluster import Session

from config.settings import Loaded
from producer.options import comma_list
from producer.outputs import STDOUT, check_empty, output_of, refuse_two_on_stdout, wants_header
from producer.plan_read import Wanted, plan_units, read_select
from producer.run_read import Plan, new_job_id, plan_slots, run_read, settle_read
from producer.stdout_parts import StdoutParts, header_bytes
from producer.words import count_text
from ringhaul.errors import UsageError
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.reading import JobStatus
from ringhaul.ledger.states import JobState
from ringhaul.query.select import Select
from ringhaul.read.finish import publish_manifest, unload_parts
from ringhaul.read.job import Output, ReadJob
from ringhaul.read.statement import scan_statement


def run_unload(options: Mapping[str, Any]) -> int:
    """Run `ringhaul unload`; the exit code."""
    loaded = settle_read(options)
    job_id = new_job_id("unload")
    to_stdout = options["output"] == STDOUT
    with ExitStack() as stack:
        refuse_two_on_stdout(options)
        output = output_of(options, loaded, job_id)
        if to_stdout:
            spool = Path(output.url)
            stack.callback(shutil.rmtree, spool, ignore_errors=True)
        else:
            check_empty(output.url)
        slots = plan_slots(loaded, own_workers=to_stdout)

        def plan(session: Session) -> Plan | None:
            return _plan(options, loaded, session, output, slots)

        return run_read(options, loaded, job_id, plan)


def _plan(
    options: Mapping[str, Any], loaded: Loaded, session: Session, output: Output, slots: int
) -> Plan | None:
    read = read_select(session, _wanted(options))
    if read.select.is_aggregate:
        raise UsageError("unload writes rows; for aggregates there is `ringhaul query`")
    if read.select.limit is not None:
        raise UsageError("unload takes no LIMIT: workers read the ring's ranges side by side")
    _refuse_blank_lines(read.select, output)
    job = ReadJob(
        kind="unload",
        cluster_name=session.cluster.metadata.cluster_name,
        table=read.table,
        sql=read.sql,
        consistency=loaded.settings.cluster.consistency,
        rate_rows_s=options["rate"] or 0,
        output=output,
        token_order=options["order"] == "token",
        streams=options["output"] == STDOUT,
    )
    units = plan_units(session, job, slots)
    to_stdout = options["output"] == STDOUT
    headline = (
        f"unload {job.table.name} -> {'standard output' if to_stdout else output.url}   "
        f"{count_text(len(units), 'unit')}"
    )
    if options["dry_run"]:
        print(f"would {headline} for {count_text(slots, 'worker process', 'worker processes')}")
        print(f" statement  {scan_statement(job.select)}")
        return None
    if to_stdout:
        header = b""
        if wants_header(options, output):
            with_header = replace(output.format, header=True)
            header = header_bytes(with_header, job.select.names, job.select.types)
        printer = StdoutParts(Path(output.url), unload_parts, header, in_order=job.token_order)
        return Plan(
            job=job,
            units=units,
            target=job.table.name,
            headline=headline,
            on_look=printer.look,
            on_end=printer.end,
            own_workers=True,
        )
    return Plan(job=job, units=units, target=job.table.name, headline=headline, on_end=_finish)


def _refuse_blank_lines(select: Select, output: Output) -> None:
    """Raise `UsageError` where a row may be a blank line, which no reader takes for a record."""
    fmt, key = output.format, select.table.primary_key
    if fmt.kind == "csv" and fmt.null == "" and len(select.names) == 1:
        column = select.items[0].scalar.column
        if column is None or not column.is_column or column.name not in key:
            raise UsageError(
                f"a CSV of {select.names[0]} alone would have a blank line for each null, and that "
                "is no record: give --null NULL, or a column of the key beside it"
            )


def _finish(ledger: Ledger, status: JobStatus) -> None:
    if status.state is JobState.COMPLETE:
        publish_manifest(ledger, status.job)


def _wanted(options: Mapping[str, Any]) -> Wanted:
    """What is to be read, from --query or from --table, --columns and --where."""
    if options["sql"] is not None:
        for name in ("keyspace", "table", "columns", "where"):
            if options[name] is not None:
                raise UsageError(f"--query says it all: leave --{name} out")
        return Wanted(sql=options["sql"])
    if options["table"] is None:
        raise UsageError("give --table, or --query with a SELECT")
    return Wanted(
        keyspace=options["keyspace"],
        table=options["table"],
        items=tuple(comma_list(options["columns"])),
        where=options["where"],
    )
