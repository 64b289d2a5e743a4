"""Limits, callbacks and counts of one unit's requests. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ringhaul.dataplane.pacing import Leave, free

if TYPE_CHECKING:
    from ringhaul.dataplane.window import WindowStats

#: Rows per page of a response. Smaller than a scan's: a thousand may be on their way.
PAGE_ROWS = 2000


def never(number: int) -> bool:
    """Return False for any row."""
    return False


def always() -> bool:
    """Return True."""
    return True


def ignore_row(number: int, reason: str) -> None:
    """Ignore a row and its reason."""


def nowhere(number: int) -> str:
    """Return "": the place of the row is unknown."""
    return ""


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """Limits of one unit's requests."""

    consistency: int
    page_rows: int = PAGE_ROWS
    requests_max: int = 0  #: most unanswered requests on a connection; 0: the connection's default
    #: Timestamp of the write of row 0 in microseconds; each further row adds one, so that a row
    #: that is sent again is the same write. 0: the server's clock. Not for statements that are not
    #: idempotent.
    timestamp_us: int = 0
    retries_max: int = 10  #: retries of one request before the unit is given back
    request_timeout_s: float = 12.0


@dataclass(frozen=True, kw_only=True)
class RequestHooks:
    """Callbacks while requests are on their way."""

    #: Called at least once a second while responses are pending; may raise to stop.
    tick: Callable[[], None]
    #: Called before requests are sent, with their number; blocks while a rate limit is used up.
    throttle: Callable[[int], None]
    #: Called with (number, reason) of a row that the server rejects because of its values.
    on_reject: Callable[[int, str], None]
    #: Called with (number, reason) of a row that may or may not have been written.
    on_doubt: Callable[[int, str], None]
    #: Returns how much may be sent together now, and be unanswered.
    leave: Callable[[], Leave] = free
    #: Called with the number of a refused row. True: the caller requests its data in another way,
    #: and it is not rejected.
    take_over: Callable[[int], bool] = never
    #: Called with the number of a row whose response has more than one page. True: the caller
    #: requests the rest in another way, and this page is the last.
    cut_off: Callable[[int], bool] = never
    #: Whether the caller accepts more rows besides the unanswered rows.
    takes_more: Callable[[], bool] = always
    #: Called with (number, current values) of an answered row whose condition did not hold.
    on_not_applied: Callable[[int, str], None] = ignore_row
    #: Returns the position in the input of the row with a number; empty if unknown.
    place: Callable[[int], str] = nowhere


@dataclass
class RequestStats:
    """Counts of one unit's requests."""

    answered: int = 0  #: rows of values whose response is complete
    rows: int = 0  #: rows of the responses
    pages: int = 0  #: pages after the first of each response
    retries: int = 0
    rejected: int = 0
    in_doubt: int = 0
    request_bytes: int = 0  #: sent
    answer_bytes: int = 0
    latencies: Counter[int] = field(default_factory=Counter)  #: bucket (latency.py) -> requests
    window: WindowStats | None = None

    @property
    def bytes(self) -> int:
        """Bytes sent and received."""
        return self.request_bytes + self.answer_bytes
