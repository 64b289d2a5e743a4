"""Failpoints with which chaos tests kill a worker process. They do nothing in normal use.

`_RINGHAUL_FAILPOINT=POINT[:UNIT[:FILE]]` kills the process that reaches POINT with SIGKILL, as the
kernel does when memory runs out: no `finally` runs. UNIT limits it to one unit (empty: any).
With FILE only one process is killed in all: the first to create the file.

Points, in the order in which a unit passes them:

    after_claim       the unit is claimed, none of its rows is sent
    mid_write         rows are sent, not all of them are answered
    after_checkpoint  the unit's position is stored for the next attempt
    after_write       every row is answered, the unit is not committed
    after_commit      the unit is committed, its message is not acknowledged

`_RINGHAUL_CHECKPOINT_S=SECONDS`: time between two checkpoints of a unit.
"""

from __future__ import annotations

import os
import signal

_POINT, _UNIT, _FILE = (os.environ.get("_RINGHAUL_FAILPOINT", "") + "::").split(":", 2)
_ONCE = _FILE.rstrip(":")
_CHECKPOINT_S = os.environ.get("_RINGHAUL_CHECKPOINT_S", "")


def checkpoint_s(usual_s: float) -> float:
    """Return the seconds between two checkpoints: `usual_s`, unless a test sets another."""
    return float(_CHECKPOINT_S or usual_s)


def reach(point: str, unit: int) -> None:
    """Kill this process if the environment sets this failpoint."""
    if point != _POINT or _UNIT not in ("", str(unit)):
        return
    if _ONCE:
        try:
            os.close(os.open(_ONCE, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        except FileExistsError:
            return
    os.kill(os.getpid(), signal.SIGKILL)
