"""The keeper: each worker's own timer that says the host is alive and sweeps the jobs.

It runs in the worker's parent process, on Celery's timer: no thread (children fork from this
process) and nothing that could queue behind units. Any number of keepers may sweep at once.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
from typing import Any

from celery import bootsteps

from ringhaul.errors import LedgerUnavailable
from ringhaul.ledger.sweep import sweep_running
from ringhaul.ledger.workers import Worker, Workers
from tasks.connect import PARENT_PATIENCE_MS, open_ledger
from tasks.publish import publish_units, window

log = logging.getLogger(__name__)

#: Heartbeats may be missed this many times before a host counts as gone.
MISSED_MAX = 4


class Keeper(bootsteps.StartStopStep):  # type: ignore[misc]
    """Boot step of a worker."""

    requires = {"celery.worker.components:Timer"}  # noqa: RUF012 - Celery reads a class attribute

    def __init__(self, worker: Any, **options: Any) -> None:
        self._entry: Any = None
        super().__init__(worker, **options)

    def start(self, worker: Any) -> None:
        from tasks.application import process_settings  # the application lists this step

        settings = process_settings()
        self._every_s = settings.worker.sweep_s
        self._ledger = open_ledger(settings, PARENT_PATIENCE_MS)
        self._me = Worker(socket.gethostname(), os.getpid(), worker.concurrency)
        self._keep()
        self._entry = worker.timer.call_repeatedly(self._every_s, self._keep)

    def stop(self, worker: Any) -> None:
        if self._entry is not None:
            self._entry.cancel()
            self._entry = None
            with contextlib.suppress(LedgerUnavailable):
                Workers(self._ledger.caller).leave(self._me)

    terminate = stop

    def _keep(self) -> None:
        """One beat. Whatever goes wrong, the timer goes on: Redis may be back at the next."""
        try:
            ttl_ms = int(self._every_s * MISSED_MAX * 1000)
            Workers(self._ledger.caller).heartbeat(self._me, ttl_ms)
            sweep_running(self._ledger, window(self._ledger), publish_units)
        except Exception as error:
            log.warning("the ledger could not be swept: %s", error)
