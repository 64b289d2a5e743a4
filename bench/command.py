"""Run a command and measure it: time, CPU including its children, peak memory."""

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
    """A finished command and its cost."""

    out: str
    err: str
    whole_s: float  #: start to exit
    cpu_s: float  #: of the command and its finished children
    rss_bytes_max: int  #: of the largest of them


def run_command(
    command: Sequence[str], env: Mapping[str, str], codes: Sequence[int] = (0,)
) -> Done:
    """Run a command to its end. Raise `RuntimeError` if its exit code is not in `codes`."""
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
        except BaseException:  # Ctrl-C: its children must not continue
            os.killpg(process.pid, signal.SIGTERM)
            process.wait()
            raise
        for file in (out, err, cost):
            file.seek(0)
        stdout, stderr = out.read().decode(), err.read().decode()
        costs = json.loads(cost.read())
    if costs["code"] not in codes:
        raise RuntimeError(
            f"{' '.join(command[:6])} ... ended {costs['code']}:\n{stdout[-500:]}{stderr[-2000:]}"
        )
    return Done(stdout, stderr, costs["whole_s"], costs["cpu_s"], costs["rss_bytes_max"])
