"""The kinds of job, told apart by the `kind` in their spec."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TypeAlias

from ringhaul.ledger.kinds import LOAD_KINDS

if TYPE_CHECKING:
    from ringhaul.records.job import LoadJob
    from ringhaul.scan.job import ReadJob
    from ringhaul.statements.job import AskJob

Job: TypeAlias = "LoadJob | ReadJob | AskJob"


def job_of(spec_json: str) -> LoadJob | ReadJob | AskJob:
    """The job that a spec describes. Raises ValueError, TypeError or KeyError for a strange one."""
    # Only what the kind needs: the end of a command waits for it.
    spec = json.loads(spec_json)
    if spec["kind"] in LOAD_KINDS:
        from ringhaul.records.job import LoadJob

        return LoadJob.from_json(spec)
    if spec["kind"] in ("lookup", "exec"):
        from ringhaul.statements.job import AskJob

        return AskJob.from_json(spec)
    from ringhaul.scan.job import ReadJob

    return ReadJob.from_json(spec)
