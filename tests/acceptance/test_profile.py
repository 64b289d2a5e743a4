"""Profile mode: one profile for each worker process, and a table of the slowest functions."""

from __future__ import annotations

import json
import pstats
import re
import signal
from pathlib import Path

import pytest
from cassandra.cluster import Session

from producer.local.stack import Endpoints
from tests.acceptance.command import Ringhaul
from tests.acceptance.conftest import fleet_settings
from tests.acceptance.oracle import assert_report, assert_table, create_table
from tests.acceptance.refusals import assert_refused, assert_usage
from tests.acceptance.running import running_worker

Rows = list[tuple[int, str]]


@pytest.fixture
def table(cassandra_session: Session, keyspace: str) -> str:
    """An empty table of two columns."""
    return create_table(cassandra_session, keyspace, "id int PRIMARY KEY, name text")


@pytest.fixture
def nowhere(tmp_path: Path) -> Ringhaul:
    """The command without configuration, broker or cluster."""
    return Ringhaul({"RINGHAUL_STATE_DIR": str(tmp_path / "state")}, tmp_path)


def write_rows(path: Path, count: int) -> Rows:
    rows = [(n, f"name {n}") for n in range(count)]
    path.write_text("id,name\n" + "".join(f"{n},{name}\n" for n, name in rows))
    return rows


def pid_in(path: Path) -> int:
    """Return the pid of the process that wrote the profile."""
    match = re.fullmatch(r"worker-\d{8}T\d{6}-.+-(\d+)\.(prof|speedscope\.json)", path.name)
    assert match is not None, path
    return int(match[1])


def functions_in(text: str) -> dict[str, float]:
    """Return function -> own seconds from the table on stderr."""
    rows = re.findall(r"^ +(\d+\.\d\d) +\d+% +\d+\.\d\d  (.+)$", text, re.MULTILINE)
    return {name: float(own_s) for own_s, name in rows}


def test_a_load_writes_a_profile_of_each_of_its_processes(
    embedded: Ringhaul, cassandra_session: Session, table: str
) -> None:
    folder = embedded.cwd / "deep" / "profiles"
    rows = write_rows(embedded.cwd / "rows.csv", 20_000)
    # When a load in many units is profiled
    done = embedded.run(
        *("load", "rows.csv", "-t", table, "-c", 2, "--unit-size", 16_384, "--json"),
        *("--profile", folder),
    )
    # Then it completes as usual,
    summary = assert_report(done, rows=len(rows))
    assert_table(cassandra_session, table, "id, name", rows)
    # each process that ran a unit wrote a file that Python's own tools read,
    files = sorted(folder.iterdir())
    ran = {int(worker.rpartition(":")[2]): units for worker, units in summary["workers"].items()}
    assert {pid_in(path) for path in files} == set(ran)
    for path in files:
        stats = pstats.Stats(str(path)).stats  # type: ignore[attr-defined]
        counts = {name: entry[1] for (_, _, name), entry in stats.items()}
        assert counts["run_load_unit"] == ran[pid_in(path)], "every unit, the last one too"
        # (none of them spent a second on importing pandas, which pyarrow would look for)
        assert not [file for file, _, _ in stats if "/pandas/" in file]
    # and stderr names ringhaul's functions among the slowest ones.
    assert f" profile  {len(files)} file" in done.err
    functions = functions_in(done.err)
    assert any(re.match(r"ringhaul/\S+\.py:\d+ \w+", name) for name in functions), done.err
    assert list(functions.values()) == sorted(functions.values(), reverse=True)
    assert str(embedded.cwd) not in "".join(functions), "no paths of this machine"


def test_a_worker_is_sampled_by_py_spy(
    endpoints: Endpoints,
    broker_url: str,
    cassandra_session: Session,
    table: str,
    tmp_path: Path,
) -> None:
    env = fleet_settings(endpoints, tmp_path / "state", broker_url)
    ringhaul, log = Ringhaul(env, tmp_path), tmp_path / "worker.log"
    rows = write_rows(tmp_path / "rows.csv", 50_000)
    profiled = ("--profile", "pyspy", "--profile-dir", "profiles")
    # Given a worker under py-spy
    with running_worker(ringhaul, *profiled, slots=1) as worker:
        # When it has run a load and is stopped
        done = ringhaul.run("load", "rows.csv", "-t", table, "--json")
        summary = assert_report(done, rows=len(rows))
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(40) == 0, log.read_text()
    assert_table(cassandra_session, table, "id, name", rows)
    # Then the samples of its process exist
    (path,) = (tmp_path / "profiles").iterdir()
    assert [pid_in(path)] == [int(name.rpartition(":")[2]) for name in summary["workers"]]
    frames = json.loads(path.read_bytes())["shared"]["frames"]
    assert "run_load_unit" in {frame["name"] for frame in frames}
    # and the worker has logged its slowest functions
    text = log.read_text()
    assert f" profile  1 file in {tmp_path}/profiles: " in text
    assert functions_in(text), text
    assert "Traceback" not in text


def test_a_quiet_load_with_the_profile_setting_prints_nothing(
    embedded: Ringhaul, table: str
) -> None:
    write_rows(embedded.cwd / "rows.csv", 50_000)
    done = embedded.run(
        *("load", "rows.csv", "-t", table, "-c", 1, "-q", "--profile", "profiles"),
        RINGHAUL_WORKER_PROFILE="pyspy",
    )
    assert (done.code, done.out, done.err) == (0, "", "")
    (path,) = (embedded.cwd / "profiles").iterdir()
    assert path.name.endswith(".speedscope.json")
    assert json.loads(path.read_bytes())["profiles"]


def test_profiles_that_cannot_be_written_are_refused(nowhere: Ringhaul, tmp_path: Path) -> None:
    write_rows(tmp_path / "rows.csv", 1)
    load = ("load", "rows.csv", "-t", "ks.t", "--profile")
    # A file is not a folder, and cannot contain one
    assert_usage(
        nowhere.run(*load, "rows.csv"),
        "Invalid value for '--profile': Directory 'rows.csv' is a file.",
    )
    assert_refused(
        nowhere.run(*load, "rows.csv/profiles"),
        2,
        f"cannot create {tmp_path}/rows.csv/profiles for profiles: Not a directory",
    )
    # A load cannot profile workers that it did not start
    assert_refused(
        nowhere.run(*load, "profiles", RINGHAUL_BROKER_URL="redis://127.0.0.1:1/0"),
        2,
        "--profile applies to embedded workers, and a broker is configured: start a worker with "
        "ringhaul worker --profile cprofile instead",
    )
    # There are only two kinds, by flag and by setting
    assert_usage(
        nowhere.run("worker", "--profile", "perf"),
        "Invalid value for '--profile': 'perf' is not one of 'cprofile', 'pyspy'.",
    )
    assert_refused(
        nowhere.run("worker", RINGHAUL_WORKER_PROFILE="perf"),
        2,
        'worker.profile = "perf" (env RINGHAUL_WORKER_PROFILE): '
        "expected 'off', 'cprofile' or 'pyspy'",
    )
    # A folder without a profile
    assert_refused(
        nowhere.run("worker", "--profile-dir", "profiles"),
        2,
        "--profile-dir needs --profile cprofile or --profile pyspy",
    )
    assert not (tmp_path / "profiles").exists()
    assert not (tmp_path / "state").exists()
