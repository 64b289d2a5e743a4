"""Run `count` and `query` from their options: plan, run, fold the units' results, print."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cassandra.cluster import Session

from config.settings import Loaded
from producer.beginning import Beginning
from producer.outputs import refuse_two_on_stdout
from producer.plan_read import Wanted, plan_units, read_select
from producer.result_table import STDOUT, print_result
from producer.run_read import Plan, plan_slots, run_read
from producer.words import count_text
from ringhaul.errors import OutputUnusable, UsageError
from ringhaul.ledger.keys import JOB_TTL_S
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.reading import JobMissing, JobStatus
from ringhaul.ledger.states import JobState
from ringhaul.read.fold import fold_job, read_job, result_types
from ringhaul.read.job import ReadJob
from ringhaul.read.ring import read_ring
from ringhaul.read.spill import forget_old


def run_query(options: Mapping[str, Any], begun: Beginning) -> int:
    """Run `ringhaul query` with what was begun for it; the exit code."""
    return _run(options, begun, "query", Wanted(sql=options["sql"]))


def run_count(options: Mapping[str, Any], begun: Beginning) -> int:
    """Run `ringhaul count` with what was begun for it; the exit code."""
    if options["top"] and options["by"] != "total":
        raise UsageError("--top and --by are two different counts: give one of them")
    select = Wanted(
        keyspace=options["keyspace"],
        table=options["table"],
        where=options["where"],
        by=options["by"],
        top=options["top"] or 0,
        counts=True,
    )
    return _run(options, begun, "count", select)


def _run(options: Mapping[str, Any], begun: Beginning, kind: str, wanted: Wanted) -> int:
    _check_result_options(options)
    slots = plan_slots(begun.loaded, own_workers=False)

    def plan(session: Session) -> Plan:
        return _plan(options, begun.loaded, session, kind, wanted, slots)

    return run_read(options, begun, plan)


def _check_result_options(options: Mapping[str, Any]) -> None:
    refuse_two_on_stdout(options)
    output = options.get("output")
    if output == STDOUT:
        output = None
    if options["result_format"] == "parquet" and output is None and sys.stdout.isatty():
        raise UsageError("Parquet is not for a terminal: give -o FILE or redirect")
    if output is not None and Path(output).is_dir():
        raise UsageError(f"-o {output} is a folder: give a file")
    if output is not None and not Path(output).absolute().parent.is_dir():
        raise UsageError(f"-o {output}: there is no folder {Path(output).parent}")


def _plan(
    options: Mapping[str, Any],
    loaded: Loaded,
    session: Session,
    kind: str,
    wanted: Wanted,
    slots: int,
) -> Plan:
    read = read_select(session, wanted)
    if kind == "query" and not (read.select and read.select.is_aggregate):
        raise UsageError(
            "query aggregates (count, sum, ...), and this SELECT has no aggregate; for rows there "
            "is `ringhaul unload --query`"
        )
    job = ReadJob(
        kind=kind,
        cluster_name=session.cluster.metadata.cluster_name,
        table=read.table,
        sql=read.sql,
        consistency=loaded.settings.cluster.consistency,
        ring=_ring(session, read.table.keyspace) if wanted.by != "total" else (),
        by_host=wanted.by == "host",
        partial_bytes_max=loaded.settings.query.partial_bytes_max,
        spill=str(loaded.settings.query.spill_dir or loaded.settings.state_dir / "spill"),
    )
    units = plan_units(session, read, slots)

    def finish(ledger: Ledger, status: JobStatus) -> None:
        if status.state is JobState.COMPLETE:
            try:
                print_folded(ledger, status.job, options["result_format"], options.get("output"))
            except OutputUnusable as error:
                raise OutputUnusable(
                    f"{error}; `ringhaul resume {status.job}` prints it again"
                ) from error

    headline = f"{kind} {job.table.name}   {count_text(len(units), 'unit')}"
    return Plan(job=job, units=units, target=job.table.name, headline=headline, on_end=finish)


def _ring(session: Session, keyspace: str) -> tuple[tuple[int, str], ...]:
    """The tokens that end the ring's ranges, with the address of the host that owns each first."""
    hosts = session.cluster.metadata.all_hosts()
    addresses = {str(host.host_id): str(host.address) for host in hosts}
    return tuple((token.token, addresses[token.owner]) for token in read_ring(session, keyspace))


def print_folded(ledger: Ledger, job_id: str, form: str, path: str | None) -> None:
    """Print the result of a complete count or query, which may be repeated."""
    job = read_job(ledger, job_id)
    print_result(fold_job(ledger, job_id, job), result_types(job), form, path)
    # The files of this job stay as long as the ledger remembers it: those of older ones go.
    forget_old(job.spill, JOB_TTL_S, lambda name: _is_known(ledger, name))


def _is_known(ledger: Ledger, job_id: str) -> bool:
    try:
        ledger.status(job_id)
    except JobMissing:
        return False
    return True
