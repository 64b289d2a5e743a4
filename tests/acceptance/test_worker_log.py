"""The log of a real worker: each line about a unit names job and unit, for machines."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from cassandra.cluster import Session

from tests.acceptance.command import Ringhaul, wait_until
from tests.acceptance.hold import Hold
from tests.acceptance.oracle import create_table

JOB = "ld-in-the-log"
#: Where our code logs from inside a unit, and Celery about one.
LOGGERS = {"tasks.child.unit", "celery.app.trace", "celery.worker.strategy"}
SECRET = "Kx9-secret"


def test_each_line_about_a_unit_names_it(
    fleet: Ringhaul, hold: Hold, cassandra_session: Session, keyspace: str, tmp_path: Path
) -> None:
    log = Path(fleet.env["RINGHAUL_STATE_DIR"]).parent / "worker.log"
    before = log.stat().st_size
    create_table(cassandra_session, keyspace, "id int PRIMARY KEY, name text", name="t")
    file = tmp_path / "t.csv"
    file.write_text("id,name\n" + "".join(f"{n},{SECRET}\n" for n in range(8000)))
    # The file is removed while the job runs, which our own code logs as an error.
    load = ("load", file, "-t", f"{keyspace}.t", "--unit-size", "16KiB")
    hold.from_unit(1)
    with fleet.started(*load, "--job-id", JOB, log=tmp_path / "load.log") as process:
        wait_until(lambda: b"succeeded" in log.read_bytes()[before:], "the first unit")
        file.unlink()
        hold.release()
        assert process.wait(60) == 4
    text = log.read_bytes()[before:].decode()
    lines = [json.loads(line) for line in text.splitlines()]
    ours = [line for line in lines if JOB in json.dumps(line)]
    assert {line["logger"] for line in ours} >= LOGGERS
    assert any(line["level"] == "error" for line in ours)
    for line in ours:
        assert line["job"] == JOB, line
        assert isinstance(line["unit"], int), line
    assert SECRET not in text


@pytest.mark.parametrize("command", ["worker", "beat"])
def test_all_that_a_process_writes_is_json_to_its_last_line(
    fleet: Ringhaul, tmp_path: Path, command: str
) -> None:
    # Given a worker or a beat, of which Celery prints a banner, and warns if it runs as root
    log = tmp_path / f"{command}.log"
    started = '"celery@' if command == "worker" else '"beat: Starting..."'
    (tmp_path / "schedule.toml").write_text("")
    settings = {"RINGHAUL_SCHEDULE_FILE": str(tmp_path / "schedule.toml")}
    options = ["-c", "1", "--queues", "of-nobody", "-n", "celery@json"]
    with fleet.started(command, *(options if command == "worker" else []), log=log, **settings) as (
        process
    ):
        wait_until(
            lambda: (
                started in log.read_text() and ("ready" in log.read_text() or command == "beat")
            ),
            "its start",
        )
        # When it is stopped
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0, log.read_text()
    # Then each line is an object with a level and a message
    lines = log.read_text().splitlines()
    assert lines
    for line in lines:
        assert {"level", "message", "timestamp", "logger"} <= set(json.loads(line)), line
