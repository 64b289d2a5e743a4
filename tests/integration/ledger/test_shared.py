"""State that workers share beside jobs: heartbeats, session openings, and rates."""

import threading
import time

import pytest

from ringhaul.ledger import rate
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.openings import Openings
from ringhaul.ledger.workers import Worker, Workers
from tests.integration.ledger.conftest import Clock


def test_slots_of_living_workers(clocked: Ledger, clock: Clock) -> None:
    workers = Workers(clocked.caller)
    one, other = (
        Worker("host1", 10, 4, ("ringhaul.load",)),
        Worker("fe80::1", 11, 8, ("a:b", "c,d")),
    )
    assert workers.heartbeat(one, 1000).gone == 0
    assert workers.heartbeat(other, 5000).gone == 0
    assert workers.heartbeat(other, 5000).gone == 0
    assert workers.alive() == [other, one]
    assert workers.slots() == 12
    clock.advance(1000)
    assert workers.slots() == 8
    # Its absence is noticed once
    assert workers.heartbeat(other, 5000).gone == 1
    assert workers.heartbeat(other, 5000).gone == 0
    workers.leave(other)
    assert workers.slots() == 0


def test_openings_are_bounded_and_a_dead_opener_is_forgotten(clocked: Ledger, clock: Clock) -> None:
    openings = Openings(clocked.caller)
    first = openings.acquire("prod", 2, 10_000, 0)
    second = openings.acquire("prod", 2, 10_000, 0)
    assert first and second and first != second
    assert openings.acquire("prod", 2, 10_000, 0) is None
    assert openings.acquire("test", 2, 10_000, 0) is not None  # another cluster
    openings.release("prod", first)
    third = openings.acquire("prod", 2, 10_000, 0)
    assert third
    clock.advance(10_000)  # second and third died
    assert openings.acquire("prod", 2, 10_000, 0) is not None
    openings.release("prod", third)  # late: it must not free another one's place
    assert openings.acquire("prod", 2, 10_000, 0) is not None
    assert openings.acquire("prod", 2, 10_000, 0) is None


def test_a_waiting_worker_gets_a_freed_place(ledger: Ledger) -> None:
    openings = Openings(ledger.caller)
    token = openings.acquire("prod", 1, 600_000, 0)
    assert token is not None
    timer = threading.Timer(0.3, openings.release, ("prod", token))
    began = time.monotonic()
    timer.start()
    assert openings.acquire("prod", 1, 600_000, 60) is not None
    assert 0.3 <= time.monotonic() - began < 30
    timer.join()


def test_a_rate_is_shared_and_debt_makes_workers_wait(clocked: Ledger, clock: Clock) -> None:
    def take(rows: int) -> int:
        (wait_ms,) = rate.take(clocked.caller, "ld-1", [rate.Draw("rows", rows, 1000, 500)])
        return wait_ms

    assert take(500) == 0  # the burst
    assert take(2000) == 2000  # a block larger than the burst
    assert take(1000) == 3000  # behind it
    clock.advance(3000)
    assert take(0) == 0
    assert take(1) == 1
    clock.advance(3_600_000)
    assert take(501) == 1  # no more than the burst can be saved up
    with pytest.raises(ValueError, match="per_s=0"):
        rate.take(clocked.caller, "ld-1", [rate.Draw("rows", 1, 0, 1)])


def test_a_raised_rate_applies_at_once(clocked: Ledger, clock: Clock) -> None:
    def take(rows: int, per_s: int) -> list[int]:
        draws = [rate.Draw("rows", rows, per_s, per_s), rate.Draw("bytes", 5, 10, 10)]
        return rate.take(clocked.caller, "ld-1", draws)

    assert take(100, 100) == [0, 0]
    clock.advance(500)
    # Half a second of the old rate is saved up, and no more; bytes have a separate bucket
    assert take(50, 10_000) == [0, 0]
    assert take(1, 10_000) == [1, 500]
    clock.advance(1000)
    # A lowered rate applies soon: the saved credit is limited to the new rate
    assert take(99, 100) == [0, 0]
    assert take(1, 100) == [10, 500]
