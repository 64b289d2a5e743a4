"""A source is one version: a job that meets another one fails, with the file and what to do.

Given a command that reads slowly,
when its file is replaced by one of the same size while it runs, or while its job is cancelled,
then it ends with exit code 4; a change of permissions does not disturb it.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cassandra.cluster import Session

from ringhaul.ledger.connection import connect
from ringhaul.ledger.keys import job_key
from ringhaul.ledger.ledger import Ledger
from tests.acceptance.command import Finished, Ringhaul, resume_at_full_speed, wait_until
from tests.acceptance.oracle import assert_table, create_table

ROWS = [(n, f"old {n:04}") for n in range(2000)]
#: Rows a second, so that a job lasts until its file has changed.
RATE = 400
COLUMNS = "id int PRIMARY KEY, v text"


@pytest.fixture
def table(cassandra_session: Session, keyspace: str) -> str:
    return create_table(cassandra_session, keyspace, COLUMNS)


@pytest.fixture
def ledger(fleet: Ringhaul) -> Iterator[Ledger]:
    with connect(fleet.env["RINGHAUL_BROKER_URL"]) as client:
        yield Ledger(client)


@pytest.fixture
def path(fleet: Ringhaul) -> Path:
    """A file of 40 KB and many units."""
    write(fleet.cwd / "in.csv", "old")
    return fleet.cwd / "in.csv"


def write(path: Path, word: str) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("id", "v"), *((n, f"{word} {n:04}") for n, _ in ROWS)])
    return path


def replace(path: Path) -> None:
    """Replace a file by one of the same size and modification time."""
    before, other = path.stat(), write(path.with_name("other"), "new")
    assert other.stat().st_size == before.st_size
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    os.replace(other, path)


def assert_replaced(done: Finished, path: Path) -> None:
    assert done.code == 4, done
    assert f"{path}: the file was replaced by another one of the same size" in done.err, done
    assert "start again once nothing replaces it" in done.err, done


def interrupted(
    fleet: Ringhaul, ledger: Ledger, *words: object, at: Callable[[], object]
) -> Finished:
    """Run a command; call `at` when its job has done some rows."""
    log, known = fleet.cwd / "log", {status.job for status in ledger.jobs()}
    with fleet.started(*words, "--rate", RATE, log=log) as process:

        def some_done() -> bool:
            jobs = [status for status in ledger.jobs() if status.job not in known]
            return any(status.done or status.live.rows for status in jobs)

        wait_until(some_done, f"rows; see {log}")
        at()
        code = process.wait(60)
    return Finished(code, "", log.read_text())


@pytest.mark.parametrize("command", ["load", "verify", "exec", "lookup"])
def test_a_file_is_replaced_while_a_command_reads_it(
    fleet: Ringhaul, ledger: Ledger, table: str, path: Path, command: str
) -> None:
    if command == "verify":
        assert fleet.run("load", path, "-t", table).code == 0
    words = {
        "load": ("load", path, "-t", table, "--unit-size", "8K"),
        "verify": ("verify", path, "-t", table, "--unit-size", "8K"),
        "exec": ("exec", f"INSERT INTO {table} (id, v) VALUES (?, ?)", "--params", path),
        "lookup": ("lookup", "-t", table, "--keys", path, "--values-mapping", "id=id", "-o", "out"),
    }[command]
    done = interrupted(fleet, ledger, *words, at=lambda: replace(path))
    assert_replaced(done, path)


def test_permissions_and_links_may_change(
    fleet: Ringhaul, ledger: Ledger, table: str, path: Path, cassandra_session: Session
) -> None:
    def touched() -> None:
        path.chmod(0o640)
        os.link(path, path.with_name("link.csv"))

    words = ("load", path, "-t", table, "--unit-size", "8K")
    done = interrupted(fleet, ledger, *words, at=touched)
    assert done.code == 0, done
    assert_table(cassandra_session, table, "id, v", ROWS)


@pytest.mark.parametrize("planned_by", ["this version", "an older version"])
def test_a_file_is_moved_over_it_while_the_job_is_cancelled(
    fleet: Ringhaul,
    ledger: Ledger,
    table: str,
    path: Path,
    cassandra_session: Session,
    planned_by: str,
) -> None:
    job = f"ld-{planned_by.replace(' ', '-')}"
    cancel = lambda: fleet.run("cancel", job)  # noqa: E731
    words = ("load", path, "-t", table, "--unit-size", "8K", "--job-id", job)
    done = interrupted(fleet, ledger, *words, at=cancel)
    assert done.code == 6, done
    if planned_by == "this version":
        replace(path)
        assert_replaced(fleet.run("resume", job), path)
        return
    # Jobs of older versions know only sizes
    spec = json.loads(ledger.job_spec(job))
    assert spec["sources"][0]["version"].startswith("file ")
    spec["sources"][0]["version"] = ""
    ledger.caller.client.set(job_key(job, "spec"), json.dumps(spec))
    assert resume_at_full_speed(fleet, job).code == 0
    assert_table(cassandra_session, table, "id, v", ROWS)
