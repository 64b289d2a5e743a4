"""The job that a spec describes, of whichever kind."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TypeAlias, TypeGuard

from ringhaul.ledger.audit import JobDamaged
from ringhaul.ledger.formats import FORMAT_KEY, JOB_FORMAT, check_format
from ringhaul.ledger.kinds import JobKind
from ringhaul.ledger.reading import REASON_CHARS_MAX

if TYPE_CHECKING:
    from ringhaul.ledger.reading import Reader
    from ringhaul.records.job import LoadJob
    from ringhaul.scan.job import ReadJob
    from ringhaul.statements.job import StatementJob

#: Every job answers for itself: `labels`, `input`, `repeatable`, `resumable`, `streams_rows`,
#: `output_url`, `closing`, `transforms`, `takes_error_limit`, `label`, `lost_advice()` and
#: `once_advice()`. So a job is created, followed, resumed and finished without a look at its kind.
Job: TypeAlias = "LoadJob | ReadJob | StatementJob"


def is_load_job(job: Job) -> TypeGuard[LoadJob]:
    """Return whether this is a load or a verification."""
    return job.kind.is_load


def is_read_job(job: Job) -> TypeGuard[ReadJob]:
    """Return whether this is an unload, a count or a query."""
    return job.kind.scans


def is_statement_job(job: Job) -> TypeGuard[StatementJob]:
    """Return whether this is a lookup or an exec."""
    return job.kind.runs_statements


#: Errors of reading a spec that something else was written over.
_UNREADABLE = (ValueError, KeyError, IndexError, TypeError, AttributeError)


def spec_of(job: Job) -> str:
    """Return the spec of a job, for the ledger."""
    return json.dumps({FORMAT_KEY: JOB_FORMAT, **job.to_json()})


def read_job(ledger: Reader, job: str) -> Job:
    """Read a job from the ledger. Raises `JobMissing`; `JobDamaged` if its spec cannot be read;
    `OtherFormat` if only other versions of ringhaul can read it."""
    return job_of_spec(job, ledger.job_spec(job))


def job_of_spec(job: str, spec_json: str) -> Job:
    """Read the spec of `job`. Raises `JobDamaged` and `OtherFormat` as `read_job` does."""
    try:
        return job_of(spec_json)
    except _UNREADABLE as error:
        reason = f"its spec cannot be read ({type(error).__name__}: {error})"
        raise JobDamaged(job, [reason[:REASON_CHARS_MAX]]) from error


def job_of(spec_json: str) -> Job:
    """Read a job's spec. Raises `OtherFormat` for a spec of another version, and ValueError,
    TypeError or KeyError for a strange spec."""
    # Import only what the kind needs: the end of a command waits for it.
    spec = json.loads(spec_json)
    check_format(spec)
    kind = JobKind(spec["kind"])
    if kind.is_load:
        from ringhaul.records.job import LoadJob

        return LoadJob.from_json(spec)
    if kind.runs_statements:
        from ringhaul.statements.job import StatementJob

        return StatementJob.from_json(spec)
    from ringhaul.scan.job import ReadJob

    return ReadJob.from_json(spec)
