"""Python files in the current folder are never executed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

#: Modules that the commands import at some point, of dependencies and of ringhaul.
_SHADOWS = ("numpy", "pyarrow", "cassandra", "celeryconfig", "flowerconfig", "tornado", "tasks")


@pytest.mark.parametrize("command", ["worker", "beat", "flower"])
def test_python_files_of_the_current_folder_are_not_run(
    tmp_path: Path, broker_url: str, command: str
) -> None:
    made = tmp_path / "made"
    for name in _SHADOWS:
        (tmp_path / f"{name}.py").write_text(f"open({str(made)!r}, 'a').write({name!r})\n")
    environment = dict(os.environ) | {
        "RINGHAUL_BROKER_URL": broker_url,
        "RINGHAUL_STATE_DIR": str(tmp_path / "state"),
        "RINGHAUL_CLUSTER_PORT": "1",
    }
    more = {"worker": ["-c", "1"], "beat": [], "flower": ["--port=0"]}[command]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            [str(Path(sys.executable).with_name("ringhaul")), command, *more],
            cwd=tmp_path,
            env=environment,
            stdout=log,
            stderr=log,
        )
    try:
        up = {"worker": b"mingle|ready|no node|connected", "beat": b"beat", "flower": b"Broker:"}
        give_up = time.monotonic() + 90
        words = up[command].split(b"|")
        while not any(word in (tmp_path / "log").read_bytes() for word in words):
            assert process.poll() is None and time.monotonic() < give_up, (
                tmp_path / "log"
            ).read_text()
            time.sleep(0.2)
        time.sleep(1)
    finally:
        process.terminate()
        try:
            process.wait(40)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    assert not made.exists(), made.read_text()


def test_another_users_numba_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / ".numba_config.yaml"
    file.write_text("cache_dir: /tmp\n")
    file.chmod(0o666)
    done = subprocess.run(
        [str(Path(sys.executable).with_name("ringhaul")), "config", "show"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2 and "would be read by numba" in done.stderr
