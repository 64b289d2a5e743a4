"""Run a command on a separate terminal, and type into it."""

from __future__ import annotations

import os
import pty
import select
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

TIMEOUT_S = 120.0


def on_a_terminal(
    argv: Sequence[str], typed: str, env: Mapping[str, str], cwd: Path, *, prompt: str = ": "
) -> tuple[int, str]:
    """Run a command whose controlling terminal is a new one; return exit code and screen.

    `typed`: once `prompt` is on the screen.
    """
    pid, terminal = pty.fork()
    if pid == 0:  # the child; it must not return into the test
        try:
            os.chdir(cwd)
            os.execve(argv[0], list(argv), dict(env))
        finally:
            os._exit(127)
    shown, screen, has_typed = b"", "", False
    deadline = time.monotonic() + TIMEOUT_S
    try:
        while time.monotonic() < deadline:
            if not select.select([terminal], [], [], 1.0)[0]:
                continue
            try:
                data = os.read(terminal, 4096)
            except OSError:  # EIO: the child has ended
                break
            if not data:
                break
            shown += data  # it may end in the middle of a character
            screen = shown.decode(errors="replace")
            if not has_typed and prompt in screen:
                os.write(terminal, typed.encode())
                has_typed = True
        else:
            os.kill(pid, 9)
        _, status = os.waitpid(pid, 0)
    finally:
        os.close(terminal)
    return os.waitstatus_to_exitcode(status), screen
