"""Check the page sizes of a remote file while it is read, as the page headers pass by.

Looking for the headers beforehand would take a request for each.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from ringhaul.formats.parquet_leaves import Leaf
from ringhaul.formats.parquet_pages import DICTIONARY, HEADER_BYTES_MAX, PEEK_BYTES, parse_page
from ringhaul.formats.parquet_sure_rows import Held


class PageWatch:
    """Checks the pages of some leaves while each leaf is read from its beginning on."""

    def __init__(self, leaves: Sequence[Leaf]) -> None:
        held = Held(len(leaves))
        self._trails = [_Trail(leaf, held) for leaf in leaves]

    def look(self, at: int, data: bytes) -> None:
        """Check bytes before they are handed on. Raises `PagesTooLarge`, `pa.ArrowInvalid`."""
        for trail in self._trails:
            trail.look(at, data)


class _Trail:
    """The position of a leaf's next header, and the part of it that was read."""

    def __init__(self, leaf: Leaf, held: Held) -> None:
        self._leaf, self._held = leaf, held
        self._next, self._stop = leaf.start, leaf.start + leaf.stored_bytes
        self._seen = 0
        self._partial = b""
        #: Parsing is tried again when this many bytes are there: each attempt takes time that
        #: grows with their number.
        self._enough = 0

    def look(self, at: int, data: bytes) -> None:
        while self._seen < self._leaf.values_count and self._next < self._stop:
            begin = self._next + len(self._partial) - at
            if not 0 <= begin < len(data):
                return
            if not self._partial and self._finds(data[begin : begin + PEEK_BYTES]):
                continue
            part = self._partial + data[begin : begin + HEADER_BYTES_MAX]
            if len(part) >= self._enough and self._finds(part):
                continue
            if len(part) >= HEADER_BYTES_MAX:
                raise pa.ArrowInvalid(f"the page at byte {self._next:,} has a damaged header")
            if len(part) >= self._enough:
                self._enough = 2 * len(part)
            self._partial = part
            return

    def _finds(self, part: bytes) -> bool:
        """Check the next header if it is complete; return whether it is."""
        try:
            page = parse_page(part, 0, self._next)
        except IndexError:
            return False
        stored_bytes = min(page.stored_bytes, self._stop - page.start)
        self._held.check(self._leaf.path, page, stored_bytes)
        self._next, self._partial, self._enough = page.start + page.stored_bytes, b"", 0
        self._seen += page.values_count if page.kind != DICTIONARY else 0
        return True
