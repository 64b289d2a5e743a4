"""Jobs as rows of a list, for `ringhaul status --json` and the pages. Pure."""

from __future__ import annotations

from typing import Any

from producer.figures.snapshot import Snapshot
from ringhaul.ledger.job_status import JobStatus
from ringhaul.schedule.runs import schedule_of


def job_row(status: JobStatus, snapshot: Snapshot) -> dict[str, Any]:
    """Return a job's row for programs. Fields are only ever added.

    Of a job that Redis lost parts of, no figure is right: they are None, and `damage` says why.
    """
    whole = not status.damage
    return {
        "job": status.job,
        "kind": status.labels.get("kind"),
        "table": status.labels.get("table"),
        "state": status.state_name,
        "condition": snapshot.condition,
        "standing": snapshot.standing,
        "priority": status.priority,
        "done": snapshot.share if whole else None,
        "rows": snapshot.rows if whole else None,
        "rejected": snapshot.rejected if whole else None,
        "created_ms": status.created_ms,
        "finished_ms": status.finished_ms,
        "started_ms": status.started_ms,
        "units": status.units if whole else None,
        "units_done": status.done if whole else None,
        "rows_per_s": snapshot.rows_per_s if whole else None,
        "eta_s": snapshot.eta_s if whole else None,
        "schedule": schedule_of(status.job) or None,
        **({"damage": list(status.damage)} if status.damage else {}),
    }
