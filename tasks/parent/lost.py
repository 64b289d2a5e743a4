"""Report attempts whose processes died from a worker's parent process to the ledger.

Redis may be unavailable at that moment, since the same outage may have hit both. The report counts
even if it is late, so it is queued and the keeper sends it again.
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

#: Reports queued by one worker. If more processes die while Redis is down, nothing works anyway.
WAITING_MAX = 1000


class LostAttempt(NamedTuple):
    """Report of one attempt whose process died."""

    job: str
    unit: int
    epoch: int
    token: str
    loss: Loss | None  #: where in its unit it was


class LostAttempts:
    """Queue of reports of one worker."""

    def __init__(self) -> None:
        self._waiting: deque[LostAttempt] = deque(maxlen=WAITING_MAX)

    def report(self, ledger: Ledger, lost: LostAttempt) -> None:
        """End the attempt's lease and record where it was, now or once Redis is back."""
        self._waiting.append(lost)
        try:
            self.flush(ledger)
        except LedgerUnavailable as error:
            text = "a lost process will be reported to the ledger later: %s"
            log.warning(text, error, extra={"job": lost.job, "unit": lost.unit})

    def flush(self, ledger: Ledger) -> None:
        """Send the queued reports in order. Raises `LedgerUnavailable`; a report that fails for any
        other reason is logged and dropped."""
        while self._waiting:
            job, unit, epoch, token, loss = self._waiting[0]
            try:
                ledger.lost(job, unit, token, loss=loss, epoch=epoch)
            except LedgerUnavailable:
                raise
            except Exception:
                text = "could not report a lost process to the ledger"
                log.exception(text, extra={"job": job, "unit": unit})
            self._waiting.popleft()


#: The queue of this worker.
LOST = LostAttempts()
