"""Jobs that wrote to the standard output of a command that was killed: a keeper ends them."""

from __future__ import annotations

import json
import time
from types import SimpleNamespace
from typing import Any

import pytest
from kombu.asynchronous.timer import Timer

from ringhaul.formats.write import OutputFormat
from ringhaul.ledger import keys
from ringhaul.ledger.labels import KIND_LABEL, QUEUE_LABEL
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.states import JobState
from ringhaul.output.job import Output
from ringhaul.scan.job import ReadJob
from tasks.application import app
from tasks.parent.abandoned_jobs import GONE_MS, LOOKS_MIN, REASON
from tasks.parent.housekeeping import Keeper
from tasks.private_queues import note_queues, private_queue
from tests.integration.tasks.conftest import Connected
from tests.loads import table_schema


@pytest.fixture
def ledger(connected: Connected) -> Ledger:
    """An empty ledger, whose settings a keeper in this process has."""
    return connected.ledger


def create(ledger: Ledger, job: str, **facts: Any) -> None:
    """An unload that runs, with workers of its own."""
    unload = ReadJob(
        kind="unload",
        cluster_name="test",
        table=table_schema({"id": "int"}, ["id"]),
        sql="SELECT id FROM shop.orders",
        output=Output(url="/parts", format=OutputFormat()),
        **facts,
    )
    labels = {KIND_LABEL: "unload", QUEUE_LABEL: private_queue(job)}
    ledger.create(job, labels, json.dumps(unload.to_json()))
    ledger.add_units(job, 1, 0, ["{}"])
    ledger.seal(job, 1, 1)


def be_there(ledger: Ledger, job: str, ago_ms: int = 0) -> None:
    """What the job's own workers do at each beat; or did, so long ago."""
    note_queues(ledger.caller, [private_queue(job)])
    if ago_ms:
        at_ms = int(time.time() * 1000) - ago_ms
        ledger.caller.client.zadd(keys.QUEUES, {job: at_ms})


def test_a_job_is_ended_when_the_command_it_printed_by_is_gone_for_long(ledger: Ledger) -> None:
    """
    1. Commands with workers of their own are killed: one long ago, one some minutes ago. Another's
       rows went to a folder.
    2. One lives, and nobody reads its rows. To its workers Redis was away as long as to the keeper.
    3. The keeper of a worker that stands comes by again and again.
    """
    for job in ("ul-gone", "ul-nearly", "ul-unread"):
        create(ledger, job, streams=True)
    create(ledger, "ul-folder")
    ledger.create("ld-fleet", {}, "{}")
    for job in ("ul-gone", "ul-folder", "ul-unread"):
        be_there(ledger, job, ago_ms=GONE_MS + 60_000)
    be_there(ledger, "ul-nearly", ago_ms=GONE_MS - 60_000)

    worker = SimpleNamespace(app=app, concurrency=1, timer=Timer())
    keeper = Keeper(worker)
    keeper.start(worker)  # which looks for the first time
    try:
        for look in range(2, LOOKS_MIN + 2):
            if look == LOOKS_MIN - 1:
                be_there(ledger, "ul-unread", ago_ms=GONE_MS + 1)  # the clock went on, say
            assert ledger.status("ul-gone").state is JobState.RUNNING or look > LOOKS_MIN
            keeper._keep()
    finally:
        keeper.stop(worker)

    killed = ledger.status("ul-gone")
    assert (killed.state, killed.last_error) == (JobState.FAILED, REASON)
    for job in ("ul-nearly", "ul-unread", "ul-folder", "ld-fleet"):
        assert ledger.status(job).state is JobState.RUNNING, job
