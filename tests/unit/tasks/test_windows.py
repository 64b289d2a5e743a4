"""How many units of each job may be published: by the workers of its queue and its limits."""

from __future__ import annotations

from ringhaul.ledger.fleet import Fleet, OpenJob
from ringhaul.ledger.pace import NO_LIMITS, Limits
from ringhaul.ledger.workers import Worker
from tasks.publish import PUBLISHED_PER_SLOT, fleet_windows

LOAD = "ringhaul.load"


def job(
    units: int = 1000, *, queue: str = LOAD, priority: str = "normal", limits: Limits = NO_LIMITS
) -> OpenJob:
    return OpenJob(queue, priority, units, limits)


def fleet(jobs: dict[str, OpenJob], *queues: str) -> Fleet:
    """A fleet with one worker of 3 slots for each named queue."""
    return Fleet([Worker(f"h{i}", i, 3, (queue,)) for i, queue in enumerate(queues)], jobs)


def test_jobs_of_a_queue_share_its_workers() -> None:
    jobs = {"a": job(), "b": job(), "own": job(queue="ringhaul.load.own")}
    found = fleet_windows(fleet(jobs, LOAD, LOAD, "ringhaul.load.own"))
    assert PUBLISHED_PER_SLOT == 2
    assert found == {"a": 6, "b": 6, "own": 6}


def test_a_job_without_a_worker_may_publish_its_first_units() -> None:
    assert fleet_windows(fleet({"a": job()})) == {"a": PUBLISHED_PER_SLOT}


def test_no_more_units_are_published_than_may_be_in_flight() -> None:
    jobs = {"a": job(limits=Limits(in_flight=2)), "b": job(priority="unheard-of")}
    assert fleet_windows(fleet(jobs, LOAD, LOAD)) == {"a": 2, "b": 10}
