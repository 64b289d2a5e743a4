"""What commands keep for a while is gone at their end, or, if they were killed, after the next one.

That holds for every test here: see `nothing_left_behind` in `conftest.py`. These are about kills.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from cassandra.cluster import Session

from tests.acceptance.command import Process, Ringhaul, wait_until
from tests.acceptance.hold import Hold
from tests.acceptance.inventory import entries
from tests.acceptance.oracle import assert_table

ROWS = [(number, f"a{number}") for number in range(4000)]


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    folder = tmp_path / "tmp"
    folder.mkdir()
    return folder


@pytest.fixture
def ringhaul(embedded: Ringhaul, temporary: Path) -> Ringhaul:
    embedded.env["TMPDIR"] = str(temporary)
    return embedded


def test_the_next_command_removes_what_killed_ones_left(
    ringhaul: Ringhaul,
    temporary: Path,
    cassandra_session: Session,
    keyspace: str,
    tmp_path: Path,
) -> None:
    state = tmp_path / "state"
    cassandra_session.execute(f"CREATE TABLE {keyspace}.t (id int PRIMARY KEY, a text)")
    (tmp_path / "in.csv").write_text("id,a\n" + "".join(f"{id},{a}\n" for id, a in ROWS))
    load = ("load", "in.csv", "-t", f"{keyspace}.t", "--unit-size", "4K")
    # Given commands that are killed with their workers: at their start, when the worker has its
    # folder, when it has processes, and when rows are written
    moments: list[Callable[[], bool]] = [
        lambda: (state / "valkey").exists(),
        lambda: any(state.glob("run/*")),
        lambda: any(state.glob("run/*/trails/*")),
        lambda: bool(cassandra_session.execute(f"SELECT id FROM {keyspace}.t LIMIT 1").one()),
    ]
    left: set[Path] = set()
    hold = Hold(tmp_path / "held")
    hold.from_unit(1)
    for moment in moments:
        with ringhaul.started(*load, **hold.env) as process:
            wait_until(moment, "the moment")
            _kill_all(process)
        left |= entries(temporary, [state])
    assert any(path.parent.name == "run" for path in left), left
    # When the next one runs, then nothing is left of any of them
    assert ringhaul.run(*load).code == 0
    assert entries(temporary, [state]) == set()
    assert not (state / "run").exists()
    assert_table(cassandra_session, f"{keyspace}.t", "id, a", ROWS)


def test_the_worker_of_a_killed_command_removes_its_own(
    ringhaul: Ringhaul,
    temporary: Path,
    cassandra_session: Session,
    keyspace: str,
    tmp_path: Path,
) -> None:
    state = tmp_path / "state"
    cassandra_session.execute(f"CREATE TABLE {keyspace}.t (id int PRIMARY KEY, a text)")
    (tmp_path / "in.csv").write_text("id,a\n" + "".join(f"{id},{a}\n" for id, a in ROWS))
    load = ("load", "in.csv", "-t", f"{keyspace}.t", "--unit-size", "4K")
    hold = Hold(tmp_path / "held")
    hold.from_unit(0)
    with ringhaul.started(*load, **hold.env) as process:
        wait_until(lambda: any(state.glob("run/*/trails/*")), "the worker")
        process.kill()
        process.wait()
    wait_until(lambda: not entries(temporary, [state]), "the worker to stop")


def _kill_all(process: Process) -> None:
    """Kill a command and all that it started, but for its Valkey, which serves others, too."""
    with contextlib.suppress(psutil.NoSuchProcess):
        me = psutil.Process(process.pid)
        family = [one for one in me.children(recursive=True) if "valkey" not in one.name()]
        for one in (me, *family):
            with contextlib.suppress(psutil.NoSuchProcess):
                one.kill()
        psutil.wait_procs(family, timeout=10)
    process.wait()
