"""Limit how many sessions open at the same time.

A thousand children that start together must not all connect to the cluster in the same second.
"""

import random
import time

from ringhaul.ledger import keys
from ringhaul.ledger.connection import Caller
from ringhaul.ledger.ledger import new_token

_LOOK_S = 0.1


class Openings:
    """Places for opening a session, shared by all hosts.

    Methods raise as `Caller.script` does.
    """

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def acquire(self, name: str, limit: int, ttl_ms: int, wait_s: float) -> str | None:
        """Return a token once one of `limit` places is free; None if none is within `wait_s`.

        `ttl_ms`: the place expires after this long even if it is not released, so it should exceed
        the longest opening.
        """
        token = new_token()
        give_up_at = time.monotonic() + wait_s
        while not self._caller.script("opening", keys.openings_key(name), token, limit, ttl_ms):
            pause_s = _LOOK_S * random.uniform(0.5, 1.5)
            if time.monotonic() + pause_s > give_up_at:
                return None
            time.sleep(pause_s)
        return token

    def release(self, name: str, token: str) -> None:
        """Free the place; does nothing if it has expired."""
        self._caller.command("ZREM", keys.openings_key(name), token)
