"""Checks of a host's access to inputs and outputs."""

import json
import subprocess
import sys
import time
from pathlib import Path

from ringhaul.storage import preflight
from ringhaul.storage.places import PROBE_WAIT_S, WRONG_MAX
from ringhaul.storage.preflight import request

#: Where Python has its standard library; this package is installed elsewhere.
LIBRARY = [
    path for path in sys.path if path.startswith(sys.base_prefix) and "-packages" not in path
]


def run(places: dict[str, object]) -> list[dict[str, object]]:
    """The messages of a check of paths, started as workers do: without other packages."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", preflight.__file__],
        input=json.dumps(places | {"sys_path": LIBRARY}).encode(),
        capture_output=True,
        check=True,
    )
    assert done.stderr == b""
    return [json.loads(line) for line in done.stdout.splitlines()]


def wrong(places: dict[str, object]) -> list[list[str]]:
    last = run(places)[-1]
    assert list(last) == ["wrong"]
    return last["wrong"]  # type: ignore[return-value]


def test_correct_files(tmp_path: Path) -> None:
    for name in ("a/1.csv", "a/2.csv", "b/1.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x\n")
    names = [f"{tmp_path}/{name}" for name in ("a/1.csv", "a/2.csv", "b/1.csv")]
    assert run(request([(name, 2, "") for name in names])) == [
        {"at": f"{tmp_path}/a"},
        {"at": f"{tmp_path}/b"},
        {"wrong": []},
    ]


def test_files_that_are_missing_or_different(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("x\n")
    assert wrong(request([(f"{tmp_path}/x.csv", 3000, ""), (f"{tmp_path}/none/y.csv", 1, "")])) == [
        [f"{tmp_path}/x.csv", "2 bytes on the worker, 3,000 here"],
        [f"{tmp_path}/none/y.csv", "No such file or directory"],
    ]


def test_the_number_of_reported_files_is_bounded(tmp_path: Path) -> None:
    files = [(f"{tmp_path}/{number}", 1, "") for number in range(100)]
    assert len(wrong(request(files))) == WRONG_MAX


def test_a_pipe_does_not_hold_it_up(tmp_path: Path) -> None:
    subprocess.run(["mkfifo", tmp_path / "pipe"], check=True)
    assert wrong(request([(f"{tmp_path}/pipe", 0, "")])) == []


def test_a_shared_folder_that_can_be_written(tmp_path: Path) -> None:
    (tmp_path / ".probe").touch()
    assert wrong(request([], str(tmp_path), ".probe")) == []
    assert [path.name for path in tmp_path.iterdir()] == [".probe"]


def test_a_folder_that_is_not_shared(tmp_path: Path) -> None:
    began = time.monotonic()
    ((name, why),) = wrong(request([], str(tmp_path), ".probe"))
    assert name == str(tmp_path) and why.startswith("is another folder there")
    ((_, why),) = wrong(request([], f"{tmp_path}/none", ".probe"))
    assert why.startswith("is not there")
    assert time.monotonic() - began > PROBE_WAIT_S, "a shared file may take a moment to appear"


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    ((_, why),) = wrong(request([], "/proc", "self"))
    assert why.startswith("cannot be written there")


def test_only_urls_need_packages() -> None:
    assert not preflight.needs_packages(request([("/x", 1, "")], "/out", "p"))
    assert preflight.needs_packages(request([("/x", 1, ""), ("s3://b/x", 1, "")]))
    assert preflight.needs_packages(request([], "s3://b/out"))
