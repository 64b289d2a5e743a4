"""Run a load or a verification: plan, create the job, watch it, report."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial

from producer.inputs.file_notes import file_notes
from producer.inputs.stdin_spool import (
    as_standard_input,
    naming_standard_input,
    pipe_note,
    spool_path,
    spool_sources,
)
from producer.outputs.stdout import json_text
from producer.plan.dialect_warnings import dialect_warnings
from producer.plan.dry_run import dry_run_code, dry_run_json, dry_run_text
from producer.plan.field_notes import field_notes
from producer.plan.json_layout import with_layout
from producer.plan.load import plan_load
from producer.plan.titles import with_separator
from producer.report.reporter import Shown
from producer.request.command_line import COMMAND_LABEL, command_line
from producer.request.fingerprint import FINGERPRINT_LABEL
from producer.request.load import LoadRequest
from producer.request.options import LoadOptions
from producer.run.feed import Feeder
from producer.run.finish import publish_end
from producer.run.follow import cancelled_by_interrupt, follow_job, leave_job
from producer.run.given_load import read_given
from producer.run.gone import reporting_lost_job
from producer.run.spool_cleanup import drop_if_done, forget_spooled
from producer.run.sstable_folder import prepare_sstables
from producer.services.preflight import Visibility
from producer.services.start import Services
from producer.services.workers import (
    JobWorkers,
    choose_workers,
    idle_workers_note,
    standing_ledger,
)
from producer.text import bytes_text, count_text
from ringhaul.ledger.labels import KIND_LABEL, PUBLISHES_LABEL, QUEUE_LABEL
from ringhaul.ledger.limits import ErrorLimit
from ringhaul.records.job import LoadJob
from ringhaul.storage.streams import is_stream
from tasks.connect import open_ledger
from tasks.tracing import job_trace
from tasks.transforms import transforms_of


def run_load(options: LoadOptions, services: Services) -> int:
    """Run `ringhaul load` or `verify` with the services that were started for it; the exit code."""
    loaded = services.loaded
    shown = Shown.from_options(options)
    given = read_given(options, loaded, shown)
    options, request = given.options, given.request
    spool = spool_path(loaded.settings.state_dir, services.job_id)
    with ExitStack() as unused:
        unused.callback(spool.unlink, missing_ok=True)
        if pipe := pipe_note(options.sources):
            shown.say(pipe)
        files = spool_sources(
            options.sources, request.dialect, request.file_format, spool, given.places
        )
        for line in file_notes(options.sources, files, request.file_format):
            (shown.warn if line.startswith("warning") else shown.say)(line)
        ledger = standing_ledger(services)
        with Visibility(ledger) as visibility:
            visibility.start(files)
            session = services.opening.session()
            job_workers = choose_workers(services, ledger, session, request.keyspace)
            if job_workers.warning:
                shown.warn(job_workers.warning)
            with naming_standard_input(spool):
                planned = None
                request = with_separator(request, files)
                request, note = with_layout(request, files)
                if note is not None:
                    shown.say(as_standard_input(note, spool))
                if request.create_table:
                    from producer.run.create_table import create_table, wanted_table

                    planned = wanted_table(request, files, session, shown)
                job = plan_load(
                    request,
                    files,
                    session,
                    loaded.settings,
                    job_workers.slots,
                    None if planned is None else planned.table.schema,
                )
                for line in dialect_warnings(request, job.sources, job.table):
                    shown.warn(line)
                for line in field_notes(request, job):
                    (shown.warn if line.startswith("warning") else shown.say)(line)
            if planned is None or options.dry_run:
                services.opening.close()
            visibility.judge(job_workers.workers, shown.warn)
            if planned is not None and not options.dry_run:
                job = create_table(planned, job, options, session, loaded.settings)
                services.opening.close()
        if options.dry_run:
            transforms = transforms_of(loaded.settings, job.transforms)
            slots = job_workers.slots
            plan = dry_run_json(job, slots, transforms, planned)
            text = (
                json_text(plan)
                if options.as_json
                else dry_run_text(job, slots, transforms, planned, plan)
            )
            print(as_standard_input(text, spool))
            return dry_run_code(plan, ErrorLimit.parse(request.max_errors))
        # Once the job exists, the spooled input belongs to it.
        with (
            reporting_lost_job(services.job_id, job),
            job_trace(services.settings, services.job_id, job.kind) as trace,
        ):
            code = _run(
                services,
                options,
                request,
                job,
                job_workers,
                labels=trace.labels,
                on_created=unused.pop_all,
            )
            return trace.ended(code)


def _run(
    services: Services,
    options: LoadOptions,
    request: LoadRequest,
    job: LoadJob,
    job_workers: JobWorkers,
    *,
    labels: Mapping[str, str],
    on_created: Callable[[], object],
) -> int:
    """Create the job, feed it and follow it. `labels`: further ones of the job."""
    job_id, embedded = services.job_id, services.worker is not None
    settings = services.settings
    ledger = open_ledger(settings)
    shown = Shown.from_options(options)
    if job.sstables is not None or job.stream is not None:
        slots = job_workers.slots
        if warning := prepare_sstables(job, job_id, settings, slots, own_workers=embedded):
            shown.warn(warning)
    with cancelled_by_interrupt(ledger, job_id):
        ledger.create(
            job_id,
            {
                KIND_LABEL: job.kind,
                "table": job.table.name,
                "bytes_total": str(job.total_bytes),
                QUEUE_LABEL: job_workers.label,
                FINGERPRINT_LABEL: options.fingerprint,
                COMMAND_LABEL: command_line(),
                **({PUBLISHES_LABEL: "1"} if job.publishes else {}),
                **labels,
            },
            json.dumps(job.to_json()),
            error_limit=ErrorLimit.parse(request.max_errors),
            starts_max=None if job.repeatable else 1,
            pace=options.pace,
            priority=options.priority,
        )
        on_created()
        feeder = Feeder(ledger, job_id, 1, job)
        feeder.start()
        if any(map(is_stream, options.sources)):
            forget_spooled(ledger, settings.state_dir)
        if note := idle_workers_note(services, ledger):
            shown.say(note)
        verb = "load ->" if job.kind == "load" else job.kind
        shown.say(
            f"{job_id}  {verb} {job.table.name}   {count_text(len(job.sources), 'file')}"
            f"  {bytes_text(job.total_bytes)}   {job_workers.text}"
        )
    if options.detach:
        return leave_job(ledger, job_id, shown, feeder)
    code = follow_job(
        ledger,
        job_id,
        shown,
        feeder=feeder,
        broker=services.broker,
        worker=services.worker,
        on_end=partial(publish_end, ledger) if job.publishes else None,
        on_interrupt=options.interrupt_with(own_workers=embedded),
    )
    drop_if_done(ledger, settings.state_dir, job_id, job, code)
    return code
