"""The private queue of a job with embedded workers: removed with the command, or with the job."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from producer.services.embedded import EmbeddedWorker
from ringhaul.ledger import keys
from ringhaul.ledger.labels import QUEUE_LABEL
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.reading import JobTaken
from tasks.connect import open_ledger
from tasks.private_queues import note_queues, private_queue, remove_forgotten
from tasks.publish import publisher
from tasks.settings import loaded_settings
from tests.integration.conftest import Settle
from tests.integration.tasks.parent.test_mailboxes import listening

PREFIX = "ringhaul:mq:"


@pytest.fixture
def ledger(tmp_path: Path, settle: Settle) -> Iterator[Ledger]:
    """An empty ledger. Workers that a test starts find no Cassandra."""
    found = open_ledger(
        settle(CLUSTER_CONTACT_POINTS="127.0.0.1", CLUSTER_PORT=1, STATE_DIR=tmp_path / "state")
    )
    yield found
    found.caller.client.close()


def publish_job(ledger: Ledger, job: str) -> None:
    """Create a job with a private queue of three messages."""
    ledger.create(job, {QUEUE_LABEL: private_queue(job)}, "{}")
    ledger.add_units(job, 1, 0, ["a", "b", "c"])
    publisher(ledger)(job, ledger.issue(job, 3))


def forget(ledger: Ledger, job: str) -> None:
    """Expire the job, as 7 days after its end."""
    client = ledger.caller.client
    client.delete(*client.keys("ringhaul:{" + job + "}:*"))
    client.srem(keys.RUNNING, job)


def age(ledger: Ledger, job: str) -> None:
    """Set the last use of the job's queue back beyond a job's retention time."""
    week_ago_ms = int(time.time() * 1000) - keys.JOB_TTL_S * 1000 - 60_000
    ledger.caller.client.zadd(keys.QUEUES, {job: week_ago_ms})


def queue_keys(ledger: Ledger, job: str) -> set[str]:
    """Return the names of Celery's Redis keys for the job's queue."""
    client: redis.Redis = ledger.caller.client
    found = (key.decode().removeprefix(PREFIX) for key in client.scan_iter(f"{PREFIX}*"))
    return {name for name in found if job in name}


def whole_queue(job: str) -> set[str]:
    queue = private_queue(job)
    return {queue, f"_kombu.binding.{queue}", f"_kombu.binding_permanent.{queue}"}


def test_a_command_removes_its_queue_and_its_worker_those_of_forgotten_jobs(
    ledger: Ledger, tmp_path: Path
) -> None:
    # Given the queue of a killed command, whose job is forgotten
    publish_job(ledger, "ul-old")
    forget(ledger, "ul-old")
    age(ledger, "ul-old")
    assert queue_keys(ledger, "ul-old") == whole_queue("ul-old")
    # And a killed worker of another host, which is still in Celery's table
    with listening("celery@pod-1", []):
        pass
    assert queue_keys(ledger, "pidbox") == {"_kombu.binding.celery.pidbox"}
    # When a command has an embedded worker
    with EmbeddedWorker(loaded_settings(), 1, "ul-new") as worker:
        give_up = time.monotonic() + 60
        while (
            not queue_keys(ledger, "ul-new")
            or queue_keys(ledger, "ul-old")
            or queue_keys(ledger, "pidbox")
        ):
            assert time.monotonic() < give_up, worker.log.read_text()
            time.sleep(0.05)
        # Then that queue and the killed worker are removed; the command's own queue is registered
        assert ledger.caller.client.zrange(keys.QUEUES, 0, -1) == [b"ul-new"]
        wait_for_ready(worker)
        # And at its end its queue is removed, too, with the messages left in it
        worker.stop(now=True)
        publish_job(ledger, "ul-new")
        assert queue_keys(ledger, "ul-new") == whole_queue("ul-new")
    assert queue_keys(ledger, "ul-new") == set()
    # And none of Celery's control keys of the killed worker is left
    assert queue_keys(ledger, "pidbox") == set()


def test_a_second_command_leaves_the_queue_to_the_owner_of_the_job(
    ledger: Ledger, tmp_path: Path
) -> None:
    # Given a command that has created a job, and one that saw its id free a moment before
    publish_job(ledger, "ul-both")
    with pytest.raises(JobTaken), EmbeddedWorker(loaded_settings(), 1, "ul-both") as second:
        # When the second one learns of it
        second.stop(now=True)
        ledger.create("ul-both", {}, '{"of": "the second"}')
    # Then the first one's messages still exist, and the log that both write
    assert queue_keys(ledger, "ul-both") == whole_queue("ul-both")
    assert second.log.exists()


def wait_for_ready(worker: EmbeddedWorker) -> None:
    """Wait until the worker consumes all of its queues."""
    give_up = time.monotonic() + 60
    while " ready." not in worker.log.read_text():
        assert time.monotonic() < give_up, worker.log.read_text()
        time.sleep(0.05)


def test_queues_of_known_jobs_stay(ledger: Ledger) -> None:
    # Given an old job that may be resumed, and one that a command is still planning
    publish_job(ledger, "ul-killed")
    age(ledger, "ul-killed")
    publish_job(ledger, "ul-planned")
    forget(ledger, "ul-planned")
    note_queues(ledger.caller, [private_queue("ul-planned")])
    # Then the housekeeper leaves their queues alone
    remove_forgotten(ledger.caller, PREFIX)
    for job in ("ul-killed", "ul-planned"):
        assert queue_keys(ledger, job) == whole_queue(job)
    # Until the first one is forgotten, and the other's command ended long ago
    forget(ledger, "ul-killed")
    age(ledger, "ul-planned")
    remove_forgotten(ledger.caller, PREFIX)
    assert queue_keys(ledger, "ul-killed") == queue_keys(ledger, "ul-planned") == set()
    assert not ledger.caller.client.exists(keys.QUEUES)


def test_a_command_ends_without_redis(ledger: Ledger, tmp_path: Path) -> None:
    away = loaded_settings().with_flags({"broker.url": "redis://127.0.0.1:1/0"})
    with EmbeddedWorker(away, 1, "ul-new") as worker:
        worker.stop(now=True)
        ended_at = time.monotonic()
    assert time.monotonic() - ended_at < 10
    assert not os.path.exists(f"/proc/{worker.pid}")
