"""The job's rate limit as one worker sees it: a little local credit, bought from Redis.

One token bucket in Redis serves all workers of the job, so the limit holds for the job however
many hosts work on it. Credit is bought for a tenth of a second at a time, so that batches of ten
rows do not cost a round trip each.
"""

from __future__ import annotations

from ringhaul.ledger import rate
from ringhaul.ledger.ledger import Ledger

CREDIT_S = 0.1


class RowThrottle:
    """Call it with a number of rows before sending them; the answer is how long to wait, in s."""

    def __init__(self, ledger: Ledger, job: str, rows_per_s: int) -> None:
        self._ledger, self._job, self._rows_per_s = ledger, job, rows_per_s
        self._credit = 0

    def __call__(self, rows: int) -> float:
        if not self._rows_per_s:
            return 0.0
        wait_ms = 0
        if rows > self._credit:
            wanted = max(rows - self._credit, int(self._rows_per_s * CREDIT_S))
            burst = max(1, int(self._rows_per_s * CREDIT_S))
            wait_ms = rate.take(self._ledger.caller, self._job, wanted, self._rows_per_s, burst)
            self._credit += wanted
        self._credit -= rows
        return wait_ms / 1000
