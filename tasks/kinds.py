"""The kinds of job, told apart by the `kind` in their spec."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TypeAlias

from ringhaul.load.job import LoadJob

if TYPE_CHECKING:
    from ringhaul.read.job import ReadJob

Job: TypeAlias = "LoadJob | ReadJob"


def job_of(spec_json: str) -> LoadJob | ReadJob:
    """The job that a spec describes. Raises ValueError, TypeError or KeyError for a strange one."""
    spec = json.loads(spec_json)
    if spec["kind"] == "load":
        return LoadJob.from_json(spec)
    from ringhaul.read.job import ReadJob  # numba and sqlglot: not for workers that only load

    return ReadJob.from_json(spec)
