"""py-spy sees where worker processes spend their time, as docs/how-to/profile.md says."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from cassandra.cluster import Session

from producer.local.stack import Endpoints
from tests.acceptance.command import PYTHON_MODULE, Ringhaul
from tests.acceptance.conftest import fleet_settings
from tests.acceptance.oracle import assert_report, assert_table, create_table
from tests.acceptance.running import running_worker

#: In the environment of the tests, which need not be active.
PY_SPY = Path(sys.executable).with_name("py-spy")
RECORD = (PY_SPY, "record", "--subprocesses", "--format", "speedscope", "-o", "seen.json")
ROWS = [(n, f"name {n}") for n in range(50_000)]


@pytest.fixture
def table(cassandra_session: Session, keyspace: str, tmp_path: Path) -> str:
    """An empty table of two columns, for `rows.csv` in the working directory."""
    lines = "".join(f"{n},{name}\n" for n, name in ROWS)
    (tmp_path / "rows.csv").write_text(f"id,name\n{lines}")
    return create_table(cassandra_session, keyspace, "id int PRIMARY KEY, name text")


def functions_in(path: Path) -> set[str]:
    """Return the names of the functions that were seen, whether called or at work themselves."""
    return {frame["name"] for frame in json.loads(path.read_bytes())["shared"]["frames"]}


def spy(ringhaul: Ringhaul, arguments: Sequence[object]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        list(map(str, arguments)),
        env=ringhaul.env,
        cwd=ringhaul.cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_a_load_under_py_spy(embedded: Ringhaul, cassandra_session: Session, table: str) -> None:
    load = ("load", "rows.csv", "-t", table, "-c", 1, "--quiet")
    with spy(embedded, (*RECORD, "--", *PYTHON_MODULE, *load)) as spied:
        said = spied.communicate(timeout=120)
    assert spied.returncode == 0, said
    assert_table(cassandra_session, table, "id, name", ROWS)
    # Its embedded worker's process is among what was seen
    assert "run_load_unit" in functions_in(embedded.cwd / "seen.json")


def test_a_worker_that_is_running_lets_py_spy_in(
    endpoints: Endpoints,
    broker_url: str,
    cassandra_session: Session,
    table: str,
    tmp_path: Path,
) -> None:
    ringhaul = Ringhaul(fleet_settings(endpoints, tmp_path / "state", broker_url), tmp_path)
    # Given a worker that is no child of py-spy, as it is on a host where only parents may trace
    with (
        running_worker(ringhaul, slots=1) as worker,
        spy(ringhaul, (*RECORD, "--pid", worker.pid)) as spied,
    ):
        assert spied.stdout is not None
        assert "Sampling" in spied.stdout.readline()
        # When it runs a load meanwhile
        done = ringhaul.run("load", "rows.csv", "-t", table, "--json")
        (name,) = assert_report(done, rows=len(ROWS))["workers"]
        dumped = subprocess.run(
            [PY_SPY, "dump", "--pid", name.rpartition(":")[2]],
            capture_output=True,
            text=True,
            timeout=60,
        )
        worker.terminate()
        assert worker.wait(40) == 0, (tmp_path / "worker.log").read_text()
        said = spied.communicate(timeout=60)
    assert spied.returncode == 0, said
    assert_table(cassandra_session, table, "id, name", ROWS)
    # Then its process is seen, at work and at rest
    assert "run_load_unit" in functions_in(tmp_path / "seen.json")
    assert (dumped.returncode, dumped.stderr) == (0, "")
    assert "MainThread" in dumped.stdout
