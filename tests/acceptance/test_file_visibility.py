"""Before it creates a job, the command checks that the workers' hosts see the same files.

On one machine only `/proc/self` differs between processes. So a path below `/proc/self/cwd` is one
file for a command and another one for a worker, as on two hosts.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis
from cassandra.cluster import Session

from producer.local.stack import Endpoints
from producer.local.valkey import EmbeddedValkey
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.workers import Workers
from tests.acceptance.command import Ringhaul, wait_until
from tests.acceptance.conftest import fleet_settings
from tests.acceptance.hold import Hold
from tests.acceptance.oracle import assert_table, create_table

HERE = "/proc/self/cwd"
ROWS = [(n, f"name {n}") for n in range(2000)]
TEXT = "id,name\n" + "".join(f"{n},{name}\n" for n, name in ROWS)


@pytest.fixture
def ledger(broker_url: str) -> Iterator[Ledger]:
    with redis.Redis.from_url(broker_url) as client:
        yield Ledger(client)


@pytest.fixture
def ringhaul(endpoints: Endpoints, broker: EmbeddedValkey, tmp_path: Path) -> Ringhaul:
    """The command in a folder with `x.csv`."""
    (tmp_path / "command").mkdir()
    (tmp_path / "command" / "x.csv").write_text(TEXT)
    env = fleet_settings(endpoints, tmp_path / "state", broker.url)
    return Ringhaul(env, tmp_path / "command")


@pytest.fixture
def table(cassandra_session: Session, keyspace: str) -> str:
    return create_table(cassandra_session, keyspace, "id int PRIMARY KEY, name text")


@contextmanager
def worker(ringhaul: Ringhaul, ledger: Ledger, folder: Path, host: str) -> Iterator[None]:
    """Run a worker in another folder and under another host name."""
    folder.mkdir()
    workers = Workers(ledger.caller)
    with Ringhaul(ringhaul.env | Hold(folder / "held").env, folder).started(
        "worker", "-c", 1, f"--hostname=w@{host}", log=folder / "worker.log"
    ):
        there = lambda: host in {worker.host for worker in workers.alive()}  # noqa: E731
        wait_until(there, f"the worker; see {folder / 'worker.log'}")
        yield


def test_hosts_that_see_different_files_are_named_and_no_job_is_created(
    ringhaul: Ringhaul, ledger: Ledger, table: str, tmp_path: Path, cassandra_session: Session
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    with worker(ringhaul, ledger, one, "host-1"), worker(ringhaul, ledger, two, "host-2"):
        os.link(ringhaul.cwd / "x.csv", one / "x.csv")
        load = ("load", f"{HERE}/x.csv", "-t", table)

        done = ringhaul.run(*load)
        assert done.code == 2, done
        assert f"host-2: {HERE}/x.csv: No such file or directory" in done.err
        assert "host-1" not in done.err and "use a mount that all hosts share" in done.err

        (two / "x.csv").write_text(TEXT[:-5])
        for arguments in (load, (*load, "--dry-run"), (*load, "--detach")):
            done = ringhaul.run(*arguments)
            assert done.code == 2, done
            assert f"bytes on the worker, {len(TEXT):,} here" in done.err and not done.out

        done = ringhaul.run("exec", f"INSERT INTO {table} (id, name) VALUES (?, ?)",
                            "--params", f"{HERE}/x.csv")  # fmt: skip
        assert done.code == 2 and "host-2" in done.err, done
        done = ringhaul.run("unload", "-t", table, "-o", f"{HERE}/out")
        assert done.code == 2 and "host-2: /proc/self/cwd/out: is not there" in done.err, done
        assert [path.name for path in ringhaul.cwd.iterdir()] == ["x.csv"]
        assert ledger.jobs() == []

        (two / "x.csv").write_text(TEXT)
        done = ringhaul.run(*load)
        assert done.code == 2 and "copies must keep the time (cp -p, rsync -t)" in done.err, done
        assert ledger.jobs() == []

        (two / "x.csv").unlink()
        os.link(ringhaul.cwd / "x.csv", two / "x.csv")
        began = time.monotonic()
        done = ringhaul.run(*load)
        assert done.code == 0 and time.monotonic() - began < 30, done
        assert ledger.caller.command("KEYS", "ringhaul:look*") == [], "looks are forgotten"
    assert_table(cassandra_session, table, "id, name", ROWS)


def test_hosts_answer_the_check_while_all_their_processes_are_busy(
    ringhaul: Ringhaul, ledger: Ledger, table: str, tmp_path: Path
) -> None:
    folder = tmp_path / "one"
    with worker(ringhaul, ledger, folder, "host-1"):
        os.link(ringhaul.cwd / "x.csv", folder / "x.csv")
        hold = Hold(folder / "held")
        hold.from_unit(0)
        held = ("load", f"{HERE}/x.csv", "-t", table, "--job-id", "ld-slow")
        with ringhaul.started(*held) as busy:
            wait_until(lambda: ledger.units_at_work("ld-slow") if ledger.jobs() else False, "work")
            (ringhaul.cwd / "y.csv").write_text(TEXT)
            done = ringhaul.run("load", f"{HERE}/y.csv", "-t", table)
            assert done.code == 2 and f"host-1: {HERE}/y.csv: No such file" in done.err, done
            assert ledger.units_at_work("ld-slow") and busy.poll() is None
            assert ringhaul.run("cancel", "ld-slow").code == 0
            assert busy.wait(30) == 6


def test_spooled_standard_input_is_invisible_to_other_hosts(
    ringhaul: Ringhaul, ledger: Ledger, table: str, tmp_path: Path
) -> None:
    with worker(ringhaul, ledger, tmp_path / "one", "host-1"):
        state = {"RINGHAUL_STATE_DIR": f"{HERE}/state"}
        done = ringhaul.run("load", "-", "-t", table, stdin=TEXT.encode(), **state)
        assert done.code == 2 and f"host-1: {HERE}/state/spool/" in done.err, done
        assert list((ringhaul.cwd / "state" / "spool").iterdir()) == []
