"""The plan of a load or a verification around its job: what is said of it, and its notes."""

from __future__ import annotations

from producer.notes import warnings
from producer.plan.dialect_warnings import dialect_warnings
from producer.plan.field_notes import field_notes
from producer.plan.heads import Heads
from producer.plan.plan import Plan
from producer.request.load import LoadDraft
from producer.text import bytes_text, count_text
from ringhaul.ledger.kinds import JobKind
from ringhaul.ledger.limits import ErrorLimit
from ringhaul.records.job import LoadJob


def load_plan(request: LoadDraft, heads: Heads, job: LoadJob, workers: str) -> Plan:
    """Return the plan for a job that `plan_load` returned. `workers`: who will do it, as a text.

    Looks at the beginning of the first file of text.
    """
    verb = "load ->" if job.kind is JobKind.LOAD else job.kind
    return Plan(
        job=job,
        target=job.table.name,
        headline=f"{verb} {job.table.name}   {count_text(len(job.sources), 'file')}"
        f"  {bytes_text(job.total_bytes)}   {workers}",
        notes=[
            *warnings(dialect_warnings(request, heads, job.sources, job.table)),
            *field_notes(request, job),
        ],
        error_limit=ErrorLimit.parse(request.max_errors),
    )
