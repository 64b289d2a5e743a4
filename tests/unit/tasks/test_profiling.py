"""Profiles of a worker process: by Python's own profiler, and by py-spy from outside."""

from __future__ import annotations

import json
import os
import pstats
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from config.settings import Settings, load_settings
from ringhaul.errors import UsageError
from tasks import profiling
from tasks.profiling import CallProfiler, Profiler, prepare_profiles, py_spy, start_profiler


def settings(tmp_path: Path, **worker: Any) -> Settings:
    flags = {f"worker.{name}": value for name, value in worker.items()}
    return load_settings({"state_dir": tmp_path / "state", **flags}).settings


def in_a_unit() -> None:
    sum(range(1000))


def between_units() -> None:
    sum(range(1000))


def calls(path: Path) -> dict[str, int]:
    """Number of calls of each function above."""
    counts = {}
    for (_, _, name), (_, count, *_) in pstats.Stats(str(path)).stats.items():  # type: ignore[attr-defined]
        if name in ("in_a_unit", "between_units"):
            counts[name] = count
    return counts


def test_only_units_are_profiled_and_all_of_them(tmp_path: Path) -> None:
    path = tmp_path / "one.prof"
    profiler = CallProfiler(path)
    for _ in range(3):
        profiler.unit_started()
        in_a_unit()
        profiler.unit_ended()
        between_units()
    profiler.stop()
    assert calls(path) == {"in_a_unit": 3}
    assert list(tmp_path.iterdir()) == [path]


def test_a_profile_is_written_between_units_but_not_after_each(tmp_path: Path) -> None:
    path = tmp_path / "one.prof"
    profiler = CallProfiler(path)

    def run_unit() -> None:
        profiler.unit_started()
        in_a_unit()
        profiler.unit_ended()

    # The first unit is written at once: a process that is killed later leaves a profile.
    run_unit()
    assert calls(path) == {"in_a_unit": 1}
    # Units in quick succession are not; their profile is written with a unit after the pause.
    run_unit()
    assert calls(path) == {"in_a_unit": 1}
    profiler._write_due = time.monotonic()
    run_unit()
    assert calls(path) == {"in_a_unit": 3}


def test_a_unit_cut_short_by_the_end_of_the_process_is_in_the_profile(tmp_path: Path) -> None:
    path = tmp_path / "one.prof"
    profiler = CallProfiler(path)
    profiler.unit_started()
    in_a_unit()
    profiler.stop()
    between_units()
    assert calls(path) == {"in_a_unit": 1}


def test_a_process_without_a_unit_writes_nothing(tmp_path: Path) -> None:
    CallProfiler(tmp_path / "one.prof").stop()
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_profiled_by_default(tmp_path: Path) -> None:
    off = settings(tmp_path)
    assert prepare_profiles(off) is None
    assert type(start_profiler(off)) is Profiler
    assert list(tmp_path.iterdir()) == []


def test_profiles_go_to_the_state_folder_by_default(tmp_path: Path) -> None:
    here = tmp_path / "state" / "profiles"
    assert prepare_profiles(settings(tmp_path, profile="cprofile")) == here
    assert stat.S_IMODE(here.stat().st_mode) == 0o700
    there = tmp_path / "a" / "b"
    assert prepare_profiles(settings(tmp_path, profile="cprofile", profile_dir=there)) == there
    assert there.is_dir()


def test_a_folder_that_cannot_be_created_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    wrong = settings(tmp_path, profile="cprofile", profile_dir=tmp_path / "file" / "profiles")
    with pytest.raises(UsageError) as refusal:
        prepare_profiles(wrong)
    assert str(refusal.value) == (
        f"cannot create {tmp_path}/file/profiles for profiles: Not a directory"
    )


def test_a_missing_py_spy_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match=r'pip install "ringhaul\[profile\]"'):
        prepare_profiles(settings(tmp_path, profile="pyspy"))
    # One on the PATH is enough
    (tmp_path / "py-spy").write_text("#!/bin/sh\n")
    (tmp_path / "py-spy").chmod(0o755)
    assert py_spy() == str(tmp_path / "py-spy")


#: A process that is profiled from outside, busy until it is stopped or killed.
BUSY = """
import os, signal, sys, time
from pathlib import Path
from tasks.profiling import SamplingProfiler, py_spy

def busy():
    end = time.process_time() + 2
    # By the clock of its own work: on a busy machine, py-spy takes a while to start, too.
    while time.process_time() < end:
        sum(range(10_000))

profiler = SamplingProfiler(Path(sys.argv[1]), py_spy())
busy()
if sys.argv[2] == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
profiler.stop()
assert Path(sys.argv[1]).exists(), "written before the process ends"
"""


@pytest.mark.parametrize("end", ["in order", "killed"])
def test_py_spy_writes_where_a_process_was_busy(tmp_path: Path, end: str) -> None:
    path = tmp_path / f"one{profiling.PYSPY_SUFFIX}"
    done = subprocess.run(
        [sys.executable, "-c", BUSY, str(path), end],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])},
        timeout=120,
    )
    assert done.returncode == (0 if end == "in order" else -signal.SIGKILL), done.stderr
    deadline = time.monotonic() + 20
    while not path.exists() or not path.read_bytes().rstrip().endswith(b"}"):
        assert time.monotonic() < deadline, done.stderr
        time.sleep(0.05)
    document = json.loads(path.read_bytes())
    assert "busy" in {frame["name"] for frame in document["shared"]["frames"]}
    assert sum(sum(thread["weights"]) for thread in document["profiles"]) > 0.5
