"""Failpoints with which tests kill a worker process or hold a unit. They do nothing in normal use.

`_RINGHAUL_FAILPOINT=POINT[:UNIT[:FILE]]` kills the process that reaches POINT with SIGKILL, as the
kernel does when memory runs out: no `finally` runs. UNIT limits it to one unit (empty: any).
With FILE only one process is killed in all: the first to create the file.

Points, in the order in which a unit passes them:

    after_claim       the unit is claimed, none of its rows is sent
    mid_write         rows are sent, not all of them are answered
    after_checkpoint  the unit's position is stored for the next attempt
    after_write       every row is answered, the unit is not committed
    after_commit      the unit is committed, its message is not acknowledged

`_RINGHAUL_FAILPOINT=hold:[UNIT]:FILE` holds units half way, so that a test can act on a job that
cannot end meanwhile. As long as FILE exists, each unit whose number is at least the number in FILE
(empty: 0) waits at its first tick. It renews its lease and obeys pauses, cancellations and limits
like a unit at work.

`_RINGHAUL_UNIT_S=SECONDS`: each unit stays half way for so long, with some of its rows written. A
limit of the job's rate would not do: it keeps all but one of its units from starting.

`_RINGHAUL_CHECKPOINT_S=SECONDS`: time between two checkpoints of a unit.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

_POINT, _UNIT, _FILE = (os.environ.get("_RINGHAUL_FAILPOINT", "") + "::").split(":", 2)
_ONCE = _FILE.rstrip(":")
#: Time between two ticks of a unit that is held.
_HOLD_S = 0.02
_UNIT_S = float(os.environ.get("_RINGHAUL_UNIT_S") or 0)
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


def holding(tick: Callable[[int, int, int], None], unit: int) -> Callable[[int, int, int], None]:
    """Return a tick that holds the unit while a test wants that; without a test, `tick` itself."""
    if _UNIT_S:
        tick = _staying(tick, _UNIT_S)
    if _POINT != "hold" or _UNIT not in ("", str(unit)):
        return tick

    def hold(rows: int, rejected: int, input_bytes: int) -> None:
        while _is_held(unit):
            tick(rows, rejected, input_bytes)
            time.sleep(_HOLD_S)
        tick(rows, rejected, input_bytes)

    return hold


def _staying(tick: Callable[[int, int, int], None], seconds: float) -> Callable[..., None]:
    """Return a tick that lasts `seconds` longer, once, as soon as the unit has rows."""
    left_s = seconds

    def stay(rows: int, rejected: int, input_bytes: int) -> None:
        nonlocal left_s
        while rows and left_s > 0:
            time.sleep(_HOLD_S)
            left_s -= _HOLD_S
            tick(rows, rejected, input_bytes)
        tick(rows, rejected, input_bytes)

    return stay


def _is_held(unit: int) -> bool:
    try:
        first = Path(_ONCE).read_text()
    except FileNotFoundError:
        return False
    return unit >= int(first or 0)
