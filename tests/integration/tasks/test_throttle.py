"""The rate limit of a job holds over all its workers, and costs few round trips."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis

from ringhaul.ledger.connection import connect
from ringhaul.ledger.ledger import Ledger
from tasks.throttle import CREDIT_S, RowThrottle

JOB = "ld-000001"


@pytest.fixture
def ledger(broker_url: str) -> Iterator[Ledger]:
    client = connect(broker_url)
    yield Ledger(client)
    client.close()


def script_calls(client: redis.Redis) -> int:
    stats = client.info("commandstats")
    return sum(
        int(stats[name]["calls"]) for name in ("cmdstat_evalsha", "cmdstat_eval") if name in stats
    )


def test_without_a_limit_nobody_waits_and_redis_is_not_asked(ledger: Ledger) -> None:
    before = script_calls(ledger.caller.client)
    throttle = RowThrottle(ledger, JOB, 0)
    assert [throttle(1_000_000) for _ in range(10)] == [0.0] * 10
    assert script_calls(ledger.caller.client) == before


def test_workers_share_the_limit_and_buy_credit_for_a_tenth_of_a_second(ledger: Ledger) -> None:
    # Given two workers of a job that may write 1000 rows a second
    workers = [RowThrottle(ledger, JOB, 1000), RowThrottle(ledger, JOB, 1000)]
    before = script_calls(ledger.caller.client)
    # When each sends 1000 rows in batches of ten as fast as it can, without waiting
    waits = [worker(10) for _ in range(100) for worker in workers]
    # Then the last has to wait for about all 2000 rows, less the burst and the time it took
    assert 1.5 < max(waits) <= 2.0
    assert max(waits) == pytest.approx(max(waits[-40:]))
    # And Redis was asked once in ten batches (twice for the very first: the script was not there)
    assert CREDIT_S == 0.1
    assert script_calls(ledger.caller.client) - before in (20, 21)


def test_a_batch_larger_than_the_credit_is_paid_for_whole(ledger: Ledger) -> None:
    throttle = RowThrottle(ledger, JOB, 100)
    # The bucket starts with a tenth of a second; the other 490 rows take 4.9 s
    assert throttle(500) == pytest.approx(4.9, abs=0.2)
    # And nothing of it is left for the next
    assert throttle(1) >= 4.8


def test_a_limit_of_a_row_or_two_still_moves(ledger: Ledger) -> None:
    throttle = RowThrottle(ledger, JOB, 1)
    assert throttle(1) == 0.0
    assert throttle(1) == pytest.approx(1.0, abs=0.2)
    assert throttle(1) == pytest.approx(2.0, abs=0.2)
