"""Compute the closing report of a job of any kind from the ledger."""

from __future__ import annotations

from dataclasses import replace

from producer.report.given_up import given_up_lines
from producer.report.outcome import _REASON_CHARS_MAX, _UNREADABLE, Closing, _damaged_closing
from ringhaul.ledger.audit import JobDamaged
from ringhaul.ledger.kinds import LOAD_KINDS
from ringhaul.ledger.labels import KIND_LABEL
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.reading import JobStatus


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
        return _damaged_closing(error)
    except _UNREADABLE as error:
        reason = f"what it holds cannot be read ({type(error).__name__}: {error})"
        return _damaged_closing(JobDamaged(job_id, [reason[:_REASON_CHARS_MAX]]))


def _closing(ledger: Ledger, status: JobStatus, *, interrupted: bool) -> Closing:
    kind = status.labels.get(KIND_LABEL, "load")
    if kind in LOAD_KINDS:
        from producer.report.load_summary import load_closing

        return load_closing(ledger, status, interrupted=interrupted)
    if kind in ("lookup", "exec"):
        from producer.report.statement_summary import ask_closing

        return ask_closing(ledger, status, interrupted=interrupted)
    from producer.report.scan_summary import read_job_closing  # loads do not need it

    return read_job_closing(ledger, status, interrupted=interrupted)
