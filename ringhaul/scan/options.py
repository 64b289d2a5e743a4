"""What a scan reads, within which bounds, and what it counts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from cassandra.query import PreparedStatement

from ringhaul.scan.pages import PageReader
from ringhaul.scan.sizing import FIRST_ROWS

#: For each `PAGE_S` of round-trip time, about a node's time for a page, `in_flight` more ranges are
#: read at once, up to `RANGES_FAR_MAX`: while a page is on the way, the node reads the next one.
PAGE_S = 0.1
RANGES_FAR_MAX = 8


class ScanTarget(NamedTuple):
    """The source of the rows; a worker process keeps it open from unit to unit."""

    reader: PageReader
    #: SELECT ... WHERE token(...) > ? AND token(...) <= ?
    prepared: PreparedStatement
    keyspace: str
    table: str = "the table"  #: the table's name, for messages
    where: str = ""  #: the cluster's addresses, for messages
    user: str = ""


@dataclass(frozen=True, kw_only=True)
class ScanOptions:
    """Limits of one scan."""

    consistency: int
    request_timeout_s: float = 12.0
    page_bytes: int = 2 << 20  #: target size of pages; see `sizing`
    page_rows_first: int = FIRST_ROWS  #: rows of the first page
    in_flight: int = 2  #: ranges read at once, more if the nodes are far: see `at_once`
    pages_ahead: int = 2  #: most pages of a range that are waiting or requested
    retries_max: int = 10  #: retries of one page before the unit is given back
    in_order: bool = False  #: whether rows come in token order
    skip_failed: bool = False  #: skip what no replica can read: see `RangeScan.missing`

    def at_once(self, distance_s: float) -> int:
        """Return how many ranges to read at once from nodes at this distance.

        In token order, what is read ahead may not be needed.
        """
        if self.in_order:
            return self.in_flight
        far = int(self.in_flight * (1 + distance_s / PAGE_S))
        return max(self.in_flight, min(far, RANGES_FAR_MAX))


@dataclass
class ScanStats:
    """Counts of a scan so far. Pages and rows count once they are handed out."""

    pages: int = 0
    bytes: int = 0
    rows: int = 0
    retries: int = 0
    splits: int = 0
    latencies: Counter[int] = field(default_factory=Counter)  #: bucket (latency.py) -> pages
