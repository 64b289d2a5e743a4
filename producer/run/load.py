"""Run a load or a verification: find its files, plan, create its table, lead its job."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

from producer.destination.preparation import prepare_destination
from producer.inputs.completion import complete_load
from producer.inputs.file_notes import file_notes
from producer.inputs.stdin_spool import (
    as_standard_input,
    naming_standard_input,
    pipe_note,
    spool_sources,
)
from producer.notes import Note
from producer.options.load import LoadOptions
from producer.outputs.stdout import json_text
from producer.plan.dry_run import dry_run_code, dry_run_json, dry_run_text
from producer.plan.heads import Heads
from producer.plan.json_layout import with_layout
from producer.plan.load import plan_load
from producer.plan.load_plan import load_plan
from producer.plan.new_table import Planned, wanted_table
from producer.plan.titles import with_separator
from producer.report.reporter import Shown
from producer.request.load import load_draft
from producer.run.create_table import create_table
from producer.run.job import run_plan
from producer.run.spool_cleanup import SpooledInput
from producer.services.preflight import Visibility
from producer.services.start import Services
from producer.services.workers import choose_workers, standing_ledger
from ringhaul.ledger.limits import ErrorLimit
from tasks.transforms import transforms_of


def run_load(options: LoadOptions, services: Services) -> int:
    """Run `ringhaul load` or `verify` with the services that were started for it; the exit code."""
    settings, shown = services.loaded.settings, Shown.from_options(options)
    completed = complete_load(options)
    shown.show(completed.notes)
    options = completed.options
    request = load_draft(options, services.loaded)
    spooling = SpooledInput(settings.state_dir, services.job_id, options.sources)
    with spooling as spooled, ExitStack() as planning:
        spool = spooled.path
        if pipe := pipe_note(options.sources):
            shown.say(pipe)
        files = spool_sources(
            options.sources, request.dialect, request.file_format, spool, completed.places
        )
        shown.show(file_notes(options.sources, files, request.file_format))
        ledger = standing_ledger(services)
        heads = planning.enter_context(Heads(files))
        with Visibility(ledger) as visibility:
            visibility.start(files)
            cluster = services.opening.view()
            job_workers = choose_workers(services, ledger, cluster, request.keyspace)
            if job_workers.warning:
                shown.warn(job_workers.warning)
            slots = job_workers.slots
            with naming_standard_input(spool):
                request = with_separator(request, heads)
                request, note = with_layout(request, heads)
                if note is not None:
                    shown.say(as_standard_input(note, spool))
                wanted = wanted_table(request, heads, cluster) if request.create_table else None
                new_table = wanted if isinstance(wanted, Planned) else None
                if isinstance(wanted, Note):
                    shown.show([wanted])
                schema = None if new_table is None else new_table.table.schema
                job = plan_load(request, heads, cluster, settings, slots, schema)
                plan = load_plan(request, heads, job, job_workers.text)
                shown.show(plan.notes)
            if new_table is None or options.dry_run:
                services.opening.close()
            visibility.judge(job_workers.workers, shown.warn)
            if new_table is not None and not options.dry_run:
                job = create_table(new_table, job, options, services.opening.session(), settings)
                services.opening.close()
        if options.dry_run:
            transforms = transforms_of(settings, job.transforms)
            found = dry_run_json(job, heads, slots, transforms, new_table)
            text = (
                json_text(found)
                if options.as_json
                else dry_run_text(job, found, transforms, new_table)
            )
            print(as_standard_input(text, spool))
            return dry_run_code(found, ErrorLimit.parse(request.max_errors))
        planning.close()
        job_id, own_workers = services.job_id, services.worker is not None
        if warning := prepare_destination(
            job, job_id, services.settings, slots, own_workers=own_workers
        ):
            shown.warn(warning)
        return run_plan(options, services, replace(plan, job=job), job_workers.label, spooled)
