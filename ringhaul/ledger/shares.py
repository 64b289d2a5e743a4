"""How the jobs that run share the workers: each may have so many units out at once. Pure.

The queue is first in, first out, and a job's share of the workers is its share of what is in the
queue and being worked on. So a share is a window on the job's units (see `issue.lua`). Windows are
kept small: whoever comes new waits behind the units that are in the queue already, and behind no
others.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapify, heappop, heapreplace
from typing import NamedTuple

#: What a job's name for its priority weighs.
WEIGHTS: Mapping[str, int] = {"high": 4, "normal": 2, "low": 1}
NORMAL = "normal"


class Want(NamedTuple):
    """What one job asks for."""

    weight: int
    units: int  #: That it could have out now.


def share_out(places: int, wants: Mapping[str, Want]) -> dict[str, int]:
    """Divide `places` among jobs by their weights; what one cannot use the others get.

    Each job with a unit gets at least 1, even if there are more jobs than places.
    """
    given = {job: min(1, want.units) for job, want in wants.items()}
    # The next place goes to the job that has least for its weight.
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
