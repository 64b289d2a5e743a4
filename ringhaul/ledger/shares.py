"""Divide the workers among running jobs: how many units each may have out at once. Pure.

The queue is first in, first out, so a job's share of the workers equals its share of the units that
are queued or being worked on. A share is therefore a window on the job's units (see `issue.lua`).
Windows are kept small: a new job waits only for the units that are in the queue already.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapify, heappop, heapreplace
from typing import NamedTuple

#: The weight of each priority.
WEIGHTS: Mapping[str, int] = {"high": 4, "normal": 2, "low": 1}
NORMAL = "normal"


class Want(NamedTuple):
    """The demand of one job."""

    weight: int
    units: int  #: Units that it could have out now.


def share_out(places: int, wants: Mapping[str, Want]) -> dict[str, int]:
    """Divide `places` among jobs by weight; what one cannot use goes to the others.

    Each job with a unit gets at least 1, even if there are more jobs than places.
    """
    given = {job: min(1, want.units) for job, want in wants.items()}
    # The next place goes to the job with the smallest share for its weight.
    line = [(2 / want.weight, job) for job, want in wants.items() if want.units > 1]
    heapify(line)
    for _ in range(places - sum(given.values())):
        if not line:
            break
        _, job = line[0]
        given[job] += 1
        if given[job] < wants[job].units:
            heapreplace(line, ((given[job] + 1) / wants[job].weight, job))
        else:
            heappop(line)
    return given
