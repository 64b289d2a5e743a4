"""Choose who does a job: workers of this command, or running workers near the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from config.celery_config import QUEUE_LOAD, dc_queue
from producer.services.embedded import default_workers
from producer.services.ledger import READ_PATIENCE_MS
from producer.services.start import Services
from producer.text import count_text
from ringhaul import __version__
from ringhaul.cluster.consistency import far_from_rows
from ringhaul.cluster.datacentres import data_centres_of
from ringhaul.cluster.view import ClusterView
from ringhaul.errors import SetupUnusable, UsageError
from ringhaul.ledger.formats import JOB_FORMAT
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.server import read_server
from ringhaul.ledger.server_checks import check_server, warnings_of
from ringhaul.ledger.workers import Worker, Workers
from ringhaul.plain_text import lines_of
from tasks.connect import open_ledger
from tasks.private_queues import private_queue
from tasks.publish import queue_of


@dataclass(frozen=True, kw_only=True)
class JobWorkers:
    """The workers that a job is given to, at the time of planning."""

    #: The job's queue label: see `ringhaul.ledger.labels.QUEUE_LABEL`.
    label: str
    slots: int  #: worker processes that will share the job, at least 1
    text: str  #: how many workers, on how many hosts, as people read it
    warning: str = ""  #: what the user should know about where the units run
    #: Running workers that consume the job's queue now.
    workers: Sequence[Worker] = ()


def standing_ledger(services: Services) -> Ledger | None:
    """Return the ledger that lists running workers; None if the command has its own workers."""
    if services.worker is not None or services.loaded.is_embedded:
        return None
    return open_ledger(services.loaded.settings, READ_PATIENCE_MS)


def choose_workers(
    services: Services, ledger: Ledger | None, cluster: ClusterView, keyspace: str | None
) -> JobWorkers:
    """Choose the workers of a job: the command's own, or running workers in the data centres that
    hold the rows.

    `keyspace`: None if it is not known where the rows are. `ledger`: see `standing_ledger`. Raises
    `LedgerUnavailable`, `UsageError` if this command's own workers could never reach the
    consistency level, and `SetupUnusable` if no running worker can read this version's jobs.
    """
    far = far_from_rows(cluster, keyspace)
    if ledger is None:
        if far:
            raise UsageError(far)
        settings = services.loaded.settings
        slots = settings.worker.concurrency or default_workers()
        text = count_text(slots, "embedded worker")
        return JobWorkers(label=private_queue(services.job_id), slots=slots, text=text)
    near = data_centres_of(cluster, keyspace) if keyspace else []
    label = ",".join([*map(dc_queue, near), QUEUE_LOAD])
    alive = Workers(ledger.caller).alive()
    warned = warnings_of(check_server(read_server(ledger.caller)))
    queue = queue_of(label, alive)
    takers = [worker for worker in alive if queue in worker.queues]
    workers = [worker for worker in takers if worker.readable.has(JOB_FORMAT)]
    if takers and not workers:
        raise SetupUnusable(unreadable_text(takers))
    route = route_warning(near, queue, alive)
    slots = sum(worker.slots for worker in workers)
    hosts = len({worker.host for worker in workers})
    return JobWorkers(
        label=label,
        slots=max(1, slots),
        text=f"{count_text(slots, 'worker')} on {count_text(hosts, 'host')}",
        # Workers without a configured data centre mostly use this command's data centre.
        warning=lines_of(
            filter(
                None,
                [
                    route or (far if queue == QUEUE_LOAD else ""),
                    unreadable_text([w for w in takers if w not in workers]),
                    *warned,
                ],
            )
        ),
        workers=workers,
    )


def unreadable_text(others: Sequence[Worker]) -> str:
    """Return what to do about workers that cannot read this version's jobs; empty for none."""
    if not others:
        return ""
    hosts = ", ".join(sorted({worker.host for worker in others})[:5])
    versions = " and ".join(sorted({worker.version or "an earlier version" for worker in others}))
    one = len(others) == 1
    return (
        f"{count_text(len(others), 'worker')} ({hosts}) {'runs' if one else 'run'} ringhaul "
        f"{versions}, which cannot read jobs of {__version__}, and {'takes' if one else 'take'} "
        "no unit of this job: install one version on all hosts, on workers before commands"
    )


def idle_workers_note(services: Services, ledger: Ledger) -> str:
    """Return a note about standing workers of the local broker, which take no units if a command
    starts its own; empty if there are none, or if the user did not want them (`none`)."""
    origin = services.loaded.origins["broker.url"]
    if services.broker is None or origin not in ("default", "local stack"):
        return ""
    alive = Workers(ledger.caller).alive()
    slots = sum(worker.slots for worker in alive if QUEUE_LOAD in worker.queues)
    if not slots:
        return ""
    verb = "is" if slots == 1 else "are"
    # What is up without a stack has no `local env`.
    use = '; use them: eval "$(ringhaul local env)"' if origin == "local stack" else ""
    return f"{count_text(slots, 'standing worker')} of ringhaul local {verb} not used{use}"


def route_warning(near: Sequence[str], queue: str, alive: Sequence[Worker]) -> str:
    """Return a warning if the chosen queue is unsuitable for rows in the data centres `near`."""
    if not any(queue in worker.queues for worker in alive):
        return (
            "no worker is up, and units wait for one: start some with `ringhaul worker`, or give "
            "--broker none to use this command's own"
        )
    standing = [worker for worker in alive if QUEUE_LOAD in worker.queues]
    unplaced = [worker for worker in standing if worker.queues == (QUEUE_LOAD,)]
    if queue == QUEUE_LOAD:
        if not near or len(unplaced) == len(standing):
            return ""
        return (
            f"no worker is in a data centre that holds the rows ({', '.join(near)}): any worker "
            "takes units; see cluster.local_dc"
        )
    if not unplaced:
        return ""
    hosts = ", ".join(sorted({worker.host for worker in unplaced})[:5])
    return (
        f"{count_text(len(unplaced), 'worker')} without cluster.local_dc ({hosts}) "
        f"{'takes' if len(unplaced) == 1 else 'take'} no unit while others are in a data centre "
        "that holds the rows: set it on every host or on none"
    )
