"""Run `count` and `query`: plan, run, fold the units' results, print."""

from __future__ import annotations

from cassandra.cluster import Session

from config.settings import Loaded
from producer.options.reads import CountOptions, QueryOptions
from producer.plan.scan import plan_units, read_select
from producer.request.result_output import check_result_output, lasting, result_output
from producer.request.scan import Wanted, check_wanted, count_wanted
from producer.run.finish import publish_end
from producer.run.job import Plan, plan_slots, run_read
from producer.services.start import Services
from producer.text import count_text
from ringhaul.errors import UsageError
from ringhaul.ledger.kinds import JobKind
from ringhaul.output.job import ResultOutput
from ringhaul.scan.job import ReadJob
from ringhaul.scan.ring import read_ring


def run_query(options: QueryOptions, services: Services) -> int:
    """Run `ringhaul query` with the services that were started for it; the exit code."""
    return _run(options, services, JobKind.QUERY, Wanted(sql=options.sql))


def run_count(options: CountOptions, services: Services) -> int:
    """Run `ringhaul count` with the services that were started for it; the exit code."""
    return _run(options, services, JobKind.COUNT, count_wanted(options))


def _run(
    options: QueryOptions | CountOptions, services: Services, kind: JobKind, wanted: Wanted
) -> int:
    output = result_output(options)
    check_result_output(output, options)
    check_wanted(wanted)
    slots = plan_slots(services.loaded, own_workers=False)

    def plan(session: Session) -> Plan:
        return _plan(output, services.loaded, session, kind, wanted, slots, options.skip_failed)

    return run_read(options, services, plan)


def _plan(
    output: ResultOutput,
    loaded: Loaded,
    session: Session,
    kind: JobKind,
    wanted: Wanted,
    slots: int,
    skip_failed: bool,
) -> Plan:
    read = read_select(session, wanted)
    if kind is JobKind.QUERY and not (read.select and read.select.is_aggregate):
        raise UsageError("this SELECT returns rows: `ringhaul unload --query` writes them")
    job = ReadJob(
        kind=kind,
        cluster_name=session.cluster.metadata.cluster_name,
        table=read.table,
        sql=read.sql,
        consistency=loaded.settings.cluster.consistency,
        ring=_ring(session, read.table.keyspace) if wanted.by != "total" else (),
        by_host=wanted.by == "host",
        skip_failed=skip_failed,
        result_output=lasting(output),
        partial_bytes_max=loaded.settings.query.partial_bytes_max,
        spill=str(loaded.settings.query.spill_dir or loaded.settings.state_dir / "spill"),
    )
    units = plan_units(session, read, slots)
    return Plan(
        job=job,
        units=units,
        target=job.table.name,
        headline=f"{kind} {job.table.name}   {count_text(len(units), 'unit')}",
        on_end=lambda ledger, status: publish_end(ledger, status, output),
    )


def _ring(session: Session, keyspace: str) -> tuple[tuple[int, str], ...]:
    """Return the token that ends each range of the ring, with the address of its primary
    replica."""
    hosts = session.cluster.metadata.all_hosts()
    addresses = {str(host.host_id): str(host.address) for host in hosts}
    return tuple((token.token, addresses[token.owner]) for token in read_ring(session, keyspace))
