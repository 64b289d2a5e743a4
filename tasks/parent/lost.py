"""Attempts whose processes died, on their way from a worker's parent process to the ledger.

Redis may be away at that moment, for one outage may have ended both. What was known of the process
would be lost then: word of it counts late, too, so the keeper sends it again.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from ringhaul.errors import LedgerUnavailable

if TYPE_CHECKING:
    from ringhaul.breadcrumb import Loss
    from ringhaul.ledger.ledger import Ledger

log = logging.getLogger(__name__)

#: Of one worker. More processes do not die while Redis is away, unless nothing works anyway.
WAITING_MAX = 1000


class LostAttempt(NamedTuple):
    """What the ledger has to know."""

    job: str
    unit: int
    epoch: int
    token: str
    loss: Loss | None  #: where it was


class LostAttempts:
    """Of one worker."""

    def __init__(self) -> None:
        self._waiting: deque[LostAttempt] = deque(maxlen=WAITING_MAX)

    def tell(self, ledger: Ledger, lost: LostAttempt) -> None:
        """End the attempt's lease and note where it was, now or when Redis is back."""
        self._waiting.append(lost)
        try:
            self.tell_again(ledger)
        except LedgerUnavailable as error:
            log.warning("the ledger will hear of a lost process later: %s", error)

    def tell_again(self, ledger: Ledger) -> None:
        """Send what has not arrived, in order. Raises as the ledger does; what it refuses for
        another reason than being away is not sent again."""
        while self._waiting:
            job, unit, epoch, token, loss = self._waiting[0]
            try:
                ledger.lost(job, unit, token, loss=loss, epoch=epoch)
            except LedgerUnavailable:
                raise
            except Exception:
                log.exception("could not tell the ledger of a lost process")
            self._waiting.popleft()


#: Of this worker.
LOST = LostAttempts()
