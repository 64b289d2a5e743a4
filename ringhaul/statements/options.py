"""The terms of one unit's requests: their bounds, whom they call, what they count. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ringhaul.dataplane.pacing import Leave, free

if TYPE_CHECKING:
    from ringhaul.dataplane.window import WindowStats

#: Rows of an answer's page. Smaller than a scan's: a thousand may be on their way.
PAGE_ROWS = 2000


def never(number: int) -> bool:
    """No row's."""
    return False


def always() -> bool:
    """Whatever there is."""
    return True


def untold(number: int, reason: str) -> None:
    """Nobody is told."""


def nowhere(number: int) -> str:
    """No row's place."""
    return ""


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """Bounds of one unit's requests."""

    consistency: int
    page_rows: int = PAGE_ROWS
    requests_max: int = 0  #: unanswered on a wire at most; 0: the wire's own bound
    #: Of the write of row 0 in microseconds, and one more for each further row, so that a row that
    #: is sent again is the same write. 0: the server's clock. Not for what may not be repeated.
    timestamp_us: int = 0
    retries_max: int = 10  #: tries again of one request before the unit is given back
    request_timeout_s: float = 12.0


@dataclass(frozen=True, kw_only=True)
class RequestHooks:
    """What is called while requests are on their way."""

    #: Called at least once a second while there are answers to wait for; may raise to stop.
    tick: Callable[[], None]
    #: Called before requests are sent, with their number; blocks while a rate limit is used up.
    throttle: Callable[[int], None]
    #: (number, reason) of a row that the server refuses for what it is.
    on_reject: Callable[[int, str], None]
    #: (number, reason) of a row that was written or was not: nobody can tell.
    on_doubt: Callable[[int, str], None]
    #: What may be sent together now, and be without an answer.
    leave: Callable[[], Leave] = free
    #: Called with the number of a row that the server refuses: whether the caller asks in another
    #: way for what it is about, so that it is no reject.
    take_over: Callable[[int], bool] = never
    #: Called with the number of a row whose answer has more than one page: whether the caller asks
    #: in another way for what is not on the first one, so that this is the last.
    cut_off: Callable[[int], bool] = never
    #: Whether the caller takes more rows beside those that were asked for and are not answered.
    takes_more: Callable[[], bool] = always
    #: (number, what is there instead) of a row whose condition did not hold. It is answered.
    on_not_applied: Callable[[int, str], None] = untold
    #: Where in the input the row with a number stands, in words; empty: nobody knows.
    place: Callable[[int], str] = nowhere


@dataclass
class RequestStats:
    """Counts of one unit's requests."""

    answered: int = 0  #: rows of values whose answer is complete
    rows: int = 0  #: of the answers
    pages: int = 0  #: beyond the first ones
    retries: int = 0
    rejected: int = 0
    in_doubt: int = 0
    request_bytes: int = 0  #: sent
    answer_bytes: int = 0
    latencies: Counter[int] = field(default_factory=Counter)  #: bucket (latency.py) -> requests
    window: WindowStats | None = None

    @property
    def bytes(self) -> int:
        """Sent and received."""
        return self.request_bytes + self.answer_bytes
