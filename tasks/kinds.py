"""The kinds of job, distinguished by the `kind` in their spec."""

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
    """Return the job that a spec describes. Raises ValueError, TypeError, KeyError if malformed."""
    # Import only what the kind needs: it adds to the run time of a command.
    spec = json.loads(spec_json)
    if spec["kind"] in LOAD_KINDS:
        from ringhaul.records.job import LoadJob

        return LoadJob.from_json(spec)
    if spec["kind"] in ("lookup", "exec"):
        from ringhaul.statements.job import AskJob

        return AskJob.from_json(spec)
    from ringhaul.scan.job import ReadJob

    return ReadJob.from_json(spec)
