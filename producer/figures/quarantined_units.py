"""Describe quarantined units: where their processes were when they were lost."""

from __future__ import annotations

from collections.abc import Mapping

from ringhaul.ledger.job_status import JobStatus
from ringhaul.ledger.ledger import Ledger

#: How many units are listed one by one.
UNITS_SHOWN = 5


def given_up_lines(ledger: Ledger, status: JobStatus) -> list[str]:
    """Return a line for each of the first quarantined units, and hints on what to do."""
    return lines_of(ledger.quarantined_units(status.job)) if status.quarantined else []


def lines_of(reasons: Mapping[int, str]) -> list[str]:
    """Return the lines for `reasons`: why each unit was quarantined, by unit, from the ledger."""
    lines = []
    known = [
        (unit, reason.removeprefix("crashed: "))
        for unit, reason in reasons.items()
        if reason.startswith("crashed: ")
    ]
    for unit, reason in known[:UNITS_SHOWN]:
        lines.append(f" unit {unit}: {reason}")
    if len(known) > UNITS_SHOWN:
        lines.append(f" and {len(known) - UNITS_SHOWN:,} more units")
    if any("no progress" in reason for _, reason in known):
        lines.append(
            " No progress: look for a value that takes too long, or a transform that hangs"
        )
    if any("was killed" in reason for _, reason in known):
        lines.append(" Killed: often out of memory; the kernel's log of that host says so")
    return lines
