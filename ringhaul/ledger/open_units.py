"""Count waiting and active units as the size of a Redis set, for autoscaling of workers.

The queue's length is unsuitable: only a few units of a job are queued at a time, and active units
are not. KEDA's Redis scaler reads the size of a list, set, sorted set or hash, and knows nothing
else of ringhaul (deploy/k8s/keda).

The count is updated where units are added (so that the first worker can be started for them), and
at each sweep, when there may be fewer.
"""

from ringhaul.ledger import keys
from ringhaul.ledger.connection import Caller

#: Enough for any realistic number of workers, and at most some 250 kB of memory.
OPEN_UNITS_MAX = 4096


def count_open_units(caller: Caller) -> int:
    """Count the open units of all running jobs and bring the set `keys.OPEN` to that size.

    Returns the size: at most `OPEN_UNITS_MAX`. Raises as `Caller.script` does.
    """
    size = caller.script("open_units", keys.OPEN, keys.RUNNING, keys.META_PATTERN, OPEN_UNITS_MAX)
    return int(size)
