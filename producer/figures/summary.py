"""Compute the closing report of a job of any kind from the ledger."""

from __future__ import annotations

from dataclasses import replace

from producer.figures.outcome import UNREADABLE, Closing, damaged_closing
from producer.figures.quarantined_units import given_up_lines
from ringhaul.ledger.audit import JobDamaged
from ringhaul.ledger.job_status import JobStatus
from ringhaul.ledger.kinds import JobKind
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.reading import REASON_CHARS_MAX


def read_closing(ledger: Ledger, job_id: str, *, interrupted: bool = False) -> Closing:
    """Compute the closing report. `interrupted`: the job was cancelled by Ctrl-C in this command.

    If the ledger lost part of the job, the report says only that, since no count would be right.
    """
    try:
        ledger.check(job_id)
        status = ledger.status(job_id)
        closing = _closing(ledger, status, interrupted=interrupted)
        return replace(closing, verdict=[*closing.verdict, *given_up_lines(ledger, status)])
    except JobDamaged as error:
        return damaged_closing(error)
    except UNREADABLE as error:
        reason = f"what it holds cannot be read ({type(error).__name__}: {error})"
        return damaged_closing(JobDamaged(job_id, [reason[:REASON_CHARS_MAX]]))


def _closing(ledger: Ledger, status: JobStatus, *, interrupted: bool) -> Closing:
    kind = JobKind.of_labels(status.labels)
    if kind.is_load:
        from producer.figures.load_summary import load_closing

        return load_closing(ledger, status, interrupted=interrupted)
    if kind.runs_statements:
        from producer.figures.statement_summary import statement_closing

        return statement_closing(ledger, status, interrupted=interrupted)
    from producer.figures.scan_summary import scan_closing  # what loads do not need to import

    return scan_closing(ledger, status, interrupted=interrupted)
