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
    assert refused.stderr == run("producer", "laod", cwd=tmp_path).stderr
