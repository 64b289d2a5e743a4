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
#: Longer pages still gain a little, for which server and worker hold twice as much: see ADR 0011.
ROWS_MAX = 30_000
#: Pages are not made smaller than this because of time-outs: where a hundred rows take too long,
#: it is not the rows.
ROWS_MIN = 100
#: Good pages before a page may be twice as long again; four times as many each time that this was
#: too soon, up to the greatest: a time-out costs as much as a thousand pages.
PATIENCE, PATIENCE_MAX = 4, 1024


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


class Brake:
    """Keeps the pages of a range small after reads that took too long.

    Such a read halves them, and some good pages double them. A page as long as several good ones
    before it is not at fault: it is tried once more as it is, since servers have their pauses.
    """

    def __init__(self, rows: int = 0) -> None:
        self.rows = rows  #: of a page at most; 0: no bound
        self._patience = PATIENCE
        self._good = 0  # pages of this length
        self._longer = False  # than those before

    def too_much(self, rows: int) -> None:
        """A page of `rows` rows took too long."""
        good, self._good = self._good, 0
        if good >= PATIENCE:
            return
        if self._longer:
            self._patience = min(self._patience * 4, PATIENCE_MAX)
            self._longer = False
        self.rows = min(max(rows // 2, ROWS_MIN), rows)

    def good(self, rows_wanted: int) -> None:
        """A page came; `rows_wanted` would be asked for without a bound."""
        self._good += 1
        if self.rows and self._good >= self._patience:
            self._good, self._longer = 0, True
            self.rows = self.rows * 2 if self.rows * 2 < rows_wanted else 0

    def least(self, rows: int) -> int:
        """The rows to ask for where `rows` are wanted."""
        return min(rows, self.rows) if self.rows else rows
