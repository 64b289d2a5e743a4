"""A job's rate limits in one worker process: a little local credit, bought from Redis.

One token bucket in Redis for rows and one for bytes serve all workers of the job, so a limit holds
for the job however many hosts work on it. Credit is bought for a tenth of a second at a time, so
that batches of ten rows do not cost a round trip each. It is paid for after the purchase, by
waiting, so all workers get their turn.

Limits may change at any time. A debt then stays the same amount, and is paid at the new rate.
"""

from __future__ import annotations

import time

from ringhaul.breadcrumb import TRAIL
from ringhaul.dataplane.pacing import BOUNDLESS
from ringhaul.ledger import rate
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.pace import DRAW_S, NO_LIMITS, Limits

#: A bucket keeps unused tokens for this long: workers that come late, because they are still busy
#: with their last purchase, take more the next time.
BURST_S = 0.5


class _Meter:
    """This process's account with one bucket."""

    def __init__(self, bucket: str) -> None:
        self.bucket = bucket
        self.per_s = 0  #: 0: no limit
        self.credit = 0
        self.due_s = 0.0  #: When the debt is paid, by this process's monotonic clock

    @property
    def at_once(self) -> int:
        """The smallest purchase."""
        return max(1, int(self.per_s * DRAW_S))

    def draw(self, amount: int) -> rate.Draw:
        """Return the request that takes `amount` from the bucket."""
        return rate.Draw(self.bucket, amount, self.per_s, max(1, int(self.per_s * BURST_S)))

    def set(self, per_s: int, now_s: float) -> None:
        """Change the rate limit (0: none) and convert the debt to the new rate."""
        if per_s == self.per_s:
            return
        owed = max(0.0, self.due_s - now_s) * self.per_s
        self.due_s = now_s + owed / per_s if per_s else 0.0
        self.per_s = per_s
        self.credit = min(self.credit, self.at_once)

    def wanted(self, amount: int) -> int:
        """Return how much to buy in order to spend `amount`; 0: the credit suffices."""
        if not self.per_s or amount <= self.credit:
            return 0
        return max(amount - self.credit, self.at_once)


class JobThrottle:
    """One job's limits in one worker process; see `ringhaul.dataplane.pacing.Throttle`.

    Kept between units, so that no credit is lost.
    """

    def __init__(self, ledger: Ledger, job: str) -> None:
        self._ledger, self._job = ledger, job
        self._rows, self._bytes = _Meter("rows"), _Meter("bytes")
        self._limits = NO_LIMITS
        self.waited_s = 0.0  #: Sum over all units of the job in this process

    def set(self, limits: Limits) -> None:
        """Apply new limits from now on."""
        if limits == self._limits:
            return
        self._limits = limits
        now_s = time.monotonic()
        self._rows.set(limits.rows_per_s, now_s)
        self._bytes.set(limits.bytes_per_s, now_s)

    @property
    def paced(self) -> bool:
        """Whether rows or bytes have a limit."""
        return bool(self._rows.per_s or self._bytes.per_s)

    def pay(self, rows: int, bytes_count: int) -> None:
        """Spend credit for data about to be sent or just read; buys more as needed."""
        amounts = ((self._rows, rows), (self._bytes, bytes_count))
        bought = [(m, wanted) for m, amount in amounts if (wanted := m.wanted(amount))]
        if bought:
            draws = [meter.draw(wanted) for meter, wanted in bought]
            waits_ms = rate.take(self._ledger.caller, self._job, draws)
            now_s = time.monotonic()
            for (meter, wanted), wait_ms in zip(bought, waits_ms, strict=True):
                meter.credit += wanted
                meter.due_s = now_s + wait_ms / 1000
        for meter, amount in amounts:
            if meter.per_s:
                meter.credit -= amount

    def wait_s(self) -> float:
        """Return the seconds until all debts are paid; 0 or less: now."""
        return max(self._rows.due_s, self._bytes.due_s) - time.monotonic()

    def waited(self, seconds: float) -> None:
        """Record time spent waiting for the limits."""
        self.waited_s += seconds
        TRAIL.waited(seconds)

    @property
    def rows_at_once(self) -> int:
        return self._rows.at_once if self._rows.per_s else BOUNDLESS

    @property
    def bytes_at_once(self) -> int:
        return self._bytes.at_once if self._bytes.per_s else BOUNDLESS

    @property
    def requests_max(self) -> int:
        return self._limits.in_flight or BOUNDLESS
