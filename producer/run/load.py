"""Run a load or a verification from its options: plan, create the job, watch it, sum it up."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from producer.inputs.from_manifest import manifest_options
from producer.inputs.stdin_spool import (
    as_standard_input,
    spool_path,
    spool_sources,
    told_as_standard_input,
)
from producer.inputs.urlfile import NO_PLACES, read_urlfile
from producer.outputs.stdout import json_text
from producer.plan.doubts import source_doubts
from producer.plan.dry_run import dry_run_json, dry_run_text
from producer.plan.load import plan_load
from producer.report.reporter import Shown
from producer.request.fingerprint import ASKED, ASKED_LABEL
from producer.request.load import LoadRequest, load_request
from producer.request.settings import settle
from producer.request.values import sharing
from producer.run.feed import Feeder
from producer.run.follow import follow_job, leave_job
from producer.run.gone import knowing
from producer.run.spool_cleanup import drop_if_done, forget_spooled
from producer.services.preflight import Visibility
from producer.services.start import Beginning
from producer.services.workers import Crew, crew_for, standing_ledger
from producer.text import bytes_text, count_text
from ringhaul.errors import EXIT_COMPLETE
from ringhaul.ledger.labels import KIND_LABEL, QUEUE_LABEL
from ringhaul.ledger.limits import ErrorLimit
from ringhaul.records.job import LoadJob
from tasks.connect import open_ledger
from tasks.transforms import transforms_of


def run_load(
    options: Mapping[str, Any], begun: Beginning, given: Collection[str], kind: str = "load"
) -> int:
    """Run `ringhaul load` with what was begun for it; the exit code. `given`: the names of the
    options that the user gave. `kind`: or `verify`."""
    loaded = begun.loaded
    shown = Shown.from_options(options)
    places = NO_PLACES
    if options["urlfile"] is not None:
        places = read_urlfile(options["urlfile"], options["sources"])
        options = {**options, "sources": (*options["sources"], *places)}
    changes, told = manifest_options(options, given)
    for line in told.splitlines():
        (shown.warn if line.startswith("warning") else shown.say)(line)
    options = {**options, **changes}
    request = replace(load_request(options, loaded), kind=kind)
    spool = spool_path(loaded.settings.state_dir, begun.job_id)
    with ExitStack() as unused:
        unused.callback(spool.unlink, missing_ok=True)
        files = spool_sources(
            options["sources"], request.dialect, request.file_format, spool, places
        )
        ledger = standing_ledger(begun)
        with Visibility(ledger) as visibility:
            visibility.ask(files)
            session = begun.opening.session()
            crew = crew_for(begun, ledger, session, request.keyspace)
            if crew.warning:
                shown.warn(crew.warning)
            with told_as_standard_input(spool):
                job = plan_load(request, files, session, loaded.settings, crew.slots)
                for line in source_doubts(request, files):
                    shown.warn(line)
            begun.opening.close()
            visibility.judge(crew.workers, shown.warn)
        if options["dry_run"]:
            transforms = transforms_of(loaded.settings, job.transforms)
            if options["as_json"]:
                told = json_text(dry_run_json(job, crew.slots, transforms))
            else:
                told = dry_run_text(job, crew.slots, transforms)
            print(as_standard_input(told, spool))
            return EXIT_COMPLETE
        # What was spooled is the job's from the moment on at which there is one.
        with knowing(begun.job_id, job):
            return _run(begun, options, request, job, crew, on_created=unused.pop_all)


def _run(
    begun: Beginning,
    options: Mapping[str, Any],
    request: LoadRequest,
    job: LoadJob,
    crew: Crew,
    *,
    on_created: Callable[[], object],
) -> int:
    """Create the job, feed it and follow it."""
    job_id, embedded = begun.job_id, begun.worker is not None
    settings = settle({}, None).settings  # an embedded broker is among them by now
    ledger = open_ledger(settings)
    ledger.create(
        job_id,
        {
            KIND_LABEL: job.kind,
            "table": job.table.name,
            "bytes_total": str(job.total_bytes),
            QUEUE_LABEL: crew.label,
            ASKED_LABEL: options[ASKED],
        },
        json.dumps(job.to_json()),
        error_limit=ErrorLimit.parse(request.max_errors),
        **sharing(options),
    )
    on_created()
    feeder = Feeder(ledger, job_id, 1, job)
    feeder.start()
    if "-" in options["sources"]:
        forget_spooled(ledger, settings.state_dir)
    shown = Shown.from_options(options)
    verb = "load ->" if job.kind == "load" else job.kind
    shown.say(
        f"{job_id}  {verb} {job.table.name}   {count_text(len(job.sources), 'file')}"
        f"  {bytes_text(job.total_bytes)}   {crew.told}"
    )
    if options["detach"]:
        return leave_job(ledger, job_id, shown, feeder)
    code = follow_job(
        ledger,
        job_id,
        job.total_bytes,
        shown,
        feeder=feeder,
        broker=begun.broker,
        worker=begun.worker,
        on_interrupt=options["on_interrupt"] or ("cancel" if embedded else "detach"),
    )
    drop_if_done(ledger, settings.state_dir, job_id, job, code)
    return code
