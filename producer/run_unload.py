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
from config.values import parse_bytes
from producer.options import comma_list
from producer.plan_read import Wanted, plan_units, read_select
from producer.run_read import Plan, new_job_id, plan_slots, run_read, settle_read
from producer.stdout_parts import StdoutParts
from producer.words import count_text
from ringhaul.errors import UsageError
from ringhaul.formats.write import OutputFormat
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.reading import JobStatus
from ringhaul.ledger.states import JobState
from ringhaul.read.finish import publish_manifest
from ringhaul.read.folders import open_folder
from ringhaul.read.job import Output, ReadJob
from ringhaul.read.statement import scan_statement

STDOUT = "-"


def run_unload(options: Mapping[str, Any]) -> int:
    """Run `ringhaul unload`; the exit code."""
    loaded = settle_read(options)
    job_id = new_job_id("unload")
    to_stdout = options["output"] == STDOUT
    with ExitStack() as stack:
        output = _output(options, loaded, job_id)
        if to_stdout:
            spool = Path(output.url)
            stack.callback(shutil.rmtree, spool, ignore_errors=True)
        else:
            _check_empty(output.url)
        slots = plan_slots(loaded, own_workers=to_stdout)

        def plan(session: Session) -> Plan | None:
            return _plan(options, loaded, session, output, slots)

        return run_read(options, loaded, job_id, plan)


def _output(options: Mapping[str, Any], loaded: Loaded, job_id: str) -> Output:
    """Where the parts go. Raises `UsageError` for options that do not go together."""
    to_stdout = options["output"] == STDOUT
    kind = options["format"] or "csv"
    if to_stdout and kind == "parquet":
        raise UsageError("-o - cannot be Parquet, whose files end with an index: give a folder")
    if to_stdout and options["as_json"]:
        raise UsageError("-o - and --json both want standard output: give one of them")
    given = {
        name: options[name]
        for name in ("compression", "delimiter", "quote", "header", "null")
        if options[name] is not None
    }
    if to_stdout and kind == "csv":
        given["header"] = False  # once, before the first part, and not in each
    url = options["output"]
    if to_stdout:
        url = str(loaded.settings.state_dir / "spool" / job_id)
    elif "://" not in url:
        url = str(Path(url).absolute())
    return Output(
        url=url,
        format=OutputFormat(kind=kind, **given),
        rows_max=options["max_rows_per_file"] or 0,
        bytes_max=parse_bytes(options["max_file_size"]) if options["max_file_size"] else 0,
    )


def _check_empty(url: str) -> None:
    """Raise `UsageError` if the folder has files: they would be taken for the unload's."""
    if open_folder(url).sizes():
        raise UsageError(
            f"-o: {url} is not empty; give a new folder (an unload that was cut short goes on with "
            "`ringhaul resume JOB`)"
        )


def _plan(
    options: Mapping[str, Any], loaded: Loaded, session: Session, output: Output, slots: int
) -> Plan | None:
    read = read_select(session, _wanted(options))
    if read.select.is_aggregate:
        raise UsageError("unload writes rows; for aggregates there is `ringhaul query`")
    if read.select.limit is not None:
        raise UsageError("unload takes no LIMIT: workers read the ring's ranges side by side")
    job = ReadJob(
        kind="unload",
        cluster_name=session.cluster.metadata.cluster_name,
        table=read.table,
        sql=read.sql,
        consistency=loaded.settings.cluster.consistency,
        output=output,
        token_order=options["order"] == "token",
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
        wants_header = output.format.kind == "csv" and options["header"] is not False
        header = replace(output.format, header=True) if wants_header else None
        printer = StdoutParts(job, header)
        return Plan(
            job=job,
            units=units,
            headline=headline,
            on_look=printer.look,
            on_end=printer.end,
            own_workers=True,
        )
    return Plan(job=job, units=units, headline=headline, on_end=_finish)


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
