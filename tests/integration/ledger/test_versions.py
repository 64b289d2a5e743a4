"""Workers and commands of the previous version take part in a job of this version.

The previous version does not write the counts in `meta` that prove the other keys intact. A job
that lost a key is still distinguished from a job that two versions worked on.
"""

from __future__ import annotations

import pytest
import redis

from ringhaul.ledger import keys
from ringhaul.ledger.answers import Commit, Lease
from ringhaul.ledger.job_status import Live
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.scripts import read_scripts
from ringhaul.ledger.states import JobState
from tests.integration.ledger.conftest import new_job

LEASE_MS = 60_000
#: Text of today's scripts -> its replacement, which gives the previous version's scripts.
NEWER = {
    "if m[8] then": "if false then",
    "if change ~= 0 and redis": "if false and redis",
    "if m[6] then -- from here on": "if false then -- from here on",
    "redis.call('HDEL', LOSSES, unit, unit .. ':least', unit .. ':by')": "",
    "pcall(append_event, kind, words, by, unit)": "",
    "pcall(append_sample)": "",
    ", 'samples', 'sampling', 'events'": "",
    "  'kept', '0', 'sum_tot', '0', 'sum_lat', '0', 'counted', '0', 'kept_epoch', '1',\n": "",
}


@pytest.fixture
def before(client: redis.Redis) -> Ledger:
    """A ledger with the previous version's scripts."""
    scripts, missed = dict(read_scripts()), set(NEWER)
    for name, text in scripts.items():
        for newer, older in NEWER.items():
            if newer in text:
                missed.discard(newer)
                text = text.replace(newer, older)
        scripts[name] = text
    assert not missed
    return Ledger(client, patience_ms=5000, scripts=scripts)


def commit(ledger: Ledger, job: str, unit: int, epoch: int = 1, extra: bytes = b"extra") -> None:
    ledger.issue(job, 10)
    ledger.claim(job, unit, epoch, f"t{unit}", LEASE_MS)
    totals = {"rows": 10, "rejected": 1}
    answer = ledger.commit(job, unit, epoch, f"t{unit}", "r", totals, {"7": 3}, extra)
    assert answer is Commit.COUNTED


def stop(ledger: Ledger, job: str, unit: int) -> None:
    ledger.issue(job, 10)
    ledger.claim(job, unit, 1, "s", LEASE_MS)
    assert ledger.stop(job, unit, "s", Live(rejected=9), b"rejects") is Lease.OK


def test_commits_of_an_older_worker_are_no_damage(ledger: Ledger, before: Ledger) -> None:
    job = new_job(ledger, 3)
    commit(before, job, 0)
    commit(ledger, job, 1)
    assert ledger.find_damage(job) == []
    commit(before, job, 2)
    assert ledger.find_damage(job) == []
    assert ledger.status(job).state is JobState.PARTIAL


@pytest.mark.parametrize("part", ["tot", "lat", "extras", "done", "results:0", "units:0"])
def test_a_lost_key_of_a_job_of_two_versions_is_damage(
    ledger: Ledger, before: Ledger, client: redis.Redis, part: str
) -> None:
    job = new_job(ledger, 3)
    commit(before, job, 0)
    commit(ledger, job, 1)
    client.delete(keys.job_key(job, part))
    assert ledger.find_damage(job)


@pytest.mark.parametrize("resumes", ["ledger", "before"])
@pytest.mark.parametrize("stops", ["ledger", "before"])
def test_a_job_that_two_versions_stop_and_resume_is_intact(
    ledger: Ledger, before: Ledger, stops: str, resumes: str
) -> None:
    by = {"ledger": ledger, "before": before}
    job = new_job(ledger, 2)
    commit(ledger, job, 1)
    stop(by[stops], job, 0)
    assert ledger.find_damage(job) == []
    assert by[resumes].resume(job) == 2
    assert ledger.find_damage(job) == []
    ledger.cancel(job)
    assert ledger.resume(job) == 3
    commit(ledger, job, 0, 3, b"")
    assert ledger.find_damage(job) == []


def test_a_job_of_an_older_command_is_intact(ledger: Ledger, before: Ledger) -> None:
    job = new_job(before, 2)
    commit(ledger, job, 0)
    ledger.cancel(job)
    assert ledger.resume(job) == 2
    commit(before, job, 1, 2)
    assert ledger.find_damage(job) == []
