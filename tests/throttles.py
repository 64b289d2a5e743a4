"""Limits set by a test, in place of those of a job."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from ringhaul.dataplane.pacing import BOUNDLESS


@dataclass
class Limited:
    """A `ringhaul.dataplane.pacing.Throttle` that never waits, with these sizes."""

    rows_at_once: int = BOUNDLESS
    bytes_at_once: int = BOUNDLESS
    requests_max: int = BOUNDLESS
    first_wait_s: float = 0.0
    paced: bool = True
    paid: list[tuple[int, int]] = field(default_factory=list)  #: (rows, bytes)
    due_s: float = 0.0
    waited_s: float = 0.0

    def pay(self, rows: int, bytes_count: int) -> None:
        if not self.paid:
            self.due_s = time.monotonic() + self.first_wait_s
        self.paid.append((rows, bytes_count))

    def wait_s(self) -> float:
        return self.due_s - time.monotonic()

    def waited(self, seconds: float) -> None:
        self.waited_s += seconds

    @property
    def rows(self) -> int:
        """Rows that were paid for."""
        return sum(rows for rows, _ in self.paid)

    @property
    def bytes(self) -> int:
        """Bytes that were paid for."""
        return sum(size for _, size in self.paid)
