"""How many rows to ask for, so that a page is of the right size. Pure.

A page is asked for in rows while what matters is its bytes: too few are round trips for nothing,
too many are memory and a time-out. The width of rows is not known before the first page and may
change along the ring, so a scan begins small, grows by steps and shrinks at once.
"""

from __future__ import annotations

#: Of the first page, while the width of rows is unknown: half a MiB of rows of 1 KiB, and not
#: more than a worker can hold with rows a thousand times as wide.
FIRST_ROWS = 500
#: A page is at most this many times as long as the one before.
GROWTH = 8
#: Rows beyond this gain nothing: the server has their page in memory as objects.
ROWS_MAX = 20_000


class PageSize:
    """The rows of the next page, of pages of about `bytes_wanted`."""

    def __init__(self, bytes_wanted: int, rows_first: int = FIRST_ROWS) -> None:
        self.rows = max(min(rows_first, ROWS_MAX), 1)
        self._bytes_wanted = bytes_wanted

    def saw(self, rows: int, bytes_count: int) -> None:
        """A page of `rows` rows came. One with few of them says nothing of the others' width."""
        if rows == 0:
            return
        fitting = min(self._bytes_wanted * rows // max(bytes_count, 1), ROWS_MAX)
        if fitting < self.rows:
            self.rows = max(fitting, 1)
        else:
            self.rows = max(self.rows, min(fitting, rows * GROWTH))
