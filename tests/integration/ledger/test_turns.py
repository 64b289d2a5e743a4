"""How many units a job with a rate limit has out: as many as reach the limit, and no more."""

from __future__ import annotations

import pytest
import redis

from ringhaul.ledger import keys, rate
from ringhaul.ledger.answers import Claimed, Refusal
from ringhaul.ledger.fleet import OpenJob, look_at_fleet, look_at_slots
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.pace import Limits, Pace
from tests.integration.ledger.conftest import Clock, new_job

PER_S = 1000
DRAWN = 100  # a tenth of a second's worth, as a unit draws
LEASE_MS = 60_000


def claim(ledger: Ledger, job: str, unit: int) -> Claimed | Refusal:
    return ledger.claim(job, unit, 1, f"t{unit}", LEASE_MS)


def rated_job(ledger: Ledger, units: int, running: int) -> str:
    """A job of which some units run, under a limit on rows."""
    job = new_job(ledger, units)
    assert len(ledger.issue(job, units).units) == units
    for unit in range(running):
        assert isinstance(claim(ledger, job, unit), Claimed)
    ledger.throttle(job, Pace(limits=Limits(rows_per_s=PER_S)))
    return job


def work(ledger: Ledger, clock: Clock, job: str, takers: int, *, work_ms: int) -> None:
    """Let units draw for three seconds, each as soon as it has waited and worked."""
    began_ms = clock.now_ms
    next_ms = dict.fromkeys(range(takers), began_ms)
    while clock.now_ms < began_ms + 3000:
        taker = min(next_ms, key=next_ms.__getitem__)
        clock.advance(max(0, next_ms[taker] - clock.now_ms))
        draws = [rate.Draw("rows", DRAWN, PER_S, PER_S // 2)]
        (wait_ms,) = rate.take(ledger.caller, job, draws)
        next_ms[taker] = clock.now_ms + wait_ms + work_ms


def open_job(ledger: Ledger, job: str) -> OpenJob:
    found = look_at_fleet(ledger.caller).jobs[job]
    assert look_at_slots(ledger.caller).jobs[job] == found
    return found


@pytest.mark.parametrize(
    ("takers", "work_ms", "held", "useful"),
    [
        (1, 2, True, 1),  # one is enough
        (4, 2, True, 1),  # three of four only wait
        (2, 150, True, 3),  # both are needed
        (3, 220, True, 4),  # the third is needed for a part of the time
        (4, 150, True, 3),
        (1, 150, False, 2),  # one alone is too slow: try with two
        (3, 500, False, 6),
    ],
)
def test_units_that_would_only_wait_are_not_useful(
    clocked: Ledger, clock: Clock, takers: int, work_ms: int, held: bool, useful: int
) -> None:
    job = rated_job(clocked, 20, takers)
    work(clocked, clock, job, takers, work_ms=work_ms)
    found = open_job(clocked, job)
    assert (found.running, found.held, found.useful) == (takers, held, useful), found


def test_a_job_begins_with_one_unit_and_without_a_limit_uses_all(clocked: Ledger) -> None:
    rated, free = rated_job(clocked, 20, 0), new_job(clocked, 20)
    assert open_job(clocked, rated).useful == 1
    assert open_job(clocked, free).useful == 20
    clocked.throttle(rated, Pace())
    assert open_job(clocked, rated).useful == 20


def test_a_unit_that_would_only_wait_is_put_back(clocked: Ledger, clock: Clock) -> None:
    job = rated_job(clocked, 20, 1)
    work(clocked, clock, job, 1, work_ms=2)
    assert claim(clocked, job, 1) is Refusal.ENOUGH
    assert claim(clocked, job, 1) is Refusal.BUSY  # it is not its turn yet
    clock.advance(keys.ENOUGH_DELAY_MS + 200)
    # Nothing draws any more: the unit that ran has died, or waits for the cluster
    assert isinstance(claim(clocked, job, 1), Claimed)
    assert clocked.status(job).state.value == "RUNNING"


def test_a_unit_that_takes_the_place_of_one_that_ended_is_claimed(
    clocked: Ledger, clock: Clock
) -> None:
    job = rated_job(clocked, 20, 3)
    work(clocked, clock, job, 3, work_ms=220)
    clocked.commit(job, 2, 1, "t2", "", {"rows": 1})
    assert open_job(clocked, job).useful == 4
    assert isinstance(claim(clocked, job, 3), Claimed)
    assert isinstance(claim(clocked, job, 4), Claimed)
    assert claim(clocked, job, 5) is Refusal.ENOUGH


def test_the_first_unit_is_never_put_back(clocked: Ledger, clock: Clock) -> None:
    job = rated_job(clocked, 20, 1)
    work(clocked, clock, job, 1, work_ms=2)
    clocked.release(job, 0, "t0")
    assert isinstance(claim(clocked, job, 1), Claimed)


def test_a_damaged_bucket_costs_only_the_limit(clocked: Ledger, client: redis.Redis) -> None:
    job = rated_job(clocked, 20, 1)
    client.set(keys.job_key(job, "rate"), "no hash")
    assert isinstance(claim(clocked, job, 1), Claimed)
    assert not open_job(clocked, job).held
