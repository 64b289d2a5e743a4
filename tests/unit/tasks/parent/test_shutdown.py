"""Units in progress as the worker's parent process sees them, and its shutdown."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

#: Two children that begin and end units by commands over a pipe; prints the parent's view.
SCRIPT = """
import os, signal
from tasks.parent.shutdown import UnitsInProgress

units = UnitsInProgress()
assert not units.any(), "not opened"
units.open()
assert not units.any()

def child():
    orders, do = os.pipe()
    done, say = os.pipe()
    pid = os.fork()
    if not pid:
        while order := os.read(orders, 1):
            {b"b": units.begin, b"e": units.end}[order]()
            os.write(say, b".")
        os._exit(0)
    def tell(order):
        os.write(do, order)
        assert os.read(done, 1)
    return pid, tell

(first, tell_first), (second, tell_second) = child(), child()
seen = []
for tell, order in (
    (tell_first, b"b"), (tell_second, b"b"), (tell_first, b"e"), (tell_second, b"e"),
    (tell_second, b"b"),
):
    tell(order)
    seen.append(units.any())
# One that is killed has no unit any more
os.kill(second, signal.SIGKILL)
os.waitpid(second, 0)
seen.append(units.any())
os.kill(first, signal.SIGKILL)
print(seen)
"""


def test_units_are_in_progress_until_they_end_or_their_process_does() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=Path(__file__).parents[4],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "[True, True, True, False, True, False]\n", done.stderr


#: A process that gets a signal to stop while its main thread waits for a lock that stays taken. Its
#: pool is one child, which works on a unit for some seconds, or until it is killed.
STUCK_SCRIPT = """
import math, os, sys, threading, time, types
from tasks.parent import shutdown

shutdown.FAREWELL_S = 0.3
works_s, patience_s = map(float, sys.argv[1:])
shutdown.UNITS.open()
pid = os.fork()
if not pid:
    shutdown.UNITS.begin()
    time.sleep(works_s)
    shutdown.UNITS.end()
    time.sleep(60)
while not shutdown.UNITS.any():
    time.sleep(0.01)
print(pid, time.monotonic(), flush=True)
processes = types.SimpleNamespace(_pool=[types.SimpleNamespace(pid=pid)])
shutdown.Ending(types.SimpleNamespace(_pool=processes), patience_s).start()
lock = threading.Lock()
lock.acquire()
lock.acquire()
"""


@pytest.mark.parametrize(
    ("works_s", "patience_s", "least_s"), [(1.0, "inf", 0.9), (30.0, "0.5", 0.5)]
)
def test_a_process_whose_main_thread_is_stuck_ends_after_its_units(
    works_s: float, patience_s: str, least_s: float
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", STUCK_SCRIPT, str(works_s), patience_s],
        cwd=Path(__file__).parents[4],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0
    pid, started_s = done.stdout.split()
    took_s = time.monotonic() - float(started_s)
    assert least_s <= took_s < least_s + 10
    until = time.monotonic() + 10
    while _runs(int(pid)):
        assert time.monotonic() < until, "its child still runs"
        time.sleep(0.02)


def _runs(pid: int) -> bool:
    """Whether a process runs: it is neither dead nor a zombie."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
