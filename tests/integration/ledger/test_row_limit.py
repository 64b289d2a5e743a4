"""A LIMIT that units share: exactly that many rows are counted, whichever attempts die."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import redis

from ringhaul.ledger import keys
from ringhaul.ledger.answers import Claimed, Lease, Reserved
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.states import JobState
from ringhaul.scan.row_limit import RowLimit, Share
from tests.integration.ledger.conftest import new_job

LEASE_MS = 60_000


class Died(Exception):
    """Ends an attempt."""


@dataclass
class Unit:
    """A unit of a scan, with as many rows as `size`."""

    number: int
    size: int
    saved: int = 0  #: rows at its last checkpoint
    tries: int = 0
    counted: int = 0


def attempt(
    ledger: Ledger, job: str, unit: Unit, limit: int, draw: random.Random
) -> Iterator[None]:
    """Run an attempt, with a step after each batch. Raises `Died`, after the unit is given back."""
    unit.tries += 1
    token = f"t{unit.number}-{unit.tries}"
    claim = ledger.claim(job, unit.number, ledger.status(job).epoch, token, LEASE_MS)
    assert isinstance(claim, Claimed)

    def reserve(rows: int) -> Share:
        answer = ledger.reserve(job, unit.number, token, rows, limit)
        assert answer == ledger.reserve(job, unit.number, token, rows, limit), "may be repeated"
        if answer.lease is not Lease.OK:
            raise Died
        return Share(answer.rows, answer.left)

    held = RowLimit(reserve)
    taken = read = unit.saved
    held.allow(taken)
    while read < unit.size and not held.is_reached(taken):
        batch = min(draw.randint(1, 400), unit.size - read)
        read += batch
        taken += held.allow(taken, batch)
        yield
        if draw.random() < 0.2:
            unit.saved = taken
        if unit.tries == 1:  # killed once: a second death makes it wait for all others
            ledger.lost(job, unit.number, token)
            raise Died
        if draw.random() < 0.1 and unit.tries < 4:
            ledger.release(job, unit.number, token)
            raise Died
    held.allow(taken)
    ledger.commit(job, unit.number, ledger.status(job).epoch, token, "", {"rows": taken})
    unit.counted = taken


def finish(ledger: Ledger, job: str, units: list[Unit], limit: int, draw: random.Random) -> None:
    """Run the units that are not done at the same time, step by step, each until it is done."""
    ledger.issue(job, 100)
    left = {unit.number: unit for unit in units if not unit.counted}
    running = {number: attempt(ledger, job, unit, limit, draw) for number, unit in left.items()}
    while running:
        number = draw.choice(sorted(running))
        try:
            next(running[number])
        except StopIteration:
            del running[number]
        except Died:
            ledger.issue(job, 100)
            running[number] = attempt(ledger, job, left[number], limit, draw)


@pytest.mark.parametrize("limit", [1, 3000, 7999, 8000, 8001])
@pytest.mark.parametrize("seed", range(3))
def test_units_that_die_count_the_limit_exactly(ledger: Ledger, limit: int, seed: int) -> None:
    draw = random.Random(seed)
    sizes = [2500, 1, 0, 1500, 3999]
    units = [Unit(number, size) for number, size in enumerate(sizes)]
    job = new_job(ledger, len(units))
    finish(ledger, job, units, limit, draw)
    status = ledger.status(job)
    assert status.state is JobState.COMPLETE
    assert sum(unit.counted for unit in units) == min(limit, sum(sizes))
    assert status.totals["rows"] == min(limit, sum(sizes))
    assert all(unit.tries > 1 for unit in units if unit.counted)


def test_a_resumed_job_counts_the_limit_exactly(ledger: Ledger) -> None:
    # Given a job that is cancelled when one unit has all of the LIMIT but 100 rows, and is not done
    draw = random.Random(5)
    units = [Unit(0, 900), Unit(1, 2000), Unit(2, 2000)]
    job = new_job(ledger, len(units))
    ledger.issue(job, 100)
    ledger.claim(job, 1, 1, "a", LEASE_MS)
    assert ledger.reserve(job, 1, "a", 900, 1000) == Reserved(Lease.OK, 900, 100)
    ledger.cancel(job)
    assert ledger.reserve(job, 1, "a", 950, 1000).lease is Lease.STOP
    # When it is resumed, and the units run again
    ledger.resume(job)
    finish(ledger, job, units, 1000, draw)
    # Then these rows are still that unit's, and no row is counted in addition
    assert sum(unit.counted for unit in units) == 1000
    assert units[1].counted >= 900
    assert ledger.status(job).state is JobState.COMPLETE


def test_only_the_attempt_with_the_lease_reserves_rows(ledger: Ledger) -> None:
    job = new_job(ledger, 2)
    ledger.issue(job, 2)
    ledger.claim(job, 0, 1, "a", LEASE_MS)
    assert ledger.reserve(job, 0, "a", 60, 100) == Reserved(Lease.OK, 60, 40)
    assert ledger.reserve(job, 0, "b", 90, 100).lease is Lease.LOST
    ledger.release(job, 0, "a")
    assert ledger.reserve(job, 0, "a", 90, 100).lease is Lease.LOST
    ledger.issue(job, 2)
    ledger.claim(job, 0, 1, "c", LEASE_MS)
    # A later attempt of the unit has its rows, also before it wants them.
    assert ledger.reserve(job, 0, "c", 0, 100) == Reserved(Lease.OK, 60, 40)
    assert ledger.reserve("ld-none", 0, "a", 1, 100).lease is Lease.GONE


def test_a_job_that_lost_its_shares_hands_out_nothing_twice(
    ledger: Ledger, client: redis.Redis
) -> None:
    job = new_job(ledger, 2)
    ledger.issue(job, 2)
    ledger.claim(job, 0, 1, "a", LEASE_MS)
    ledger.reserve(job, 0, "a", 60, 100)
    client.delete(keys.job_key(job, "limited"))
    assert ledger.reserve(job, 0, "a", 80, 100).lease is Lease.STOP
    assert ledger.status(job).state is JobState.FAILED
