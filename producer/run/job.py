"""The life of a job of any kind, as its command leads it: created, labelled, fed, followed, closed.

A job is new (`run_plan`), resumed or taken over by its id (`JobRun.lead`). Kinds differ in their
plans and in what their jobs answer (`tasks.kinds.Job`), not here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from config.settings import Loaded
from producer.options.job import JobOptions
from producer.plan.plan import Plan
from producer.report.reporter import Shown
from producer.request.command_line import COMMAND_LABEL, command_line
from producer.request.fingerprint import FINGERPRINT_LABEL
from producer.run.finish import PublishedEnd
from producer.run.follow import Followed, cancelled_by_interrupt, follow_job, leave_job
from producer.run.lost_job import reporting_lost_job
from producer.services.embedded import default_workers
from producer.services.ledger import READ_PATIENCE_MS, on_behalf_of
from producer.services.preflight import Visibility
from producer.services.start import Services, own_worker
from producer.services.workers import choose_workers, idle_workers_note, standing_ledger
from ringhaul.cluster.view import ClusterView
from ringhaul.errors import EXIT_COMPLETE, UsageError
from ringhaul.ledger.labels import KIND_LABEL, QUEUE_LABEL
from ringhaul.ledger.ledger import BATCH_UNITS, Ledger
from ringhaul.ledger.pace import NO_PACE, Pace
from ringhaul.ledger.shares import NORMAL
from ringhaul.ledger.workers import Workers
from ringhaul.storage.access import is_url
from ringhaul.storage.folders import try_writing
from tasks.connect import open_ledger
from tasks.kinds import spec_of
from tasks.private_queues import private_queue
from tasks.tracing import job_trace

if TYPE_CHECKING:
    from producer.run.feed import Feeder
    from producer.run.spool_cleanup import SpooledInput
    from ringhaul.sources.source import SourceFile
    from tasks.kinds import Job


@dataclass(frozen=True, kw_only=True)
class JobRun:
    """A job that exists, and the command that leads it to its end."""

    job: Job
    followed: Followed
    state_dir: Path
    detach: bool = False  #: the command leaves the job to its workers

    def feed(self, epoch: int) -> Feeder | None:
        """Feed the job, see `feed_job`."""
        return feed_job(self.followed.ledger, self.followed.job_id, self.job, epoch)

    def lead(self, feeder: Feeder | None) -> int:
        """Follow the job to its end, or leave it; remove its spooled input if no later command
        needs it. Return the exit code."""
        followed, job = self.followed, self.job
        code = leave_job(followed, feeder) if self.detach else follow_job(followed, feeder)
        if job.input is not None:
            from producer.run.spool_cleanup import drop_if_done  # brings in readers of files

            ledger, job_id = followed.ledger, followed.job_id
            drop_if_done(ledger, self.state_dir, job_id, job.input, code, resumable=job.resumable)
        return code


def plan_slots(loaded: Loaded, *, own_workers: bool) -> int:
    """Return the number of worker processes that will share the job."""
    if own_workers or loaded.is_embedded:
        return loaded.settings.worker.concurrency or default_workers()
    return max(1, Workers(open_ledger(loaded.settings, READ_PATIENCE_MS).caller).slots())


def plan_and_run(
    options: JobOptions,
    services: Services,
    make_plan: Callable[[ClusterView], Plan],
    *,
    files: Sequence[SourceFile] = (),
    output: str = "",
    spooled: SpooledInput | None = None,
) -> int:
    """Plan with the view of the cluster that was opened in the meantime, then run the job or print
    the plan; return the exit code.

    `files`, `output`: what workers will read and where they will write; all hosts must see both.
    `spooled`: standard input that the job will read.
    """
    shown = Shown.from_options(options)
    ledger = standing_ledger(services)
    with Visibility(ledger) as visibility:
        if not options.dry_run:
            visibility.start(files, output)
        import tasks.application  # noqa: F401 - Celery: read while hosts look and the session opens

        cluster = services.opening.view()
        plan = make_plan(cluster)
        shown.show(plan.notes)
        # Start workers of this command only now that the plan is known to need them.
        job_workers = choose_workers(
            services, None if plan.own_workers else ledger, cluster, _keyspace(plan)
        )
        services.opening.close()
        if plan.text is not None:
            if job_workers.warning:
                shown.warn(job_workers.warning)
            print(plan.text)
            return EXIT_COMPLETE
        if is_url(plan.job.output_url):
            try_writing(plan.job.output_url)
        if not plan.own_workers:
            if job_workers.warning:
                shown.warn(job_workers.warning)
            visibility.judge(job_workers.workers, shown.warn)
    return run_plan(options, services, plan, job_workers.label, spooled)


def _keyspace(plan: Plan) -> str | None:
    return plan.keyspace if plan.job.table is None else plan.job.table.keyspace


def run_plan(
    options: JobOptions,
    services: Services,
    plan: Plan,
    label: str,
    spooled: SpooledInput | None = None,
) -> int:
    """Create the job of a plan and lead it to its end; return the exit code.

    `label`: queue label of the workers that were chosen. `spooled`: standard input that the job
    reads.
    """
    job, job_id, settings = plan.job, services.job_id, services.settings
    with ExitStack() as stack:
        stack.enter_context(reporting_lost_job(job_id, job))
        worker = services.worker
        if plan.own_workers and worker is None:
            worker = stack.enter_context(own_worker(services.for_workers, job_id))
        ledger, shown = open_ledger(settings), Shown.from_options(options)
        trace = stack.enter_context(job_trace(settings, job_id, job.kind))
        run = JobRun(
            job=job,
            followed=Followed(
                job_id=job_id,
                ledger=ledger,
                shown=shown,
                ending=plan.printer or PublishedEnd(job, plan.result),
                broker=services.broker,
                worker=worker,
                on_interrupt=options.interrupt_with(own_workers=worker is not None),
            ),
            state_dir=settings.state_dir,
            detach=options.detach,
        )
        labels = {
            QUEUE_LABEL: label if worker is None else private_queue(job_id),
            FINGERPRINT_LABEL: options.fingerprint,
            COMMAND_LABEL: command_line(),
            **job.labels,
            **trace.labels,
        }
        with cancelled_by_interrupt(ledger, job_id):
            create_job(
                ledger,
                job_id,
                plan,
                labels,
                pace=options.pace,
                priority=options.priority,
                adopted=options.adopted,
            )
            if spooled is not None:
                spooled.give_to_job(ledger)
            if options.job_id is not None and job.input is None:
                _check_units(ledger, job_id, plan)
            feeder = run.feed(1)
            if note := idle_workers_note(services, ledger):
                shown.say(note)
            shown.say(f"{job_id}  {plan.headline}")
        return trace.ended(run.lead(feeder))


def create_job(
    ledger: Ledger,
    job_id: str,
    plan: Plan,
    labels: Mapping[str, str],
    *,
    pace: Pace = NO_PACE,
    priority: str = NORMAL,
    adopted: bool = False,
) -> None:
    """Put the job into the ledger, and all units that are not made of files.

    `labels`: all but the kind and the target. `adopted`: the job exists, and lacks units.
    """
    job = plan.job
    ledger.create(
        job_id,
        {KIND_LABEL: job.kind, "table": plan.target, **labels},
        spec_of(job),
        # A unit that must not run twice is started only once.
        starts_max=None if job.repeatable else 1,
        error_limit=plan.error_limit,
        pace=pace,
        priority=priority,
        by=on_behalf_of(),
    )
    if job.input is None:
        hand_out(ledger, job_id, plan.units, ledger.status(job_id).epoch if adopted else 1)


def feed_job(ledger: Ledger, job_id: str, job: Job, epoch: int) -> Feeder | None:
    """Start a feeder that appends the units that are missing, and return it; None for a job whose
    units are not made of files."""
    if job.input is None:
        return None
    from producer.run.feed import Feeder  # readers of files: of no use where there are none

    feeder = Feeder(ledger, job_id, epoch, job.input)
    feeder.start()
    return feeder


def hand_out(ledger: Ledger, job_id: str, units: Sequence[str], epoch: int) -> None:
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
    if units != list(plan.units):
        ledger.fail(job_id, "two commands added different units to it at the same time")
        raise UsageError(f"two commands ran job {job_id} at the same time: run the command again")
