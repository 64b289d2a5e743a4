"""The kinds of job, told apart by the `kind` in their spec."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TypeAlias

from ringhaul.load.kinds import LOAD_KINDS

if TYPE_CHECKING:
    from ringhaul.load.job import LoadJob
    from ringhaul.read.ask import AskJob
    from ringhaul.read.job import ReadJob

Job: TypeAlias = "LoadJob | ReadJob | AskJob"


def job_of(spec_json: str) -> LoadJob | ReadJob | AskJob:
    """The job that a spec describes. Raises ValueError, TypeError or KeyError for a strange one."""
    # Only what the kind needs: the end of a command waits for it.
    spec = json.loads(spec_json)
    if spec["kind"] in LOAD_KINDS:
        from ringhaul.load.job import LoadJob

        return LoadJob.from_json(spec)
    if spec["kind"] in ("lookup", "exec"):
        from ringhaul.read.ask import AskJob

        return AskJob.from_json(spec)
    from ringhaul.read.job import ReadJob

    return ReadJob.from_json(spec)
