"""Run a reading job from its plan: create it, hand out its units, follow it. Shared by `unload`,
`count`, `query`, `lookup` and `exec`, which differ in the plan and in what becomes of the rows."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from cassandra.cluster import Session

from config.celery_config import QUEUE_LOAD
from config.settings import Loaded
from producer.embedded import (
    EmbeddedBroker,
    EmbeddedWorker,
    default_workers,
    is_embedded,
    private_queue,
    refuse_embedded_detach,
)
from producer.feed import Feeder
from producer.follow import Shown, follow_job
from producer.ledgers import READ_PATIENCE_MS
from producer.options import connection_flags, settle
from ringhaul.cluster.connect import close_session, open_session
from ringhaul.errors import EXIT_STILL_RUNNING, UsageError
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.reading import JobStatus
from ringhaul.ledger.workers import Workers
from ringhaul.load.job import LoadJob
from ringhaul.read.ask import AskJob
from ringhaul.read.job import ReadJob
from tasks.connect import cluster_config, open_ledger
from tasks.publish import KIND_LABEL, QUEUE_LABEL

#: Units in one message to the ledger.
BATCH_UNITS = 500
#: Beginning of a job's id, by its kind.
PREFIXES = {"unload": "ul", "count": "ct", "query": "qy", "lookup": "lk", "exec": "ex"}


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A job that can be created, and what follows its end."""

    job: ReadJob | AskJob
    units: Sequence[str] = ()
    #: Whose files make the units, beside the work; None: `units` has them all.
    split: LoadJob | None = None
    #: For people: the table, or what stands for it in lists of jobs.
    target: str
    #: For people, after the job's id.
    headline: str
    on_look: Callable[[Ledger, JobStatus], None] | None = None
    on_end: Callable[[Ledger, JobStatus], None] | None = None
    #: The rows come out of this command, so that its own workers must read them.
    own_workers: bool = False


def settle_read(options: Mapping[str, Any]) -> Loaded:
    """The settings, with the flags that all read commands share."""
    flags = connection_flags(options)
    flags |= {
        "cluster.consistency": options["consistency"],
        "worker.concurrency": options["workers"],
    }
    loaded = settle(flags, options["config_file"])
    if options.get("detach") and is_embedded(loaded):
        raise UsageError("--detach needs workers that stay: configure a broker and start some")
    refuse_embedded_detach(loaded, options)
    return loaded


def new_job_id(kind: str) -> str:
    """Such as `ul-7f3a9c`."""
    return f"{PREFIXES[kind]}-{secrets.token_hex(3)}"


def plan_slots(loaded: Loaded, *, own_workers: bool) -> int:
    """Worker processes that will share the job."""
    if own_workers or is_embedded(loaded):
        return loaded.settings.worker.concurrency or default_workers()
    return max(1, Workers(open_ledger(loaded.settings, READ_PATIENCE_MS).caller).slots())


def run_read(
    options: Mapping[str, Any],
    loaded: Loaded,
    job_id: str,
    make_plan: Callable[[Session], Plan | None],
) -> int:
    """Plan with a session of its own, then run; the exit code. No plan: there is nothing to run."""
    session = open_session(cluster_config(loaded.settings))
    try:
        plan = make_plan(session)
    finally:
        close_session(session)
    if plan is None:
        return 0
    with ExitStack() as stack:
        return _run(stack, loaded, options, job_id, plan)


def _run(
    stack: ExitStack, loaded: Loaded, options: Mapping[str, Any], job_id: str, plan: Plan
) -> int:
    embedded = is_embedded(loaded)
    own_workers = embedded or plan.own_workers
    state_dir = loaded.settings.state_dir
    broker = stack.enter_context(EmbeddedBroker(state_dir)) if embedded else None
    ledger = open_ledger(settle({}, None).settings)
    create_job(ledger, job_id, plan, private_queue(job_id) if own_workers else QUEUE_LOAD)
    workers = loaded.settings.worker.concurrency or default_workers()
    worker = None
    if own_workers:
        profiled = loaded.settings.worker.profile != "off"
        worker = stack.enter_context(EmbeddedWorker(state_dir, workers, job_id, profiled=profiled))
    shown = Shown.from_options(options)
    shown.say(f"{job_id}  {plan.headline}")
    feeder = None
    if plan.split is not None:
        feeder = Feeder(ledger, job_id, 1, plan.split)
        feeder.start()
    if options.get("detach"):
        if feeder is not None:
            feeder.join()
        ledger.make_durable()
        shown.say(f"detached; the job goes on.   watch: ringhaul status -f {job_id}")
        print(json.dumps({"message_type": "detached", "job": job_id}) if shown.as_json else job_id)
        return EXIT_STILL_RUNNING
    on_look, on_end = plan.on_look, plan.on_end
    return follow_job(
        ledger,
        job_id,
        0,
        shown,
        on_look=on_look and (lambda status: on_look(ledger, status)),
        on_end=on_end and (lambda status: on_end(ledger, status)),
        feeder=feeder,
        broker=broker,
        worker=worker,
        on_interrupt=options["on_interrupt"] or ("cancel" if own_workers else "detach"),
    )


def create_job(ledger: Ledger, job_id: str, plan: Plan, queue: str) -> None:
    """Put the job and all its units into the ledger."""
    ledger.create(
        job_id,
        {KIND_LABEL: plan.job.kind, "table": plan.target, QUEUE_LABEL: queue},
        json.dumps(plan.job.to_json()),
        # What must not be done twice is not begun twice.
        max_starts=None if getattr(plan.job, "repeatable", True) else 1,
    )
    if plan.split is not None:
        return
    first = 0
    while first < len(plan.units):
        batch = plan.units[first : first + BATCH_UNITS]
        known = ledger.add_units(job_id, 1, first, batch)
        if known is None:
            break  # cancelled by somebody already
        first = min(first + len(batch), known)
    ledger.seal(job_id, 1, len(plan.units))
