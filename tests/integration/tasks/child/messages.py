"""Messages about units of a load, handled in the test's process as its task does."""

from __future__ import annotations

from typing import Any

from tasks.child.load import run_load
from tasks.child.process import Child
from tasks.child.unit import work as work_on

JOB = "ld-000001"
LEASE_MS = 60_000


def work(child: Child, job: str, unit: int, epoch: int, token: str) -> dict[str, Any]:
    """Handle a message as the load task does."""
    return work_on(child, job, unit, epoch, token, run_load)
