"""Run a load or a verification from its options: plan, create the job, watch it, sum it up."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from config.settings import Loaded
from producer.asked import ASKED, ASKED_LABEL
from producer.beginning import Beginning
from producer.crew import Crew, crew_for, standing_ledger
from producer.dry_run import dry_run_json, dry_run_text
from producer.feed import Feeder
from producer.follow import Shown, follow_job, leave_job
from producer.gone import knowing
from producer.input_options import dialect_of, text_of
from producer.options import comma_list, refuse_blank, settle, sharing
from producer.plan import LoadRequest, check_request, plan_load
from producer.source_doubts import source_doubts
from producer.stdin_spool import (
    as_standard_input,
    drop_if_done,
    forget_spooled,
    spool_path,
    spool_sources,
    told_as_standard_input,
)
from producer.unloaded import manifest_options
from producer.urlfile import NO_PLACES, read_urlfile
from producer.visibility import Visibility
from producer.words import bytes_text, count_text
from ringhaul.errors import EXIT_COMPLETE, UsageError
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
                told = json.dumps(dry_run_json(job, crew.slots, transforms))
            else:
                told = dry_run_text(job, crew.slots, transforms)
            print(as_standard_input(told, spool))
            return EXIT_COMPLETE
        # What was spooled is the job's from the moment on at which there is one.
        with knowing(begun.job_id, job):
            return _run(begun, options, request, job, crew, on_created=unused.pop_all)


def load_request(options: Mapping[str, Any], loaded: Loaded) -> LoadRequest:
    """The request that the options make. Raises `UsageError` naming the option at fault."""
    keyspace, _, table = options["table"].rpartition(".")
    if keyspace and options["keyspace"] and keyspace != options["keyspace"]:
        raise UsageError(f"--table names keyspace {keyspace}, --keyspace {options['keyspace']}")
    keyspace = keyspace or options["keyspace"]
    if not keyspace:
        raise UsageError("no keyspace: give --keyspace, or --table KEYSPACE.TABLE")
    refuse_blank("--where", options["where"], "a condition")
    refuse_blank("--columns", options["columns"], "some columns")
    refuse_blank("--skip-columns", options["skip_columns"], "some columns")
    refuse_blank("--mapping", options["mapping"], "FIELD=COLUMN")
    load = loaded.settings.load
    request = LoadRequest(
        keyspace=keyspace,
        table=table,
        file_format=options["file_format"],
        header=options["header"],
        columns=comma_list(options["columns"]),
        mapping=_mapping(options["mapping"]),
        skip_columns=comma_list(options["skip_columns"]),
        dialect=dialect_of(options),
        text=text_of(options),
        skip_rows=options["skip_rows"],
        max_rows=options["max_rows"],
        nulls=options["nulls"],
        ttl_s=options["ttl"],
        timestamp=options["timestamp"],
        strategy=load.strategy,
        unit_bytes=load.unit_bytes,
        rows_per_s=options["rate"] or 0,
        max_errors=load.max_errors,
        transforms=options["transforms"],
        where=options["where"] or "",
        timestamp_field=options["timestamp_field"],
        ttl_field=options["ttl_field"],
    )
    check_request(request)
    return request


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


def _mapping(text: str | None) -> dict[str, str]:
    """`field=column,...` as a dict. Raises `UsageError` for a part without `=`."""
    mapping: dict[str, str] = {}
    for part in comma_list(text):
        name, equals, column = part.partition("=")
        if not equals or not name.strip() or not column.strip():
            raise UsageError(f"--mapping {part!r}: give FIELD=COLUMN, several parted by commas")
        if name.strip() in mapping:
            raise UsageError(f"--mapping names field {name.strip()!r} twice")
        mapping[name.strip()] = column.strip()
    return mapping
