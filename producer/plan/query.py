"""Plan a count or a query: its SELECT, its units, where its result goes."""

from __future__ import annotations

from config.settings import Settings
from producer.options.reads import CountOptions, QueryOptions
from producer.plan.plan import Plan
from producer.plan.scan import plan_units, read_select
from producer.request.result_output import lasting
from producer.request.scan import Wanted
from producer.text import count_text
from ringhaul.cluster.view import ClusterView
from ringhaul.errors import UsageError
from ringhaul.ledger.kinds import JobKind
from ringhaul.output.job import ResultOutput
from ringhaul.scan.job import ReadJob
from ringhaul.scan.ring import read_ring


def plan_query(
    options: QueryOptions | CountOptions,
    kind: JobKind,
    wanted: Wanted,
    output: ResultOutput,
    cluster: ClusterView,
    settings: Settings,
    slots: int,
) -> Plan:
    """Plan the job of a count or a query.

    `output`: where the result goes. `slots`: worker processes that share the job. Raises
    `UsageError`, `QueryError` or `ClusterError` for what cannot work.
    """
    read = read_select(cluster, wanted)
    if kind is JobKind.QUERY and not (read.select and read.select.is_aggregate):
        raise UsageError("this SELECT returns rows: `ringhaul unload --query` writes them")
    job = ReadJob(
        kind=kind,
        cluster_name=cluster.name,
        table=read.table,
        sql=read.sql,
        consistency=settings.cluster.consistency,
        ring=_ring(cluster, read.table.keyspace) if wanted.by != "total" else (),
        by_host=wanted.by == "host",
        skip_failed=options.skip_failed,
        result_output=lasting(output),
        partial_bytes_max=settings.query.partial_bytes_max,
        spill=str(settings.query.spill_dir or settings.state_dir / "spill"),
    )
    units = plan_units(cluster, read, slots)
    return Plan(
        job=job,
        units=units,
        target=job.table.name,
        headline=f"{kind} {job.table.name}   {count_text(len(units), 'unit')}",
        result=output,
    )


def _ring(cluster: ClusterView, keyspace: str) -> tuple[tuple[int, str], ...]:
    """Return the token that ends each range of the ring, with the address of its primary
    replica."""
    addresses = {node.host_id: node.address for node in cluster.nodes}
    return tuple((token.token, addresses[token.owner]) for token in read_ring(cluster, keyspace))
