"""A command follows its job: it ends with the job, and handles Ctrl-C."""

from __future__ import annotations

import gzip
import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from producer.report.progress import open_progress
from producer.run.feed import Feeder
from producer.run.watch import Watch
from ringhaul.errors import LedgerUnavailable
from ringhaul.formats.split import Position
from ringhaul.ledger.job_status import JobStatus
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.states import JobState
from ringhaul.records.job import LoadJob
from tests.integration.conftest import Settle
from tests.loads import load_job, load_source, table_schema

JOB = "ld-000002"
TABLE = table_schema({"id": "int"}, ["id"])
#: Counting them takes some seconds: the tenth look at the job comes long before that.
LONG = gzip.compress(b"1\n" * 32_000_000, 1) * 60


@pytest.fixture
def ledger(ledger: Ledger, settle: Settle) -> Ledger:
    """An empty ledger. Messages go to a queue without a reader."""
    settle()
    return ledger


@pytest.fixture
def job(ledger: Ledger, tmp_path: Path) -> LoadJob:
    """A job with a file whose records must be counted before the next file can be split."""
    (tmp_path / "1.csv.gz").write_bytes(LONG)
    (tmp_path / "2.csv").write_text("1\n")
    first, then = (str(tmp_path / name) for name in ("1.csv.gz", "2.csv"))
    job = load_job(
        TABLE,
        load_source(["id"], path=first, size_bytes=len(LONG), whole=True),
        load_source(["id"], path=then, size_bytes=2, start=Position(0, 0, 1)),
    )
    ledger.create(JOB, {}, json.dumps(job.to_json()))
    return job


def test_a_stopped_feeder_ends_in_the_middle_of_a_file(ledger: Ledger, job: LoadJob) -> None:
    feeder = Feeder(ledger, JOB, 1, job)
    feeder.start()
    while not (ledger.status(JOB).units or feeder.finished):
        time.sleep(0.01)
    assert not feeder.finished
    feeder.stop()
    feeder.join(60)
    assert (feeder.finished, feeder.error) == (True, None)
    status = ledger.status(JOB)
    assert (status.state, status.units, status.sealed) == (JobState.RUNNING, 1, False)


def test_a_cancelled_job_ends_its_command_while_a_file_is_counted(
    ledger: Ledger, job: LoadJob, capsys: pytest.CaptureFixture[str]
) -> None:
    # Given a command that detaches at Ctrl-C, as soon as its input is split
    feeder = Feeder(ledger, JOB, 1, job)
    feeder.start()
    looks = []

    def press(status: JobStatus) -> None:
        looks.append(time.monotonic())
        if len(looks) in (3, 10):
            os.kill(os.getpid(), signal.SIGINT)

    watch = Watch(
        ledger,
        JOB,
        open_progress("plain", quiet=False),
        feeder=feeder,
        on_interrupt="detach",
        on_look=press,
    )
    # When Ctrl-C is pressed once, and once more some polls later
    status = watch.follow()
    # Then it waited for the input after the first one, and cancelled the job after the second
    assert (status.state, feeder.finished, feeder.error) == (JobState.CANCELLED, True, None)
    assert time.monotonic() - looks[9] < 4
    # and said so once
    assert capsys.readouterr().err.count("detaching when the input is split") == 1


def test_a_terminated_command_does_not_wait_for_a_redis_that_refuses_writes(
    ledger: Ledger, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a job, and a Redis whose memory becomes full
    ledger.create(JOB, {}, "{}")
    monkeypatch.setattr("producer.run.watch.LEAVE_S", 0.5)
    ledger.caller.client.config_set("maxmemory", 1)
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGTERM))
    timer.start()
    progress = open_progress("plain", quiet=False)
    try:
        # When the command is sent SIGTERM, once
        with pytest.raises(LedgerUnavailable, match="no memory left: raise its maxmemory"):
            Watch(ledger, JOB, progress).follow()
    finally:
        ledger.caller.client.config_set("maxmemory", 0)
        timer.join()
    # Then it ended, and printed how to continue
    assert f"to continue: ringhaul resume {JOB}" in capsys.readouterr().err
    assert ledger.status(JOB).state == JobState.RUNNING
