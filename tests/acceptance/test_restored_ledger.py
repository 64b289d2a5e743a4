"""An old copy of Redis is restored: what docs/how-to/redis-backup.md says of each kind of work."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from cassandra.cluster import Session

from producer.local.stack import Endpoints
from producer.local.valkey import EmbeddedValkey
from ringhaul.ledger.connection import connect
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.schedules import ScheduleBook
from ringhaul.ledger.states import JobState
from tests.acceptance.command import Ringhaul, wait_until
from tests.acceptance.conftest import fleet_settings
from tests.acceptance.hold import Hold
from tests.acceptance.oracle import assert_table, create_table, write_times
from tests.acceptance.running import running_worker

ROWS = 400
#: Files of Valkey's append-only log, in its folder.
LOG = "appendonlydir"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of the server, whose files the test copies."""
    return tmp_path / "valkey"


@pytest.fixture
def valkey(folder: Path) -> Iterator[EmbeddedValkey]:
    with EmbeddedValkey(folder) as server:
        yield server


@contextlib.contextmanager
def viewed(valkey: EmbeddedValkey) -> Iterator[Ledger]:
    with contextlib.closing(connect(valkey.url)) as client:
        yield Ledger(client)


def write_rows(path: Path, first: int, count: int) -> list[tuple[int, str]]:
    rows = [(number, f"v{number:05}") for number in range(first, first + count)]
    path.parent.mkdir(exist_ok=True)
    path.write_text("id,v\n" + "".join(f"{number:05},{text}\n" for number, text in rows))
    return rows


def copy_log(valkey: EmbeddedValkey, folder: Path, target: Path) -> None:
    """Copy the server's log as the page says."""
    with contextlib.closing(connect(valkey.url)) as client:
        client.set("last", 1, px=1)
        assert client.execute_command("WAITAOF", 1, 0, 10_000)[0] == 1
    shutil.copytree(folder / LOG, target)


def test_an_old_copy_changes_no_row_and_repeats_what_it_does_not_know(
    endpoints: Endpoints,
    valkey: EmbeddedValkey,
    folder: Path,
    cassandra_session: Session,
    keyspace: str,
    tmp_path: Path,
) -> None:
    table = create_table(cassandra_session, keyspace, "id int PRIMARY KEY, v text")
    hold = Hold(tmp_path / "held")
    schedules = tmp_path / "schedule.toml"
    schedules.write_text(
        '[schedule.files]\narrive = "drop/*.csv"\nevery = "1h"\nsettle = "1s"\n'
        f'steps = [["load", "{{files}}", "-t", "{table}"]]\n'
    )
    env = fleet_settings(endpoints, tmp_path / "state", valkey.url) | hold.env
    env["RINGHAUL_SCHEDULE_FILE"] = str(schedules)
    ringhaul = Ringhaul(env, tmp_path)
    rows = write_rows(tmp_path / "drop" / "a.csv", 0, 10)
    rows += write_rows(tmp_path / "in.csv", 1000, ROWS)
    with running_worker(ringhaul), viewed(valkey) as ledger:
        # Given a file that was loaded, and a job that is half done when Redis is copied
        assert ringhaul.run("schedule", "run", "files").code == 0
        hold.from_unit(2)
        options = ("-t", table, "--unit-size", "1200", "--job-id", "ld-old", "--detach", "-q")
        assert ringhaul.run("load", "in.csv", *options).code == 7
        wait_until(lambda: ledger.status("ld-old").done >= 2, "two units")
        units = ledger.status("ld-old").units
        copy_log(valkey, folder, tmp_path / "copy")
        # And that job ends, another is made, and another file is loaded after the copy
        hold.release()
        wait_until(lambda: ledger.status("ld-old").finished, "the end of the job")
        rows += write_rows(tmp_path / "later.csv", 5000, 10)
        done = ringhaul.run("load", "later.csv", "-t", table, "--job-id", "ld-later", "-q")
        assert done.code == 0, done
        rows += write_rows(tmp_path / "drop" / "b.csv", 100, 10)
        assert ringhaul.run("schedule", "run", "files").code == 0
    assert_table(cassandra_session, table, "id, v", rows)
    written = write_times(cassandra_session, table, "id", "v")

    # When the copy is restored, while nothing runs
    port = valkey.port
    valkey.release()
    shutil.rmtree(folder / LOG)
    shutil.copytree(tmp_path / "copy", folder / LOG)
    valkey.acquire()
    assert valkey.port == port
    with viewed(valkey) as ledger:
        # Then the later job is unknown
        missing = ringhaul.run("status", "ld-later")
        assert "there is no job ld-later" in missing.err, missing
        assert ledger.status("ld-old").state is JobState.RUNNING
        assert ledger.status("ld-old").done < units
        with running_worker(ringhaul):
            # and the job that was half done runs the rest again, and counts each row once
            wait_until(lambda: ledger.status("ld-old").finished, "the end of the job")
            status = ledger.status("ld-old")
            assert (status.state, status.totals["rows"]) == (JobState.COMPLETE, ROWS)
            assert_table(cassandra_session, table, "id, v", rows)
            assert write_times(cassandra_session, table, "id", "v") == written
            # and the file that arrived after the copy is loaded again, with new write times
            assert ringhaul.run("schedule", "run", "files").code == 0
            (run,) = ScheduleBook(ledger.caller).runs("files", 1)
            assert [Path(file.path).name for file in run.files] == ["b.csv"]
            done = ringhaul.run("schedule", "run", "files")
            assert "no new files to load" in done.err, done
    assert_table(cassandra_session, table, "id, v", rows)
    now = write_times(cassandra_session, table, "id", "v")
    assert {key for key in now if now[key] != written[key]} == set(range(100, 110))
    # A paused schedule does nothing by itself
    assert ringhaul.run("schedule", "pause", "files").code == 0
    listed = json.loads(ringhaul.run("schedule", "list", "--json").out)
    assert [one["state"] for one in listed["schedules"]] == ["paused"]
