"""What a job needs that takes long to come up, begun before all else: workers and a session.

While they come up, the command imports what it needs itself, and plans the job.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from config.settings import Loaded
from producer.request.conflicts import (
    refuse_embedded_detach,
    refuse_stdout_detach,
    refuse_workers_of_others,
)
from producer.request.settings import LOAD_FLAGS, connection_flags, is_embedded, settle
from producer.services.embedded import LOAD_PREFIX, EmbeddedBroker, EmbeddedWorker, default_workers
from ringhaul.errors import UsageError

if TYPE_CHECKING:
    from producer.services.cluster import Opening

#: Beginning of a job's id, by its kind.
PREFIXES = {
    "load": LOAD_PREFIX,
    **{"verify": "vf", "unload": "ul", "count": "ct", "query": "qy", "lookup": "lk", "exec": "ex"},
}


@dataclass(frozen=True, kw_only=True)
class Beginning:
    """What was begun. The broker and the worker are there when they are embedded."""

    job_id: str
    loaded: Loaded
    opening: Opening
    broker: EmbeddedBroker | None = None
    worker: EmbeddedWorker | None = None


def begin_load(stack: ExitStack, options: Mapping[str, Any], kind: str = "load") -> Beginning:
    """Read the settings and begin; `stack` ends what was begun. Raises as `settle` does.

    `kind`: load or verify.
    """
    flags = connection_flags(options)
    flags |= {key: options[flag] for flag, key in LOAD_FLAGS.items()}
    loaded = settle(flags, options["config_file"])
    if options["profile_dir"] is not None:
        loaded = settle({**flags, **_profile_flags(loaded, options)}, options["config_file"])
    embedded = is_embedded(loaded)
    refuse_embedded_detach(loaded, options)
    refuse_workers_of_others(loaded, options)
    job_id = options["job_id"] or f"{PREFIXES[kind]}-{secrets.token_hex(3)}"
    broker = worker = None
    if embedded and not options["dry_run"]:
        if options["profile_dir"] is not None:
            _tell_profiles(stack, loaded, options)
        broker = stack.enter_context(EmbeddedBroker(loaded.settings.state_dir))
        worker = stack.enter_context(own_worker(loaded, job_id))
    return _opened(stack, job_id, loaded, broker, worker)


def begin_read(
    stack: ExitStack, options: Mapping[str, Any], kind: str, *, own_workers: bool = False
) -> Beginning:
    """The same for `unload`, `count`, `query`, `lookup` and `exec`, which `kind` is one of.

    `own_workers`: this command's own do the work, even where there is a broker.
    """
    flags = connection_flags(options)
    flags |= {
        "cluster.consistency": options["consistency"],
        "worker.concurrency": options["workers"],
    }
    loaded = settle(flags, options["config_file"])
    embedded = is_embedded(loaded)
    refuse_embedded_detach(loaded, options)
    if own_workers:
        refuse_stdout_detach(options)
    # Of an exec to standard output nobody knows yet whether it has answers.
    elif not (kind == "exec" and options["output"] == "-"):
        refuse_workers_of_others(loaded, options)
    job_id = options["job_id"] or f"{PREFIXES[kind]}-{secrets.token_hex(3)}"
    broker = worker = None
    if not options.get("dry_run"):
        if embedded:
            broker = stack.enter_context(EmbeddedBroker(loaded.settings.state_dir))
        if embedded or own_workers:
            worker = stack.enter_context(own_worker(loaded, job_id))
    return _opened(stack, job_id, loaded, broker, worker)


def own_worker(loaded: Loaded, job_id: str) -> EmbeddedWorker:
    """A worker for one job, which is not started yet."""
    settings = loaded.settings
    count = settings.worker.concurrency or default_workers()
    profiled = settings.worker.profile != "off"
    return EmbeddedWorker(settings.state_dir, count, job_id, profiled=profiled)


def _opened(
    stack: ExitStack,
    job_id: str,
    loaded: Loaded,
    broker: EmbeddedBroker | None,
    worker: EmbeddedWorker | None,
) -> Beginning:
    from producer.services.cluster import (
        Opening,  # the driver: not before the workers are on their way
    )

    opening = stack.enter_context(Opening(loaded.settings))
    return Beginning(job_id=job_id, loaded=loaded, opening=opening, broker=broker, worker=worker)


def _tell_profiles(stack: ExitStack, loaded: Loaded, options: Mapping[str, Any]) -> None:
    """Tell what the profiles say. Before the workers, to end after them: they write at their end.

    Raises `UsageError` where they cannot be made.
    """
    from producer.report.reporter import Shown
    from producer.services.profiles import profiles_told

    stack.enter_context(profiles_told(loaded.settings, Shown.from_options(options).say))


def _profile_flags(loaded: Loaded, options: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that --profile DIR stands for. Raises `UsageError` where it cannot be had."""
    if not is_embedded(loaded):
        raise UsageError(
            "--profile looks at embedded workers, and a broker is configured: start a worker with "
            "ringhaul worker --profile cprofile instead"
        )
    kind = loaded.settings.worker.profile
    return {
        "worker.profile": "cprofile" if kind == "off" else kind,
        "worker.profile_dir": options["profile_dir"].absolute(),
    }
