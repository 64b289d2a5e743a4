"""The job that a spec describes, of whichever kind."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TypeAlias

from ringhaul.ledger.kinds import JobKind

if TYPE_CHECKING:
    from ringhaul.records.job import LoadJob
    from ringhaul.scan.job import ReadJob
    from ringhaul.statements.job import StatementJob

#: All have `kind`, `repeatable`, `resumable`, `streams_rows`, `input`, `takes_error_limit` and
#: `label`, so that a job is followed, resumed and finished without a look at its kind.
Job: TypeAlias = "LoadJob | ReadJob | StatementJob"


def job_of(spec_json: str) -> Job:
    """Read a job's spec. Raises ValueError, TypeError or KeyError for a strange one."""
    # Import only what the kind needs: the end of a command waits for it.
    spec = json.loads(spec_json)
    kind = JobKind(spec["kind"])
    if kind.is_load:
        from ringhaul.records.job import LoadJob

        return LoadJob.from_json(spec)
    if kind.runs_statements:
        from ringhaul.statements.job import StatementJob

        return StatementJob.from_json(spec)
    from ringhaul.scan.job import ReadJob

    return ReadJob.from_json(spec)
