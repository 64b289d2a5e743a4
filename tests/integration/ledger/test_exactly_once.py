"""Each unit is counted once: with random faults and with real concurrency. To prove that these
tests can fail, each guard of the scripts is removed in turn."""

import random
import threading

import pytest
import redis
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from ringhaul.ledger.answers import Claimed, Commit, Lease
from ringhaul.ledger.connection import connect
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.scripts import read_scripts
from ringhaul.ledger.states import JobState
from tests.integration.ledger.conftest import Server, clocked_scripts, new_job
from tests.integration.ledger.machine import LedgerMachine, walk

#: Number of random lives, and of steps in each, within which a planted fault must show.
LIVES = 60
STEPS = 100
CHECKS_OFF = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]


def machine(client: redis.Redis, scripts: dict[str, str]) -> type[LedgerMachine]:
    return type("Machine", (LedgerMachine,), {"client": client, "scripts": scripts})


def test_random_lives_of_a_job(client: redis.Redis) -> None:
    run_state_machine_as_test(
        machine(client, clocked_scripts()),
        settings=settings(
            max_examples=40, stateful_step_count=60, deadline=None, suppress_health_check=CHECKS_OFF
        ),
    )


def test_many_busy_lives_of_a_job(client: redis.Redis) -> None:
    for seed in range(LIVES):
        kinds = {"stops": seed % 2 == 1, "declines": seed % 4 > 1}
        walk(machine(client, clocked_scripts())(), seed, STEPS, **kinds)


#: name -> script, a guard in it, the text without the guard
MUTANTS = {
    "commit counts again": (
        "commit",
        "if redis.call('SETBIT', DONE, unit, 1) == 1 then return 0 end",
        "redis.call('SETBIT', DONE, unit, 1)",
    ),
    "commit of another epoch counts": ("commit", "or m[2] ~= ARGV[2] ", ""),
    "commit leaves the lease": (
        "commit",
        "take_out(unit)\nredis.call('HDEL', STARTS",
        "redis.call('HDEL', STARTS",
    ),
    "commit of a given-up unit counts it off twice": (
        "commit",
        "if redis.call('HDEL', BAD, unit) == 0 then",
        "if redis.call('HDEL', BAD, unit) >= 0 then",
    ),
    "claim takes a living lease": (
        "claim",
        "if tonumber(expiry) > now then",
        "if tonumber(expiry) > now + 9000 then",
    ),
    "claim of a done unit": (
        "claim",
        "if redis.call('GETBIT', DONE, unit) == 1 then",
        "if false then",
    ),
    "claim out of turn": (
        "claim",
        "if not redis.call('ZSCORE', ISSUED, unit) then",
        "if false then",
    ),
    "claim of an old epoch": ("claim", " or m[2] ~= ARGV[2] then", " then"),
    "resume leaves what stopped the job": (
        "resume",
        "redis.call('HDEL', EXTRAS, unit) -- see stop",
        "",
    ),
    "stop by anyone": (
        "stop",
        "if redis.call('HGET', OWNER, unit) ~= ARGV[2] then",
        "if false then",
    ),
    "release by anyone": (
        "release",
        "if redis.call('HGET', OWNER, unit) ~= token then",
        "if false then",
    ),
    "decline of a claimed unit": (
        "decline",
        " or not redis.call('ZSCORE', ISSUED, unit) then",
        " then",
    ),
    "lost by anyone": (
        "lost",
        "if redis.call('HGET', OWNER, unit) ~= token then",
        "if false then",
    ),
    "renew by anyone": (
        "renew",
        "if redis.call('HGET', OWNER, unit) ~= ARGV[2] then",
        "if false then",
    ),
    "issue of done units": ("issue", "next_unit = first_not_done(next_unit)\n", ""),
    "suspects run beside others": ("issue", " and out == 0 and m[5] == '1'", ""),
    "resume forgets what is done": (
        "resume",
        "'left', text(tonumber(m[3]) - redis.call('BITCOUNT', DONE))",
        "'left', m[3]",
    ),
    "no sweep": ("sweep", "  reclaim(unit, 'its lease expired')\n", ""),
    "lost messages stay lost": ("sweep", "  take_out(unit)\n  put_back(unit, now)\n", ""),
    "appending again appends again": (
        "add_units",
        "redis.call('HINCRBY', META, 'left', text(after - units))",
        "redis.call('HINCRBY', META, 'left', #ARGV - 2)",
    ),
    "seal with units missing": ("seal", "if units == count and", "if"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_the_random_lives_notice_a_missing_guard(client: redis.Redis, name: str) -> None:
    script, guard, without = MUTANTS[name]
    scripts = clocked_scripts()
    assert scripts[script].count(guard) == 1, "the guard is not where this test thinks it is"
    scripts[script] = scripts[script].replace(guard, without)
    with pytest.raises((AssertionError, redis.ResponseError)):
        for seed in range(LIVES):
            kinds = {"stops": "stop" in name, "declines": "decline" in name}
            walk(machine(client, scripts)(), seed, STEPS, **kinds)


def test_without_the_guard_a_repeated_commit_counts_double(client: redis.Redis) -> None:
    """Exactly-once rests on this one line: with it 10 rows, without it 20."""
    guard = MUTANTS["commit counts again"][1]
    real = read_scripts()["commit"]
    seen = {}
    for name, text in (("with", real), ("without", real.replace(guard, ""))):
        ledger = Ledger(client, scripts={"commit": text})
        job = new_job(ledger, 2)
        ledger.issue(job, 2)
        ledger.claim(job, 0, 1, "a", 60_000)
        for _ in range(2):  # as if the first answer was lost
            ledger.commit(job, 0, 1, "a", "r", {"rows": 10})
        seen[name] = ledger.status(job).totals["rows"]
    assert seen == {"with": 10, "without": 20}


def test_many_workers_at_once(shared_server: Server, client: redis.Redis) -> None:
    """Eight threads, each with a connection: leases of milliseconds, messages delivered to several
    threads, one attempt in four dying or stalling. Every thread also sweeps and issues."""
    ledger = Ledger(client, starts_max=1000, unclaimed_ms=5)
    job = new_job(ledger, 300)
    counted: list[tuple[int, int]] = []
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        chance = random.Random(seed)
        own_client = connect(shared_server.url)
        own = Ledger(own_client)
        try:
            while own.status(job).state is JobState.RUNNING:
                own.sweep(job)
                own.issue(job, 16)
                for _ in range(12):
                    unit = chance.randrange(300)
                    token = f"{seed}-{chance.random()}"
                    if not isinstance(own.claim(job, unit, 1, token, 5), Claimed):
                        continue
                    fate = chance.random()
                    if fate < 0.1:
                        continue  # dead
                    if fate < 0.2:
                        threading.Event().wait(0.008)  # stalls past its lease
                    elif fate < 0.3:
                        assert own.release(job, unit, token) in Lease
                        continue
                    rows = chance.randrange(1, 1000)
                    for _ in range(2):
                        if own.commit(job, unit, 1, token, str(rows), {"rows": rows}) == 1:
                            counted.append((unit, rows))
        except BaseException as error:
            failures.append(error)
        finally:
            own_client.close()

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures
    status = ledger.status(job)
    assert (status.state, status.pending, status.done) == (JobState.COMPLETE, 0, 300)
    assert sorted(unit for unit, _ in counted) == list(range(300))
    assert status.totals == {"rows": sum(rows for _, rows in counted)}
    assert {u: int(r) for u, r in ledger.results(job)} == dict(counted)
    assert ledger.commit(job, 0, 1, "late", "x", {"rows": 1}) is Commit.REPEATED
