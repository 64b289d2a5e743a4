"""Who is in the middle of a unit, as the parent of the processes sees it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

#: Two children, each told over a pipe to begin or end; what the parent sees after each step.
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
