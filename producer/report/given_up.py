"""Units that were given up, in words: where their processes were when they were lost."""

from __future__ import annotations

from collections.abc import Mapping

from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.reading import JobStatus

#: Lines about single units.
UNITS_SHOWN = 5


def given_up_lines(ledger: Ledger, status: JobStatus) -> list[str]:
    """One line for each of the first units that were given up, and what to do about them."""
    return lines_of(ledger.bad_units(status.job)) if status.bad else []


def lines_of(reasons: Mapping[int, str]) -> list[str]:
    """`reasons`: why each unit was given up, as the ledger has it."""
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
