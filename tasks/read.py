"""The read task: what is particular to units of unload, count and query."""

from __future__ import annotations

import os
from typing import Any

from celery import Task

from tasks.application import app, process_settings
from tasks.base import UnitTask, attempt_token
from tasks.child import current_child
from tasks.names import TaskNames
from tasks.work import work


@app.task(name=TaskNames.READ_UNIT, base=UnitTask, bind=True)
def read_unit(self: Task, *, job: str, unit: int, epoch: int) -> dict[str, Any]:
    """Read one unit, once. The answer is for Flower; the truth is in the ledger."""
    from tasks.reading import run_read  # takes long to import: not for workers that only load

    child = current_child(process_settings())
    token = attempt_token(self.request.id, self.request.hostname, os.getpid())
    return work(child, job, unit, epoch, token, run_read)
