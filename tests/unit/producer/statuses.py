"""Job statuses made by hand."""

from __future__ import annotations

from typing import Any

from ringhaul.ledger.job_status import JobStatus, Live
from ringhaul.ledger.states import JobState

#: When every job here started.
STARTED_MS = 1_700_000_000_000


def status(at_s: float = 0.0, **figures: Any) -> JobStatus:
    """A running, sealed job of 8 units, none done, `at_s` seconds after its first claim."""
    return JobStatus(
        **{
            "job": "ld-7f3a9c",
            "state": JobState.RUNNING,
            "epoch": 1,
            "sealed": True,
            "units": 8,
            "pending": 8,
            "done": 0,
            "quarantined": 0,
            "issued": 0,
            "leased": 0,
            "suspects": 0,
            "totals": {},
            "live": Live(),
            "created_ms": STARTED_MS - 500,
            "started_ms": STARTED_MS,
            "finished_ms": None,
            "now_ms": STARTED_MS + round(at_s * 1000),
            "last_error": None,
            "labels": {},
        }
        | figures
    )
