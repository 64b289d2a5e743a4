"""Run a reading job from its plan: create it, add its units, follow it. `unload`, `count`, `query`,
`lookup` and `exec` share this; they differ in the plan and in what happens to the rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cassandra.cluster import Session

from config.settings import Loaded
from producer.report.reporter import Shown
from producer.request.command_line import COMMAND_LABEL, command_line
from producer.request.fingerprint import FINGERPRINT_LABEL
from producer.request.options import JobOptions
from producer.request.settings import is_embedded
from producer.run.feed import BATCH_UNITS
from producer.run.follow import cancelled_by_interrupt, follow_job, leave_job
from producer.run.gone import reporting_lost_job
from producer.services.embedded import default_workers
from producer.services.ledger import READ_PATIENCE_MS, on_behalf_of
from producer.services.start import Services, own_worker
from producer.services.workers import choose_workers, idle_workers_note, standing_ledger
from ringhaul.errors import EXIT_COMPLETE, UsageError
from ringhaul.ledger.job_status import JobStatus
from ringhaul.ledger.labels import KIND_LABEL, QUEUE_LABEL
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.limits import ErrorLimit
from ringhaul.ledger.pace import NO_PACE, Pace
from ringhaul.ledger.shares import NORMAL
from ringhaul.ledger.workers import Workers
from ringhaul.storage.access import is_url
from tasks.connect import open_ledger
from tasks.private_queues import private_queue
from tasks.tracing import job_trace

if TYPE_CHECKING:
    from ringhaul.records.job import LoadJob
    from ringhaul.scan.job import ReadJob
    from ringhaul.sources.source import SourceFile
    from ringhaul.statements.job import StatementJob


def nothing() -> None:
    """Do nothing."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A job that can be created, and what follows its end."""

    job: ReadJob | StatementJob
    units: Sequence[str] = ()
    #: Split into units while workers run; None: `units` is complete.
    split: LoadJob | None = None
    #: For people: the table, or its stand-in in lists of jobs.
    target: str
    #: For people, after the job's id.
    headline: str
    on_created: Callable[[], object] = nothing
    on_look: Callable[[Ledger, JobStatus], None] | None = None
    on_end: Callable[[Ledger, JobStatus], None] | None = None
    #: The command itself prints the rows, so its own workers must read them.
    own_workers: bool = False
    #: Keyspace of the rows, if the job has no table; None: unknown.
    keyspace: str | None = None
    error_limit: ErrorLimit | None = None  #: None: rejects never stop the job
    text: str | None = None  #: printed instead of a run (--dry-run)


def plan_slots(loaded: Loaded, *, own_workers: bool) -> int:
    """Return the number of worker processes that will share the job."""
    if own_workers or is_embedded(loaded):
        return loaded.settings.worker.concurrency or default_workers()
    return max(1, Workers(open_ledger(loaded.settings, READ_PATIENCE_MS).caller).slots())


def run_read(
    options: JobOptions,
    services: Services,
    make_plan: Callable[[Session], Plan],
    *,
    files: Sequence[SourceFile] = (),
    output: str = "",
) -> int:
    """Plan with the session that was opened in the meantime, then run the job or print the plan;
    return the exit code.

    `files`, `output`: what workers will read and where they will write; all hosts must see both.
    """
    from producer.services.preflight import (
        Visibility,  # imports readers of files: only where there are files
    )

    ledger = standing_ledger(services)
    with Visibility(ledger) as visibility:
        if not options.dry_run:
            visibility.start(files, output)
        import tasks.application  # noqa: F401 - Celery: read while hosts look and the session opens

        session = services.opening.session()
        plan = make_plan(session)
        # Start workers of this command only now that the plan is known to need them.
        job_workers = choose_workers(
            services, None if plan.own_workers else ledger, session, _keyspace(plan)
        )
        services.opening.close()
        if plan.text is not None:
            if job_workers.warning:
                Shown.from_options(options).warn(job_workers.warning)
            print(plan.text)
            return EXIT_COMPLETE
        if plan.job.output is not None and is_url(plan.job.output.url):
            from ringhaul.storage.folders import try_writing

            try_writing(plan.job.output.url)
        if not plan.own_workers:
            shown = Shown.from_options(options)
            if job_workers.warning:
                shown.warn(job_workers.warning)
            visibility.judge(job_workers.workers, shown.warn)
    with ExitStack() as stack, reporting_lost_job(services.job_id, plan.job):
        return _run(stack, options, services, plan, job_workers.label)


def _keyspace(plan: Plan) -> str | None:
    return plan.keyspace if plan.job.table is None else plan.job.table.keyspace


def _run(stack: ExitStack, options: JobOptions, services: Services, plan: Plan, label: str) -> int:
    job_id, worker = services.job_id, services.worker
    if plan.own_workers and worker is None:
        worker = stack.enter_context(own_worker(services.settings, job_id))
    ledger = open_ledger(services.settings)
    queue = label if worker is None else private_queue(job_id)
    trace = stack.enter_context(job_trace(services.settings, job_id, plan.job.kind))
    with cancelled_by_interrupt(ledger, job_id):
        create_job(
            ledger,
            job_id,
            plan,
            queue,
            fingerprint=options.fingerprint,
            pace=options.pace,
            priority=options.priority,
            labels=trace.labels,
            adopted=options.adopted,
        )
        plan.on_created()
        if options.job_id is not None:
            _check_units(ledger, job_id, plan)
        shown = Shown.from_options(options)
        if note := idle_workers_note(services, ledger):
            shown.say(note)
        shown.say(f"{job_id}  {plan.headline}")
        feeder = None
        if plan.split is not None:
            from producer.run.feed import Feeder  # readers of files: of no use where there are none

            feeder = Feeder(ledger, job_id, 1, plan.split)
            feeder.start()
    if options.detach:
        return trace.ended(leave_job(ledger, job_id, shown, feeder))
    on_look, on_end = plan.on_look, plan.on_end
    code = follow_job(
        ledger,
        job_id,
        shown,
        on_look=on_look and (lambda status: on_look(ledger, status)),
        on_end=on_end and (lambda status: on_end(ledger, status)),
        feeder=feeder,
        broker=services.broker,
        worker=worker,
        on_interrupt=options.interrupt_with(own_workers=worker is not None),
    )
    return trace.ended(code)


def create_job(
    ledger: Ledger,
    job_id: str,
    plan: Plan,
    queue: str,
    *,
    fingerprint: str = "",
    pace: Pace = NO_PACE,
    priority: str = NORMAL,
    labels: Mapping[str, str] | None = None,
    adopted: bool = False,
) -> None:
    """Put the job and all its units into the ledger. `labels`: further ones; `adopted`: the job
    exists, and lacks units."""
    ledger.create(
        job_id,
        {
            KIND_LABEL: plan.job.kind,
            "table": plan.target,
            QUEUE_LABEL: queue,
            FINGERPRINT_LABEL: fingerprint,
            COMMAND_LABEL: command_line(),
            **(labels or {}),
        },
        json.dumps(plan.job.to_json()),
        # A unit that must not run twice is started only once.
        starts_max=None if plan.job.repeatable else 1,
        error_limit=plan.error_limit,
        pace=pace,
        priority=priority,
        by=on_behalf_of(),
    )
    if plan.split is not None:
        return
    _hand_out(ledger, job_id, plan.units, ledger.status(job_id).epoch if adopted else 1)


def _hand_out(ledger: Ledger, job_id: str, units: Sequence[str], epoch: int) -> None:
    """Append the units and seal the job; append again what Redis loses in between."""
    known = 0
    while True:
        if known < len(units):
            first = known
            answer = ledger.add_units(job_id, epoch, first, units[first : first + BATCH_UNITS])
            if answer is None or answer == first:
                return  # cancelled already, or sealed by another command with fewer units
        else:
            answer = ledger.seal(job_id, epoch, len(units))
            if answer is None or answer >= len(units):
                return
        known = answer


def _check_units(ledger: Ledger, job_id: str, plan: Plan) -> None:
    """Fail a job whose units do not come from one plan, and raise `UsageError`.

    Two commands with the same --job-id may have added units at the same time, and the servers' size
    estimates, which decide how units are cut, may have changed between the two.
    """
    units = [spec for _, spec in ledger.unit_specs(job_id)]
    if plan.split is None and units != list(plan.units):
        ledger.fail(job_id, "two commands added different units to it at the same time")
        raise UsageError(f"two commands ran job {job_id} at the same time: run the command again")
