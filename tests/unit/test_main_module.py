"""`python -m ringhaul` is the command `ringhaul`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def run(module: str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-P", "-m", module, *arguments]
    return subprocess.run(argv, cwd=cwd, capture_output=True, text=True, timeout=60)


def test_the_package_runs_like_the_command(tmp_path: Path) -> None:
    version = run("ringhaul", "--version", cwd=tmp_path)
    assert version.stdout.startswith("ringhaul, version ")
    assert (version.returncode, version.stderr) == (0, "")
    refused = run("ringhaul", "laod", cwd=tmp_path)
    assert refused.returncode == 2
    assert "Usage: ringhaul" in refused.stderr and "did you mean 'load'" in refused.stderr
    script = [Path(sys.executable).with_name("ringhaul"), "laod"]
    command = subprocess.run(script, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert refused.stderr == command.stderr
