"""Which of Celery's pools can run units, and why the others cannot."""

from __future__ import annotations

from celery.concurrency import ALIASES

from ringhaul.errors import UsageError

#: Celery's names of pools that work.
POOLS = ("prefork", "solo")
#: Names that Celery also knows -> why units cannot run there.
_REFUSED = {
    "threads": (
        "a thread cannot be killed when a record hangs it, threads wait for each other wherever "
        "Python runs, and a process's connections and their windows serve one unit at a time"
    ),
    "gevent": (
        "converting rows never gives way to other green threads, so they would take turns on one "
        "core, and the driver's event loop does not run on gevent's sockets"
    ),
    "eventlet": (
        "converting rows never gives way to other green threads, so they would take turns on one "
        "core, and the driver's event loop does not run on eventlet's sockets"
    ),
}
_SAME = {"processes": "prefork"}


def pool_name(implementation: object) -> str:
    """Return Celery's name of a pool, given by its name or its class."""
    if isinstance(implementation, type):
        path = f"{implementation.__module__}:{implementation.__qualname__}"
        return next((name for name, of in ALIASES.items() if of == path), path)
    return str(implementation or "prefork")


def check_pool(name: str) -> str:
    """Return the name of a pool that can run units. Raises `UsageError` with the reason."""
    name = _SAME.get(name, name)
    if name in POOLS:
        return name
    why = _REFUSED.get(name, "it is not known how units would run there")
    raise UsageError(
        f"--pool {name}: {why}. Use prefork (the default; -c sets its processes), or solo for one "
        "unit at a time in the worker's own process. A process has hundreds of requests on the way "
        "to each node anyway, and more if the nodes are far (docs/how-to/distance.md)"
    )
