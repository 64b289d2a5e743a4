"""How many units wait or are worked on, as the size of a Redis set: what scales workers asks it.

The queue's length would not do: only a few units of a job are in it at a time, and those that are
being worked on are not. KEDA's Redis scaler reads the size of a list, set, sorted set or hash, and
knows nothing else of ringhaul (deploy/k8s/keda).

Counted where units become more (so that the first worker can be started for them), and at each
sweep, where they have become fewer.
"""

from ringhaul.ledger import keys
from ringhaul.ledger.connection import Caller

#: Enough for any number of workers that somebody would start, and at most some 250 kB of memory.
OPEN_UNITS_MAX = 4096


def count_open_units(caller: Caller) -> int:
    """Count the open units of all running jobs and bring the set `keys.OPEN` to that size.

    Returns the size: at most `OPEN_UNITS_MAX`. Raises as `Caller.script` does.
    """
    size = caller.script("open_units", keys.OPEN, keys.RUNNING, keys.META_PATTERN, OPEN_UNITS_MAX)
    return int(size)
