"""Run a command and learn what it cost: time, CPU of it and its children, peak memory."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

_LAUNCH = Path(__file__).parent / "launch.py"


class Done(NamedTuple):
    """A command that ended."""

    out: str
    err: str
    whole_s: float  #: start to exit
    cpu_s: float  #: of the command and of all that it started and that ended
    rss_bytes_max: int  #: of the largest of them


def run_command(
    command: Sequence[str], env: Mapping[str, str], codes: Sequence[int] = (0,)
) -> Done:
    """Run to the end. Raises `RuntimeError` when the exit code is none of `codes`."""
    with (
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
        tempfile.TemporaryFile() as cost,
    ):
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_LAUNCH), str(cost.fileno()), *command],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            pass_fds=(cost.fileno(),),
            process_group=0,
        )
        try:
            process.wait()
        except BaseException:  # Ctrl-C: what it launched must not go on
            os.killpg(process.pid, signal.SIGTERM)
            process.wait()
            raise
        for file in (out, err, cost):
            file.seek(0)
        told, wrong = out.read().decode(), err.read().decode()
        costs = json.loads(cost.read())
    if costs["code"] not in codes:
        raise RuntimeError(
            f"{' '.join(command[:6])} ... ended {costs['code']}:\n{told[-500:]}{wrong[-2000:]}"
        )
    return Done(told, wrong, costs["whole_s"], costs["cpu_s"], costs["rss_bytes_max"])
