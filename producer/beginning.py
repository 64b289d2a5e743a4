"""What a load needs that takes long to come up, begun before all else: workers and a session.

While they come up, the command imports what it needs itself, and plans the job.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from config.settings import Loaded
from producer.embedded import (
    EmbeddedBroker,
    EmbeddedWorker,
    default_workers,
    is_embedded,
    refuse_embedded_detach,
)
from producer.options import connection_flags, settle
from ringhaul.errors import UsageError

if TYPE_CHECKING:
    from producer.opening import Opening

#: Flags of `load` that are settings.
SETTING_FLAGS = {
    "consistency": "cluster.consistency",
    "strategy": "load.strategy",
    "max_errors": "load.max_errors",
    "unit_size": "load.unit_bytes",
    "workers": "worker.concurrency",
}


@dataclass(frozen=True, kw_only=True)
class Beginning:
    """What was begun. The broker and the worker are there when they are embedded."""

    job_id: str
    loaded: Loaded
    opening: Opening
    broker: EmbeddedBroker | None = None
    worker: EmbeddedWorker | None = None


def begin_load(stack: ExitStack, options: Mapping[str, Any]) -> Beginning:
    """Read the settings and begin; `stack` ends what was begun. Raises as `settle` does."""
    flags = connection_flags(options)
    flags |= {key: options[flag] for flag, key in SETTING_FLAGS.items()}
    loaded = settle(flags, options["config_file"])
    if options["profile_dir"] is not None:
        loaded = settle({**flags, **_profile_flags(loaded, options)}, options["config_file"])
    embedded = is_embedded(loaded)
    if options["detach"] and embedded:
        raise UsageError("--detach needs workers that stay: configure a broker and start some")
    refuse_embedded_detach(loaded, options)
    job_id = f"ld-{secrets.token_hex(3)}"
    broker = worker = None
    if embedded and not options["dry_run"]:
        if options["profile_dir"] is not None:
            _tell_profiles(stack, loaded, options)
        state_dir = loaded.settings.state_dir
        broker = stack.enter_context(EmbeddedBroker(state_dir))
        count = loaded.settings.worker.concurrency or default_workers()
        profiled = loaded.settings.worker.profile != "off"
        worker = stack.enter_context(EmbeddedWorker(state_dir, count, job_id, profiled=profiled))
    from producer.opening import Opening  # the driver: not before the workers are on their way

    opening = stack.enter_context(Opening(loaded.settings))
    return Beginning(job_id=job_id, loaded=loaded, opening=opening, broker=broker, worker=worker)


def _tell_profiles(stack: ExitStack, loaded: Loaded, options: Mapping[str, Any]) -> None:
    """Tell what the profiles say. Before the workers, to end after them: they write at their end.

    Raises `UsageError` where they cannot be made.
    """
    from producer.follow import Shown
    from producer.profiles import profiles_told

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
