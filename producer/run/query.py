"""Run `count` and `query`: plan, run, fold the units' results, print."""

from __future__ import annotations

from producer.options.reads import CountOptions, QueryOptions
from producer.plan.plan import Plan
from producer.plan.query import plan_query
from producer.request.result_output import check_result_output, result_output
from producer.request.scan import Wanted, check_wanted, count_wanted
from producer.run.job import plan_and_run, plan_slots
from producer.services.start import Services
from ringhaul.cluster.view import ClusterView
from ringhaul.ledger.kinds import JobKind
from ringhaul.optional_pandas import put_off_pandas


def run_query(options: QueryOptions, services: Services) -> int:
    """Run `ringhaul query` with the services that were started for it; the exit code."""
    return _run(options, services, JobKind.QUERY, Wanted(sql=options.sql))


def run_count(options: CountOptions, services: Services) -> int:
    """Run `ringhaul count` with the services that were started for it; the exit code."""
    return _run(options, services, JobKind.COUNT, count_wanted(options))


def _run(
    options: QueryOptions | CountOptions, services: Services, kind: JobKind, wanted: Wanted
) -> int:
    put_off_pandas()
    output = result_output(options)
    check_result_output(output, options)
    check_wanted(wanted)
    slots = plan_slots(services.loaded, own_workers=False)

    def plan(cluster: ClusterView) -> Plan:
        settings = services.loaded.settings
        return plan_query(options, kind, wanted, output, cluster, settings, slots)

    return plan_and_run(options, services, plan)
