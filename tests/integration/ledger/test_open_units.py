"""The set that what scales workers looks at is as large as the units that are open."""

import pytest
import redis

from ringhaul.ledger import keys, open_units
from ringhaul.ledger.ledger import Claimed, Ledger
from ringhaul.ledger.open_units import count_open_units
from ringhaul.ledger.sweep import sweep_running
from tests.integration.ledger.conftest import new_job


def size(client: redis.Redis) -> int:
    """What a scaler sees: it asks for the size, and knows no other key."""
    return int(client.scard(keys.OPEN))


def work(ledger: Ledger, job: str, units: int) -> None:
    """Do the next `units` units of the job."""
    for unit in ledger.issue(job, units).units:
        assert isinstance(ledger.claim(job, unit, 1, f"t{unit}", 60_000), Claimed)
        ledger.commit(job, unit, 1, f"t{unit}", "{}", {"rows": 1})


def sweep(ledger: Ledger) -> None:
    sweep_running(ledger, lambda job: 0, lambda job, issued: None)


def test_a_job_is_counted_as_soon_as_it_has_units(ledger: Ledger, client: redis.Redis) -> None:
    """With no worker alive nobody sweeps: a scaler must see the first units by themselves."""
    ledger.create("ld-1", {"verb": "load"}, "{}")
    assert size(client) == 0
    ledger.add_units("ld-1", 1, 0, ["a", "b", "c"])
    assert size(client) == 3
    ledger.add_units("ld-1", 1, 3, ["d", "e"])
    ledger.seal("ld-1", 1, 5)
    assert size(client) == 5


def test_units_that_are_done_are_not_open_those_in_work_are(
    ledger: Ledger, client: redis.Redis
) -> None:
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


def test_a_job_that_is_ended_counts_for_nothing_until_it_is_resumed(
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


def test_a_paused_job_counts_for_nothing_until_it_goes_on(
    ledger: Ledger, client: redis.Redis
) -> None:
    job = new_job(ledger, 5)
    new_job(ledger, 2)
    ledger.pause(job)
    assert size(client) == 2
    ledger.unpause(job)
    assert size(client) == 7


def test_units_that_are_given_up_are_not_open(client: redis.Redis) -> None:
    ledger = Ledger(client, max_starts=1, patience_ms=5000)
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


def test_a_job_whose_keys_are_gone_is_no_error(ledger: Ledger, client: redis.Redis) -> None:
    new_job(ledger, 3)
    client.sadd(keys.RUNNING, "ld-gone")
    assert count_open_units(ledger.caller) == 3


def test_the_pattern_is_that_of_the_meta_key() -> None:
    assert keys.job_key("ld-7f3a9c", "meta") == keys.META_PATTERN % "ld-7f3a9c"
