"""Run the command in a mount namespace, with file systems of any size."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.acceptance.command import Ringhaul, wait_until


class Namespaced(Ringhaul):
    """The command in a private mount namespace, which process `pid` holds."""

    def __init__(self, env: Mapping[str, str], cwd: Path, pid: int) -> None:
        super().__init__(env, cwd, fresh=True)  # what is forked is not in the namespace
        self._pid = pid
        self.prefix = ["nsenter", f"--target={pid}", "--mount", "--"]

    def argv(self, *args: object) -> list[str]:
        return [*self.prefix, *super().argv(*args)]

    def mount(self, folder: Path, options: str) -> None:
        """Mount memory at a folder, with options such as `size=100k` or `remount,size=10m`."""
        subprocess.run(
            [*self.prefix, "mount", "-t", "tmpfs", "none", str(folder), "-o", options], check=True
        )

    def seen(self, path: Path) -> Path:
        """Return how this process sees a path of the namespace."""
        return Path(f"/proc/{self._pid}/root{path}")


@contextmanager
def mount_namespace() -> Iterator[int]:
    """Yield the pid of a process with a mount namespace; its mounts vanish with it."""
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode:
        pytest.skip("mount namespaces are not permitted here")
    with subprocess.Popen(["unshare", "--mount", "sleep", "infinity"]) as keeper:
        try:
            ours = os.readlink("/proc/self/ns/mnt")
            wait_until(lambda: os.readlink(f"/proc/{keeper.pid}/ns/mnt") != ours, "the namespace")
            yield keeper.pid
        finally:
            keeper.kill()
