"""The queue of a job with workers of its own: gone when the command ends, or with the job."""

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
from tasks.settings import process_settings
from tests.integration.conftest import Settle
from tests.integration.tasks.parent.test_mailboxes import listening

PREFIX = "ringhaul:mq:"


@pytest.fixture
def ledger(tmp_path: Path, settle: Settle) -> Iterator[Ledger]:
    """An empty ledger. Workers that are started beside it find no Cassandra."""
    found = open_ledger(
        settle(CLUSTER_CONTACT_POINTS="127.0.0.1", CLUSTER_PORT=1, STATE_DIR=tmp_path / "state")
    )
    yield found
    found.caller.client.close()


def publish_job(ledger: Ledger, job: str) -> None:
    """A job with a queue of its own, in which there are three messages."""
    ledger.create(job, {QUEUE_LABEL: private_queue(job)}, "{}")
    ledger.add_units(job, 1, 0, ["a", "b", "c"])
    publisher(ledger)(job, ledger.issue(job, 3))


def forget(ledger: Ledger, job: str) -> None:
    """What 7 days do to a job that is over."""
    client = ledger.caller.client
    client.delete(*client.keys("ringhaul:{" + job + "}:*"))
    client.srem(keys.RUNNING, job)


def age(ledger: Ledger, job: str) -> None:
    """Let the last use of the job's queue be longer ago than a job is kept."""
    week_ago_ms = int(time.time() * 1000) - keys.JOB_TTL_S * 1000 - 60_000
    ledger.caller.client.zadd(keys.QUEUES, {job: week_ago_ms})


def queue_keys(ledger: Ledger, job: str) -> set[str]:
    """All that Celery has of the job's queue in Redis, by its names there."""
    client: redis.Redis = ledger.caller.client
    found = (key.decode().removeprefix(PREFIX) for key in client.scan_iter(f"{PREFIX}*"))
    return {name for name in found if job in name}


def whole_queue(job: str) -> set[str]:
    queue = private_queue(job)
    return {queue, f"_kombu.binding.{queue}", f"_kombu.binding_permanent.{queue}"}


def test_a_command_takes_its_queue_along_and_its_worker_those_of_forgotten_jobs(
    ledger: Ledger, tmp_path: Path
) -> None:
    # Given the queue of a command that was killed, whose job is forgotten
    publish_job(ledger, "ul-old")
    forget(ledger, "ul-old")
    age(ledger, "ul-old")
    assert queue_keys(ledger, "ul-old") == whole_queue("ul-old")
    # And a worker on another host, which was killed and is in Celery's table still
    with listening("celery@pod-1", []):
        pass
    assert queue_keys(ledger, "pidbox") == {"_kombu.binding.celery.pidbox"}
    # When a command has a worker of its own
    with EmbeddedWorker(process_settings(), 1, "ul-new") as worker:
        give_up = time.monotonic() + 60
        while (
            not queue_keys(ledger, "ul-new")
            or queue_keys(ledger, "ul-old")
            or queue_keys(ledger, "pidbox")
        ):
            assert time.monotonic() < give_up, worker.log.read_text()
            time.sleep(0.05)
        # Then that queue is gone, and the worker of before from the table; its own queue is known
        assert ledger.caller.client.zrange(keys.QUEUES, 0, -1) == [b"ul-new"]
        wait_for_ready(worker)
        # And at its end its own goes, too, with the messages that nobody took
        worker.stop(now=True)
        publish_job(ledger, "ul-new")
        assert queue_keys(ledger, "ul-new") == whole_queue("ul-new")
    assert queue_keys(ledger, "ul-new") == set()
    # And nothing by which Celery would talk to the worker, which was killed, is left
    assert queue_keys(ledger, "pidbox") == set()


def test_a_command_that_came_second_leaves_the_queue_to_the_one_whose_job_it_is(
    ledger: Ledger, tmp_path: Path
) -> None:
    # Given a command that has begun a job, and one that found its id free a moment before
    publish_job(ledger, "ul-both")
    with pytest.raises(JobTaken), EmbeddedWorker(process_settings(), 1, "ul-both") as second:
        # When it learns of it
        second.stop(now=True)
        ledger.create("ul-both", {}, '{"of": "the second"}')
    # Then the first one's messages are there still, and the log, in which both write
    assert queue_keys(ledger, "ul-both") == whole_queue("ul-both")
    assert second.log.exists()


def wait_for_ready(worker: EmbeddedWorker) -> None:
    """Until the worker has all the queues that it will have."""
    give_up = time.monotonic() + 60
    while " ready." not in worker.log.read_text():
        assert time.monotonic() < give_up, worker.log.read_text()
        time.sleep(0.05)


def test_queues_of_jobs_that_are_known_stay(ledger: Ledger) -> None:
    # Given an old job that may be resumed, and one that was never made, whose command plans it
    publish_job(ledger, "ul-killed")
    age(ledger, "ul-killed")
    publish_job(ledger, "ul-planned")
    forget(ledger, "ul-planned")
    note_queues(ledger.caller, [private_queue("ul-planned")])
    # Then a keeper leaves their queues alone
    remove_forgotten(ledger.caller, PREFIX)
    for job in ("ul-killed", "ul-planned"):
        assert queue_keys(ledger, job) == whole_queue(job)
    # Until the one is forgotten, and the other's command is long gone
    forget(ledger, "ul-killed")
    age(ledger, "ul-planned")
    remove_forgotten(ledger.caller, PREFIX)
    assert queue_keys(ledger, "ul-killed") == queue_keys(ledger, "ul-planned") == set()
    assert not ledger.caller.client.exists(keys.QUEUES)


def test_a_command_ends_although_redis_is_away(ledger: Ledger, tmp_path: Path) -> None:
    settings = process_settings()
    away = settings.broker.model_copy(update={"url": "redis://127.0.0.1:1/0"})
    with EmbeddedWorker(settings.model_copy(update={"broker": away}), 1, "ul-new") as worker:
        worker.stop(now=True)
        ended_at = time.monotonic()
    assert time.monotonic() - ended_at < 10
    assert not os.path.exists(f"/proc/{worker.pid}")
