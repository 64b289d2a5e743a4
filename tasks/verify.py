"""The verify task: what is particular to units of a verification."""

from __future__ import annotations

import os
from typing import Any

from celery import Task

from tasks.application import app, process_settings
from tasks.base import UnitTask, attempt_token
from tasks.child import current_child
from tasks.names import TaskNames
from tasks.work import work


@app.task(name=TaskNames.VERIFY_UNIT, base=UnitTask, bind=True)
def verify_unit(self: Task, *, job: str, unit: int, epoch: int) -> dict[str, Any]:
    """Compare one unit, once. The answer is for Flower; the truth is in the ledger."""
    from tasks.verifying import run_verify  # takes long to import: not for workers that only load

    child = current_child(process_settings())
    token = attempt_token(self.request.id, self.request.hostname, os.getpid())
    return work(child, job, unit, epoch, token, run_verify)
