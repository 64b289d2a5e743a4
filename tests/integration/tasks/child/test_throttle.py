"""A job's limits apply to all its workers together, cost few round trips, and can be changed."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
import redis

from ringhaul.dataplane.pacing import BOUNDLESS
from ringhaul.ledger.connection import connect
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.pace import DRAW_S, NO_LIMITS, Limits
from tasks.child.throttle import JobThrottle

JOB = "ld-000001"


@pytest.fixture
def ledger(broker_url: str) -> Iterator[Ledger]:
    client = connect(broker_url)
    yield Ledger(client)
    client.close()


def throttle_of(ledger: Ledger, limits: Limits) -> JobThrottle:
    throttle = JobThrottle(ledger, JOB)
    throttle.set(limits)
    return throttle


def wait_for(throttle: JobThrottle, rows: int, bytes_count: int = 0) -> float:
    """Pay without waiting, and return how long the wait would be."""
    throttle.pay(rows, bytes_count)
    return throttle.wait_s()


def is_about(wait_s: float, expected_s: float, began_s: float) -> bool:
    """Return whether a wait is as long as expected, or shorter by what has passed since then: on a
    busy machine, that is not nothing."""
    return expected_s - (time.monotonic() - began_s) - 0.02 <= wait_s <= expected_s + 0.02


def script_calls(client: redis.Redis) -> int:
    stats = client.info("commandstats")
    return sum(
        int(stats[name]["calls"]) for name in ("cmdstat_evalsha", "cmdstat_eval") if name in stats
    )


def test_without_a_limit_no_worker_waits_or_calls_redis(ledger: Ledger) -> None:
    before = script_calls(ledger.caller.client)
    throttle = throttle_of(ledger, Limits(in_flight=3))
    assert not throttle.paced
    assert all(wait_for(throttle, 1_000_000, 1_000_000) <= 0 for _ in range(10))
    assert (throttle.rows_at_once, throttle.bytes_at_once) == (BOUNDLESS, BOUNDLESS)
    assert throttle.requests_max == 3
    assert script_calls(ledger.caller.client) == before


def test_workers_share_the_limit_and_buy_credit_for_a_tenth_of_a_second(ledger: Ledger) -> None:
    # Given two workers of a job with a limit of 1000 rows a second
    workers = [throttle_of(ledger, Limits(rows_per_s=1000)) for _ in range(2)]
    before = script_calls(ledger.caller.client)
    began_s = time.monotonic()
    # When each sends 1000 rows in batches of ten as fast as possible, without waiting
    waits = [wait_for(worker, 10, 5000) for _ in range(100) for worker in workers]
    # Then the last wait covers all 2000 rows but those that were there at first
    assert is_about(max(waits[-40:]), 1.9, began_s)
    assert is_about(max(waits), 1.9, began_s)
    # And Redis was called once in ten batches (twice for the first: the script was not loaded)
    assert DRAW_S == 0.1
    assert script_calls(ledger.caller.client) - before in (20, 21)


def test_rows_and_bytes_are_paid_for_together(ledger: Ledger) -> None:
    throttle = throttle_of(ledger, Limits(rows_per_s=1000, bytes_per_s=1_000_000))
    assert (throttle.rows_at_once, throttle.bytes_at_once) == (100, 100_000)
    before = script_calls(ledger.caller.client)
    # The bytes take longest: 4 MB beyond the half second that is saved up
    began_s = time.monotonic()
    assert is_about(wait_for(throttle, 100, 4_500_000), 4.0, began_s)
    assert script_calls(ledger.caller.client) - before in (1, 2)


def test_a_batch_larger_than_the_credit_is_paid_for_completely(ledger: Ledger) -> None:
    throttle = throttle_of(ledger, Limits(rows_per_s=100))
    # The bucket starts with half a second; the other 450 rows take 4.5 s
    began_s = time.monotonic()
    assert is_about(wait_for(throttle, 500), 4.5, began_s)
    # And no credit is left for the next, which buys that of a tenth of a second
    assert is_about(wait_for(throttle, 1), 4.6, began_s)


def test_a_limit_of_one_or_two_rows_makes_progress(ledger: Ledger) -> None:
    throttle = throttle_of(ledger, Limits(rows_per_s=1))
    began_s = time.monotonic()
    assert wait_for(throttle, 1) <= 0
    assert is_about(wait_for(throttle, 1), 1.0, began_s)
    assert is_about(wait_for(throttle, 1), 2.0, began_s)


def test_a_changed_limit_shortens_a_running_wait(ledger: Ledger) -> None:
    # Given a worker that waits a minute and a half for a thousand rows
    throttle = throttle_of(ledger, Limits(rows_per_s=10))
    began_s = time.monotonic()
    assert is_about(wait_for(throttle, 1000), 99.5, began_s)
    # When the limit is ten times as high, the wait is a tenth
    throttle.set(Limits(rows_per_s=100))
    assert is_about(throttle.wait_s(), 9.95, began_s)
    # When only bytes are limited, it is over
    throttle.set(Limits(bytes_per_s=100))
    assert throttle.wait_s() <= 0


def test_credit_of_a_high_limit_is_not_spent_under_a_low_one(ledger: Ledger) -> None:
    throttle = throttle_of(ledger, Limits(rows_per_s=100_000))
    assert wait_for(throttle, 1) <= 0  # 9,999 rows of credit are left
    throttle.set(Limits(rows_per_s=100))
    began_s = time.monotonic()
    waits = [wait_for(throttle, 10) for _ in range(20)]
    assert waits[-1] > 1.0 - (time.monotonic() - began_s)
    throttle.set(NO_LIMITS)
    assert wait_for(throttle, 10**6) <= 0
