"""The housekeeper ends jobs that write to the standard output of a killed command."""

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
    """An empty ledger that a housekeeper in this process uses."""
    return connected.ledger


def create(ledger: Ledger, job: str, **facts: Any) -> None:
    """Create a running unload with embedded workers."""
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


def record_heartbeat(ledger: Ledger, job: str, ago_ms: int = 0) -> None:
    """Record a heartbeat of the job's embedded workers, `ago_ms` ago."""
    note_queues(ledger.caller, [private_queue(job)])
    if ago_ms:
        at_ms = int(time.time() * 1000) - ago_ms
        ledger.caller.client.zadd(keys.QUEUES, {job: at_ms})


def test_a_job_ends_when_its_printing_command_is_gone_for_long(ledger: Ledger) -> None:
    """
    1. Commands with embedded workers are killed: one long ago, one some minutes ago. The rows of
       another one go to a folder.
    2. One command lives, but its output is not read. Its workers missed Redis as long as the
       housekeeper did.
    3. The housekeeper of a running worker checks repeatedly.
    """
    for job in ("ul-gone", "ul-nearly", "ul-unread"):
        create(ledger, job, streams=True)
    create(ledger, "ul-folder")
    ledger.create("ld-fleet", {}, "{}")
    for job in ("ul-gone", "ul-folder", "ul-unread"):
        record_heartbeat(ledger, job, ago_ms=GONE_MS + 60_000)
    record_heartbeat(ledger, "ul-nearly", ago_ms=GONE_MS - 60_000)

    worker = SimpleNamespace(app=app, concurrency=1, timer=Timer())
    keeper = Keeper(worker)
    keeper.start(worker)  # its first check
    try:
        for look in range(2, LOOKS_MIN + 2):
            if look == LOOKS_MIN - 1:
                record_heartbeat(
                    ledger, "ul-unread", ago_ms=GONE_MS + 1
                )  # as if the clock advanced
            assert ledger.status("ul-gone").state is JobState.RUNNING or look > LOOKS_MIN
            keeper._keep()
    finally:
        keeper.stop(worker)

    killed = ledger.status("ul-gone")
    assert (killed.state, killed.last_error) == (JobState.FAILED, REASON)
    for job in ("ul-nearly", "ul-unread", "ul-folder", "ld-fleet"):
        assert ledger.status(job).state is JobState.RUNNING, job
