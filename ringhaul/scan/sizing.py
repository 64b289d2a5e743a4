"""Choose how many rows to request, so that pages have the right size. Pure.

Pages are requested in rows although their bytes matter: pages that are too small waste round trips,
pages that are too large cost memory and time out. The width of rows is unknown before the first
page and may change along the ring, so a scan starts small, grows in steps and shrinks at once.
"""

from __future__ import annotations

#: Rows of the first page, while the width of rows is unknown: half a MiB of rows of 1 KiB, and no
#: more than a worker can hold if rows are a thousand times as wide.
FIRST_ROWS = 500
#: A page is at most this many times as long as the previous page.
GROWTH = 8
#: Longer pages still gain a little, but server and worker hold twice as much: see ADR 0011.
ROWS_MAX = 30_000
#: Timeouts do not shrink pages below this: if a hundred rows take too long, their number is not the
#: cause.
ROWS_MIN = 100
#: Good pages before the page length may double; four times as many each time that this was too
#: soon, up to the maximum: a timeout costs as much as a thousand pages.
PATIENCE, PATIENCE_MAX = 4, 1024


class PageSize:
    """Chooses the rows of the next page for pages of about `bytes_wanted`."""

    def __init__(self, bytes_wanted: int, rows_first: int = FIRST_ROWS) -> None:
        self.rows = max(min(rows_first, ROWS_MAX), 1)
        self._bytes_wanted = bytes_wanted
        self._rows_max = ROWS_MAX

    def saw(self, rows: int, bytes_count: int) -> None:
        """Learn from a page of `rows` rows; a short page says little about the width of others."""
        if rows == 0:
            return
        fitting = min(self._bytes_wanted * rows // max(bytes_count, 1), self._rows_max)
        if fitting < self.rows:
            self.rows = max(fitting, 1)
        else:
            self.rows = max(self.rows, min(fitting, rows * GROWTH))

    def refused(self, rows: int) -> None:
        """Note that the server forbids pages of `rows` rows: stay below from now on."""
        self._rows_max = min(self._rows_max, max(rows // 2, 1))
        self.rows = min(self.rows, self._rows_max)


class Brake:
    """Keeps the pages of a range small after reads that took too long.

    Such a read halves them; after some good pages they double. If several good pages of the same
    length came before, the length is not to blame: it is tried again unchanged, since servers pause
    at times.
    """

    def __init__(self, rows: int = 0) -> None:
        self.rows = rows  #: most rows of a page; 0: no limit
        self._patience = PATIENCE
        self._good = 0  # good pages of this length
        self._longer = False  # this length was increased and is not proven yet

    def too_much(self, rows: int) -> None:
        """Note that a page of `rows` rows took too long."""
        good, self._good = self._good, 0
        if good >= PATIENCE:
            return
        if self._longer:
            self._patience = min(self._patience * 4, PATIENCE_MAX)
            self._longer = False
        self.rows = min(max(rows // 2, ROWS_MIN), rows)

    def good(self, rows_wanted: int) -> None:
        """Note that a page came; `rows_wanted` would be requested without a limit."""
        self._good += 1
        if self.rows and self._good >= self._patience:
            self._good, self._longer = 0, True
            self.rows = self.rows * 2 if self.rows * 2 < rows_wanted else 0

    def least(self, rows: int) -> int:
        """Return the rows to request if `rows` are wanted."""
        return min(rows, self.rows) if self.rows else rows
