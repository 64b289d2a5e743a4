"""The Celery tasks, one for each kind of unit. Arguments are facts (job, unit, epoch), never data.

The code that runs a unit is imported with the first unit of its kind: reads and comparisons need
compiled kernels, which a worker that only loads does without.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from celery import Task

from tasks.application import app
from tasks.base import UnitTask, attempt_token
from tasks.child.load import run_load
from tasks.child.process import current_child
from tasks.child.unit import Attempt, Done, work
from tasks.command_line import VALUES_PREFIX, spelled_with
from tasks.names import TaskNames
from tasks.settings import process_settings
from tasks.tracing import unit_trace


@app.task(name=TaskNames.LOAD_UNIT, base=UnitTask, bind=True)
def load_unit(self: Task, *, job: str, unit: int, epoch: int) -> dict[str, Any]:
    """Load one unit, once. The return value is for Flower; the ledger holds the result."""
    return _work(self, job, unit, epoch, run_load)


@app.task(name=TaskNames.VERIFY_UNIT, base=UnitTask, bind=True)
def verify_unit(self: Task, *, job: str, unit: int, epoch: int) -> dict[str, Any]:
    """Compare one unit of records with the table, once."""
    from tasks.child.verify import run_verify

    return _work(self, job, unit, epoch, run_verify)


@app.task(name=TaskNames.READ_UNIT, base=UnitTask, bind=True)
def read_unit(self: Task, *, job: str, unit: int, epoch: int) -> dict[str, Any]:
    """Read one unit of token ranges (unload, count, query), once."""
    from tasks.child.scan import run_read

    return _work(self, job, unit, epoch, run_read)


@app.task(name=TaskNames.ASK_UNIT, base=UnitTask, bind=True)
def statement_unit(self: Task, *, job: str, unit: int, epoch: int) -> dict[str, Any]:
    """Run the statements of one unit (lookup, exec), once."""
    from tasks.child.statements import run_statements

    with spelled_with(VALUES_PREFIX):
        return _work(self, job, unit, epoch, run_statements)


def _work(
    task: Task, job: str, unit: int, epoch: int, run: Callable[[Attempt], Done]
) -> dict[str, Any]:
    child = current_child(process_settings())
    token = attempt_token(task.request.id, task.request.hostname, os.getpid())
    with unit_trace(child.settings, task.request, job, unit) as trace:
        result = work(child, job, unit, epoch, token, run)
        trace.ended(result)
    return result
