"""Jobs whose keys ran out are dropped from the lists that still name them.

Redis ends a job's own keys by itself; what tells of all jobs is looked through a little at a time,
whenever somebody comes by.
"""

import random

from ringhaul.ledger import keys
from ringhaul.ledger.connection import Caller

#: Looked at in one call, which takes 0.2 ms of the server's time. More than a caller adds
#: until it comes by again, so that a list gets shorter.
LOOKED_AT_MAX = 100


def forget_gone(caller: Caller, list_key: str) -> list[str]:
    """Drop from a list of jobs (job -> ms) some that are older than a job is kept, and gone.

    Returns those that were dropped. Raises as `Caller.script` does.
    """
    dropped: list[bytes] = caller.script(
        "forget",
        list_key,
        keys.META_PATTERN,
        keys.JOB_TTL_S * 1000,
        LOOKED_AT_MAX,
        random.randrange(1 << 31),
    )
    return [job.decode() for job in dropped]
