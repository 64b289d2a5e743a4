"""Base class of all unit tasks: reports a lost process to the ledger at once."""

from __future__ import annotations

import logging
from typing import Any

from billiard.einfo import ExceptionWithTraceback
from billiard.exceptions import WorkerLostError
from celery import Task
from celery.worker.request import Request

from config.secrets import mask
from tasks.connect import PARENT_PATIENCE_MS, open_ledger
from tasks.parent.lost import LOST, LostAttempt
from tasks.parent.trails import TRAILS
from tasks.settings import process_settings

log = logging.getLogger(__name__)


def attempt_token(task_id: str, hostname: str, pid: int) -> str:
    """Return the token of one attempt. The same message in another process is a new attempt."""
    return f"{task_id}@{hostname}:{pid}"


class UnitRequest(Request):  # type: ignore[misc]
    """A unit's request as the worker's parent process sees it."""

    def send_event(self, type: str, **fields: Any) -> None:
        """Send an event with its secrets masked: it may carry error messages and tracebacks, which
        anyone with access to Redis or Flower can read."""
        shown = {
            name: mask(value) if isinstance(value, str) else value for name, value in fields.items()
        }
        super().send_event(type, **shown)

    def on_failure(
        self, exc_info: Any, send_failed_event: bool = True, return_ok: bool = False
    ) -> None:
        """End the unit's lease now if the process that ran it has died.

        Otherwise the unit waits until its lease runs out. Ending the lease is only a short cut, but
        where the process was in its unit is known only here.
        """
        error = exc_info.exception
        if isinstance(error, ExceptionWithTraceback):
            error = error.exc
        if isinstance(error, WorkerLostError) and self.worker_pid:
            token = attempt_token(self.id, self.hostname, self.worker_pid)
            facts = self.kwargs
            try:
                loss = TRAILS.lost(self.worker_pid)
                lost = LostAttempt(facts["job"], facts["unit"], facts["epoch"], token, loss)
                LOST.report(open_ledger(process_settings(), PARENT_PATIENCE_MS), lost)
            except Exception:
                extra = {"job": facts.get("job"), "unit": facts.get("unit")}
                log.exception("could not report a lost process to the ledger", extra=extra)
        super().on_failure(exc_info, send_failed_event, return_ok)


class UnitTask(Task):  # type: ignore[misc]
    """Base class: arguments are facts (job, unit, epoch), never data or secrets."""

    Request = "tasks.base:UnitRequest"
