"""Run `lookup` and `exec`: plan, create the job, follow it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from producer.inputs.stdin_spool import (
    as_standard_input,
    naming_standard_input,
    pipe_note,
    spool_sources,
)
from producer.options.statements import ExecOptions, LookupOptions, StatementOptions
from producer.outputs.stdout_spool import spool_folder
from producer.plan.exec import exec_facts
from producer.plan.heads import Heads
from producer.plan.json_layout import with_layout
from producer.plan.lookup import lookup_facts
from producer.plan.plan import Plan
from producer.plan.statements import StatementFacts, plan_statements
from producer.plan.titles import with_separator
from producer.report.reporter import Shown
from producer.request.output import STDOUT, check_empty, output_of
from producer.request.statements import check_inputs, values_draft, wanted_names
from producer.run.job import plan_and_run, plan_slots
from producer.run.spool_cleanup import SpooledInput
from producer.services.start import Services
from ringhaul.cluster.view import ClusterView
from ringhaul.statements.parameter_ranges import parse_span


def run_lookup(options: LookupOptions, services: Services) -> int:
    """Run `ringhaul lookup` with the services that were started for it; the exit code."""
    key, columns = wanted_names(options)

    def find_facts(cluster: ClusterView) -> StatementFacts:
        return lookup_facts(options, key, columns, cluster)

    return _run(options, services, [options.keys], [], find_facts)


def run_exec(options: ExecOptions, services: Services) -> int:
    """Run `ringhaul exec` with the services that were started for it; the exit code."""
    check_inputs(options)
    files = [options.params] if options.params is not None else []

    def find_facts(cluster: ClusterView) -> StatementFacts:
        return exec_facts(options, cluster, services.loaded)

    return _run(options, services, files, options.ranges, find_facts)


def _run(
    options: StatementOptions,
    services: Services,
    files: Sequence[str],
    ranges: Sequence[str],
    find_facts: Callable[[ClusterView], StatementFacts],
) -> int:
    loaded, job_id = services.loaded, services.job_id
    request = values_draft(options.values)
    to_stdout = options.output == STDOUT
    spooled = SpooledInput(loaded.settings.state_dir, job_id, files)
    spool, shown = spooled.path, Shown.from_options(options)
    with ExitStack() as stack:
        output = output_of(options, loaded, job_id)
        if not to_stdout:
            check_empty(output.url)
        stack.enter_context(spooled)
        planning = stack.enter_context(ExitStack())
        sources, heads = [], Heads(())
        if files:
            if pipe := pipe_note(files):
                shown.say(pipe)
            sources = spool_sources(files, request.dialect, request.file_format, spool)
            heads = planning.enter_context(Heads(sources))
            request = with_separator(request, heads)
            request, note = with_layout(request, heads)
            if note is not None:
                shown.say(as_standard_input(note, spool))
        for text in ranges:
            parse_span(text)  # refuses it before the cluster is asked
        slots = plan_slots(loaded, own_workers=to_stdout)
        settings = loaded.settings

        def plan(cluster: ClusterView) -> Plan:
            facts = find_facts(cluster)
            with naming_standard_input(spool):
                planned = plan_statements(
                    options, request, facts, output, heads, ranges, cluster, settings, slots
                )
            planning.close()
            if planned.printer is not None:
                stack.enter_context(spool_folder(Path(output.url)))
            return planned

        places = "" if to_stdout else output.url
        return plan_and_run(options, services, plan, files=sources, output=places, spooled=spooled)
