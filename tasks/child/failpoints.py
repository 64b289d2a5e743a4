"""What the chaos tests make of a worker process. Nothing happens in normal use.

`_RINGHAUL_FAILPOINT=POINT[:UNIT[:FILE]]` ends the process that reaches POINT with SIGKILL, as the
kernel does when memory runs out: no `finally` runs. UNIT narrows it to one unit (empty: any).
With FILE it strikes once in all processes together: whoever makes the file.

Points, in the order in which a unit passes them:

    after_claim       the unit is claimed, none of its rows is sent
    mid_write         rows are sent, not all of them are answered
    after_checkpoint  where the unit has got to is kept for the next attempt
    after_write       every row is answered, the unit is not committed
    after_commit      the unit is committed, its message is not acknowledged

`_RINGHAUL_CHECKPOINT_S=SECONDS`: units keep where they are as often as that.
"""

from __future__ import annotations

import os
import signal

_POINT, _UNIT, _FILE = (os.environ.get("_RINGHAUL_FAILPOINT", "") + "::").split(":", 2)
_ONCE = _FILE.rstrip(":")
_CHECKPOINT_S = os.environ.get("_RINGHAUL_CHECKPOINT_S", "")


def checkpoint_s(usual_s: float) -> float:
    """Seconds between two checkpoints of a unit."""
    return float(_CHECKPOINT_S or usual_s)


def reach(point: str, unit: int) -> None:
    """Die here if the environment asks for it."""
    if point != _POINT or _UNIT not in ("", str(unit)):
        return
    if _ONCE:
        try:
            os.close(os.open(_ONCE, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        except FileExistsError:
            return
    os.kill(os.getpid(), signal.SIGKILL)
