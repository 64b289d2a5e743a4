"""Resume a job: only its missing units run, with the options and timestamps it began with.

A job that runs still is one whose command was killed, or one that somebody else follows: the
splitting goes on and the job is followed. Two commands that split the same job add the same units.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from producer.embedded import (
    EmbeddedBroker,
    EmbeddedWorker,
    default_workers,
    is_embedded,
    refuse_embedded_detach,
)
from producer.feed import Feeder
from producer.follow import Shown, follow_job
from producer.options import connection_flags, settle
from producer.run_load import spool_path
from ringhaul.cluster.connect import close_session, open_session
from ringhaul.errors import EXIT_COMPLETE, UsageError
from ringhaul.formats.sources import check_unchanged
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.limits import ErrorLimit
from ringhaul.ledger.states import JobState
from ringhaul.load.job import LoadJob
from tasks.connect import cluster_config, open_ledger


def run_resume(options: Mapping[str, Any]) -> int:
    """Run `ringhaul resume`; the exit code."""
    flags = connection_flags(options) | {"worker.concurrency": options["workers"]}
    loaded = settle(flags, options["config_file"])
    embedded = is_embedded(loaded)
    refuse_embedded_detach(loaded, options)
    state_dir = loaded.settings.state_dir
    job_id = options["job"]
    with ExitStack() as stack:
        broker = stack.enter_context(EmbeddedBroker(state_dir)) if embedded else None
        settings = settle({}, None).settings
        ledger = open_ledger(settings)
        job = LoadJob.from_json(json.loads(ledger.job_spec(job_id)))
        for source in job.sources:
            check_unchanged(source.file)
        close_session(open_session(cluster_config(settings)))
        limit = ErrorLimit.parse(options["max_errors"]) if options["max_errors"] else None
        epoch = _epoch(ledger, job_id, limit)
        worker = None
        if embedded:
            count = settings.worker.concurrency or default_workers()
            profiled = settings.worker.profile != "off"
            worker = stack.enter_context(
                EmbeddedWorker(state_dir, count, job_id, profiled=profiled)
            )
        status = ledger.status(job_id)
        feeder = None
        if not status.sealed:
            feeder = Feeder(ledger, job_id, epoch, job)
            feeder.start()
        shown = Shown.from_options(options)
        shown.say(f"{job_id}  resume -> {job.table.name}   {status.done:,} units are done already")
        code = follow_job(
            ledger,
            job_id,
            job.total_bytes,
            shown,
            feeder=feeder,
            broker=broker,
            worker=worker,
            on_interrupt=options["on_interrupt"] or ("cancel" if embedded else "detach"),
        )
    if code == EXIT_COMPLETE:
        spool_path(state_dir, job_id).unlink(missing_ok=True)
    return code


def _epoch(ledger: Ledger, job_id: str, limit: ErrorLimit | None) -> int:
    """The job's epoch, made to run if it does not."""
    status = ledger.status(job_id)
    if status.state is not JobState.RUNNING:
        return ledger.resume(job_id, error_limit=limit)
    if limit is not None:
        raise UsageError(
            f"job {job_id} is running: --max-errors can be changed when it has stopped"
        )
    return status.epoch
