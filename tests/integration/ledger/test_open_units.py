"""The set that an autoscaler reads has one member for each open unit."""

import pytest
import redis

from ringhaul.ledger import keys, open_units
from ringhaul.ledger.answers import Claimed
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.open_units import count_open_units
from ringhaul.ledger.sweep import sweep_running
from tests.integration.ledger.conftest import new_job


def size(client: redis.Redis) -> int:
    """Return what a scaler sees: the size of this key alone."""
    return int(client.scard(keys.OPEN))


def work(ledger: Ledger, job: str, units: int) -> None:
    """Run the next `units` units of the job."""
    for unit in ledger.issue(job, units).units:
        assert isinstance(ledger.claim(job, unit, 1, f"t{unit}", 60_000), Claimed)
        ledger.commit(job, unit, 1, f"t{unit}", "{}", {"rows": 1})


def sweep(ledger: Ledger) -> None:
    sweep_running(ledger, lambda job: 0, lambda job, issued: None)


def test_a_job_is_counted_as_soon_as_it_has_units(ledger: Ledger, client: redis.Redis) -> None:
    """Without a living worker there is no sweep: a scaler must see the first units at once."""
    ledger.create("ld-1", {"verb": "load"}, "{}")
    assert size(client) == 0
    ledger.add_units("ld-1", 1, 0, ["a", "b", "c"])
    assert size(client) == 3
    ledger.add_units("ld-1", 1, 3, ["d", "e"])
    ledger.seal("ld-1", 1, 5)
    assert size(client) == 5


def test_running_units_are_open_and_done_ones_are_not(ledger: Ledger, client: redis.Redis) -> None:
    one, other = new_job(ledger, 10), new_job(ledger, 7)
    assert size(client) == 17
    work(ledger, one, 4)
    (unit,) = ledger.issue(other, 1).units
    ledger.claim(other, unit, 1, "t", 60_000)
    sweep(ledger)
    assert size(client) == 6 + 7
    work(ledger, one, 6)
    sweep(ledger)
    assert size(client) == 7
    ledger.commit(other, unit, 1, "t", "{}", {"rows": 1})
    work(ledger, other, 6)
    sweep(ledger)
    assert size(client) == 0
    assert not client.exists(keys.OPEN)


def test_an_ended_job_has_no_open_units_until_it_is_resumed(
    ledger: Ledger, client: redis.Redis
) -> None:
    job = new_job(ledger, 5)
    work(ledger, job, 2)
    ledger.cancel(job)
    assert size(client) == 0
    ledger.resume(job)
    assert size(client) == 3
    ledger.fail(job, "no more")
    assert size(client) == 0


def test_a_paused_job_has_no_open_units_until_it_continues(
    ledger: Ledger, client: redis.Redis
) -> None:
    job = new_job(ledger, 5)
    new_job(ledger, 2)
    ledger.pause(job)
    assert size(client) == 2
    ledger.unpause(job)
    assert size(client) == 7


def test_given_up_units_are_not_open(client: redis.Redis) -> None:
    ledger = Ledger(client, starts_max=1, patience_ms=5000)
    job = new_job(ledger, 2)
    first, second = ledger.issue(job, 2).units
    ledger.claim(job, first, 1, "t", 60_000)
    ledger.lost(job, first, "t")
    sweep(ledger)
    assert size(client) == 1
    ledger.claim(job, second, 1, "t", 60_000)
    ledger.commit(job, second, 1, "t", "{}", {"rows": 1})
    sweep(ledger)
    assert size(client) == 0


def test_the_size_is_bounded(
    ledger: Ledger, client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    new_job(ledger, 60)
    monkeypatch.setattr(open_units, "OPEN_UNITS_MAX", 50)
    assert count_open_units(ledger.caller) == 50
    assert size(client) == 50


def test_a_job_with_expired_keys_is_no_error(ledger: Ledger, client: redis.Redis) -> None:
    new_job(ledger, 3)
    client.sadd(keys.RUNNING, "ld-gone")
    assert count_open_units(ledger.caller) == 3


def test_the_pattern_is_that_of_the_meta_key() -> None:
    assert keys.job_key("ld-7f3a9c", "meta") == keys.META_PATTERN % "ld-7f3a9c"
