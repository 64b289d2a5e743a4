"""Start the slowest services first: broker, workers and a session.

While they start, the command imports what it needs and plans the job.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from config.settings import Loaded, Settings
from producer.options.job import JobOptions
from producer.options.load import LoadOptions
from producer.options.statements import ExecOptions
from producer.options.tune import TuneOptions
from producer.request.conflicts import (
    refuse_embedded_detach,
    refuse_stdout_detach,
    refuse_workers_of_others,
)
from producer.request.settings import connection_flags, load_flags, settle
from producer.services.embedded import (
    LOAD_PREFIX,
    EmbeddedBroker,
    EmbeddedWorker,
    default_workers,
    enter_broker,
)
from ringhaul.ledger.kinds import JobKind

if TYPE_CHECKING:
    from producer.services.cluster import Opening

#: How the id of a job starts, by its kind.
PREFIXES = {
    JobKind.LOAD: LOAD_PREFIX,
    JobKind.VERIFY: "vf",
    JobKind.UNLOAD: "ul",
    JobKind.COUNT: "ct",
    JobKind.QUERY: "qy",
    JobKind.LOOKUP: "lk",
    JobKind.EXEC: "ex",
}


#: Settings that would bound every trial of `tune`.
_UNBOUND = {"load.in_flight_requests_max": 0, "load.batch_rows_max": 0}


@dataclass(frozen=True, kw_only=True)
class Services:
    """What a job's command has running and open. Broker and worker are set if they are embedded."""

    job_id: str
    loaded: Loaded
    settings: Settings  #: with the embedded broker, if there is one
    for_workers: Loaded  #: the settings of its workers, with the same broker
    opening: Opening
    broker: EmbeddedBroker | None = None
    worker: EmbeddedWorker | None = None


class Start(Protocol):
    """What starts the services of a command's job; they end with the block."""

    def __call__(self, *, own_workers: bool = False) -> AbstractContextManager[Services]:
        """`own_workers`: the command starts workers even if a broker is configured."""


def starter(options: JobOptions, kind: JobKind) -> Start:
    """Return what starts the services of a job with these options."""

    @contextmanager
    def start(*, own_workers: bool = False) -> Iterator[Services]:
        with ExitStack() as stack:
            if isinstance(options, LoadOptions):
                yield start_load(stack, options)
            else:
                yield start_job(stack, options, kind, own_workers=own_workers)

    return start


def start_load(stack: ExitStack, options: LoadOptions) -> Services:
    """Read the settings and start what a load or a verification needs; `stack` ends it.

    Raises as `settle` does.
    """
    loaded = settle(load_flags(options), options.config_file)
    refuse_embedded_detach(loaded, options)
    refuse_workers_of_others(loaded, options)
    job_id = options.job_id or f"{PREFIXES[options.kind]}-{secrets.token_hex(3)}"
    for_workers, broker, worker = loaded, None, None
    if not options.dry_run:
        for_workers, broker = enter_broker(stack, loaded)
        if broker is not None:
            worker = stack.enter_context(own_worker(for_workers, job_id))
    return _opened(stack, job_id, loaded, for_workers, broker, worker)


def start_job(
    stack: ExitStack, options: JobOptions, kind: JobKind, *, own_workers: bool = False
) -> Services:
    """Read the settings and start what an `unload`, `count`, `query`, `lookup` or `exec` needs;
    `stack` ends it. `own_workers`: the command starts workers even if a broker is configured.
    """
    flags = connection_flags(options)
    flags |= {
        "cluster.consistency": options.consistency,
        "worker.concurrency": options.workers,
    }
    loaded = settle(flags, options.config_file)
    refuse_embedded_detach(loaded, options)
    if own_workers:
        refuse_stdout_detach(options)
    # Only a prepared exec shows whether it returns rows, so `-o -` is checked later.
    elif not (isinstance(options, ExecOptions) and options.output == "-"):
        refuse_workers_of_others(loaded, options)
    job_id = options.job_id or f"{PREFIXES[kind]}-{secrets.token_hex(3)}"
    for_workers, broker, worker = loaded, None, None
    if not options.dry_run:
        for_workers, broker = enter_broker(stack, loaded)
        if broker is not None or own_workers:
            worker = stack.enter_context(own_worker(for_workers, job_id))
    return _opened(stack, job_id, loaded, for_workers, broker, worker)


def start_tune(stack: ExitStack, options: TuneOptions, run: str) -> Services:
    """Read the settings and start what `tune` needs, except its workers; `stack` ends it.

    `Services.loaded` has the settings as they are. Workers get them without bounds on requests: a
    trial has its own.
    """
    flags = connection_flags(options) | {
        "cluster.consistency": options.consistency,
        "load.max_errors": options.max_errors,
    }
    loaded = settle(flags, options.config_file)
    for_workers, broker = enter_broker(stack, loaded.with_flags(_UNBOUND))
    return _opened(stack, f"{LOAD_PREFIX}-tune-{run}", loaded, for_workers, broker, None)


def own_worker(loaded: Loaded, job_id: str) -> EmbeddedWorker:
    """Return a worker for one job; it is not started yet. `loaded`: its settings, with the embedded
    broker."""
    count = loaded.settings.worker.concurrency or default_workers()
    return EmbeddedWorker(loaded, count, job_id)


def _opened(
    stack: ExitStack,
    job_id: str,
    loaded: Loaded,
    for_workers: Loaded,
    broker: EmbeddedBroker | None,
    worker: EmbeddedWorker | None,
) -> Services:
    from producer.services.cluster import (
        Opening,  # the driver: imported once the workers are starting
    )

    opening = stack.enter_context(Opening(loaded.settings))
    return Services(
        job_id=job_id,
        loaded=loaded,
        settings=loaded.settings.model_copy(update={"broker": for_workers.settings.broker}),
        for_workers=for_workers,
        opening=opening,
        broker=broker,
        worker=worker,
    )
