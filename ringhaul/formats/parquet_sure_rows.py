"""Find how many rows of a row group are sure to fit in memory, from the headers of their pages.

Headers bound the decompressed size of pages (see `parquet_pages`). A row of a page with indices
takes no more than the longest value of the dictionary, and for columns without lists it is known
which rows a page holds. So the most that a batch can take is known before it is read. Pages that
take too much are refused.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from ringhaul.formats.expanded_sizes import OFFSET_BYTES
from ringhaul.formats.parquet_footer import Stored
from ringhaul.formats.parquet_leaves import Leaf
from ringhaul.formats.parquet_pages import (
    DELTA_BYTE_ARRAY,
    DICTIONARY,
    INDEX_ENCODINGS,
    Page,
    longest_plain,
    pages,
    unpack,
)

#: One page of each column and its dictionary are in memory at a time, decompressed. Together they
#: may take `HELD_BYTES`, or `COLUMN_HELD_BYTES` for each of many columns, or their size in the file
#: times `HELD_TIMES`. A value may have 128 MiB, and is always within one page.
HELD_BYTES = 256 << 20
COLUMN_HELD_BYTES = 4 << 20
HELD_TIMES = 4
#: Largest dictionary that is decompressed here to find its longest value.
DICTIONARY_BYTES_MAX = 16 << 20
#: Bytes that a value of varying length takes beside its own: Arrow's view of it, or its offset.
VALUE_BYTES = 16
#: Bytes of a list element while it is decoded: two levels of 2 bytes, a value, an offset.
ELEMENT_BYTES = 16
#: Largest factor by which a codec can decompress. The other codecs have no such bound.
_TIMES = {"UNCOMPRESSED": 1, "SNAPPY": 22, "LZ4": 256, "LZ4_RAW": 256, "GZIP": 1033}
#: Pages of old writers may extend this far beyond the end of a chunk in the footer.
_PADDING_BYTES = 100


class PagesTooLarge(pa.ArrowInvalid):  # type: ignore[misc]
    """Pages that must be in memory at the same time are too large."""


class Worst(NamedTuple):
    """Upper bounds of what some rows of one leaf take."""

    bytes_: int  #: without values from a dictionary
    indices_count: int  #: values from a dictionary
    known: bool  #: False: the bounds are not known


class SureRows:
    """Finds how many rows are sure to fit, whatever the rows before them took."""

    def __init__(self, file: Stored, leaves: Sequence[Leaf], rows_count: int) -> None:
        """Raise `PagesTooLarge` and what `pages` raises; so does `rows`."""
        self._file, self._rows_count = file, rows_count
        held = Held(len(leaves))
        # Values of one width need no check, if even the largest factor of their codecs is harmless.
        one_width = [leaf for leaf in leaves if leaf.flat and leaf.width]
        little = 2 * sum(map(_unpacks_to, one_width)) <= HELD_BYTES
        walks = [
            (leaf, _Walk(file, leaf, held))
            for leaf in leaves
            if not (leaf.flat and leaf.width)
            or not (little or _unpacks_to(leaf) <= COLUMN_HELD_BYTES)
        ]
        self._flat_bytes = sum(leaf.width for leaf in leaves if leaf.flat)
        self._flat = [(leaf, walk) for leaf, walk in walks if leaf.flat]
        self._nested = [(leaf, walk.whole()) for leaf, walk in walks if not leaf.flat]
        for _, walk in self._flat:
            walk.worst(0, 1)
        self._dictionaries = {leaf.path: walk.dictionary for leaf, walk in walks}

    def longest(self, leaf: Leaf, enough: int) -> int | None:
        """Return the bytes of the longest value in a leaf's dictionary, or a few more; 0: none.

        `enough`: a result up to this need not be exact. None: it would take too long to find.
        """
        page = self._dictionaries[leaf.path]
        if page is None:
            return 0
        if page.unpacked_bytes <= enough:
            return page.unpacked_bytes
        if max(page.unpacked_bytes, page.stored_bytes) > DICTIONARY_BYTES_MAX:
            return None
        data = unpack(self._file.read(page.start, page.stored_bytes), page, leaf.codec)
        found = None if data is None else longest_plain(data, page.values_count)
        return None if found is None else found + OFFSET_BYTES

    def rows(
        self, done: int, rows_max: int, longest: dict[str, int], bytes_max: int, shared_max: int
    ) -> int:
        """Return how many rows from `done` on are sure to fit in these bytes; 0: hardly any.

        `longest`: bytes of the longest shared value, by leaf. `bytes_max`: bound on the bytes that
        rows do not share. `shared_max`: bound on their shared values, expanded.
        """
        count = min(rows_max, self._rows_count - done)
        while count > 0:
            bytes_, shared = self._flat_bytes * count, 0
            of_leaves = [(leaf, walk.worst(done, done + count)) for leaf, walk in self._flat]
            for leaf, worst in of_leaves + self._nested:
                if leaf.width and leaf.flat:
                    continue
                if not worst.known:
                    return 0
                bytes_ += worst.bytes_
                if worst.indices_count:
                    if leaf.path not in longest:
                        return 0
                    shared += worst.indices_count * longest[leaf.path]
            if bytes_ <= bytes_max and shared <= shared_max:
                return count
            count //= 2
        return 0

    def likely_row_bytes(self) -> float:
        """Return the bytes of a row with values from dictionaries of average length."""
        of_dictionaries = (
            page.unpacked_bytes / max(page.values_count, 1)
            for page in self._dictionaries.values()
            if page is not None
        )
        return self._flat_bytes + sum(of_dictionaries)


class _Walk:
    """The pages of a leaf, examined one ahead of what is read."""

    def __init__(self, file: Stored, leaf: Leaf, held: Held) -> None:
        end = min(leaf.start + leaf.stored_bytes + _PADDING_BYTES, file.size_bytes)
        self._pages = pages(file.read, leaf.start, end, leaf.values_count)
        self._stop = end
        self._leaf, self._held = leaf, held
        #: Pages, each with the number of its first value and the number after its last one.
        self._ahead: deque[tuple[int, int, Page]] = deque()
        self._end = 0
        self.dictionary: Page | None = None

    def worst(self, first: int, end: int) -> Worst:
        """Bound what rows [first, end) take, with one value each. `first` never decreases."""
        while self._end <= end and self._step():
            pass
        while self._ahead and self._ahead[0][1] <= first:
            self._ahead.popleft()
        bytes_ = VALUE_BYTES * (end - first)
        indices_count = 0
        known = True
        for page_first, page_end, page in self._ahead:
            if page_first >= end:
                break
            if page.encoding in INDEX_ENCODINGS:
                indices_count += min(page_end, end) - max(page_first, first)
            else:
                bytes_ += max(page.unpacked_bytes, page.stored_bytes)
                known &= page.encoding != DELTA_BYTE_ARRAY
        return Worst(bytes_, indices_count, known)

    def whole(self) -> Worst:
        """Bound what all rows take, with any number of values each."""
        bytes_ = indices_count = 0
        known = True
        width = self._leaf.width or VALUE_BYTES
        while self._step():
            _, _, page = self._ahead.popleft() if self._ahead else (0, 0, None)
            if page is None:
                continue
            bytes_ += (ELEMENT_BYTES + width) * page.values_count
            if page.encoding in INDEX_ENCODINGS:
                indices_count += page.values_count
            else:
                bytes_ += max(page.unpacked_bytes, page.stored_bytes)
                known &= page.encoding != DELTA_BYTE_ARRAY
        return Worst(bytes_, indices_count, known)

    def _step(self) -> bool:
        """Examine the next page. Returns False if there is none."""
        page = next(self._pages, None)
        if page is None:
            return False
        self._held.check(self._leaf.path, page, min(page.stored_bytes, self._stop - page.start))
        if page.kind == DICTIONARY:
            if self.dictionary is not None or self._end:
                raise pa.ArrowInvalid(f"column {self._leaf.path} has a dictionary after its values")
            self.dictionary = page
        elif page.values_count:
            self._ahead.append((self._end, self._end + page.values_count, page))
            self._end += page.values_count
        return True


class Held:
    """The size of the largest page and the dictionary of all leaves together."""

    def __init__(self, leaves_count: int) -> None:
        self._least = max(HELD_BYTES, COLUMN_HELD_BYTES * leaves_count)
        self._largest: dict[tuple[str, bool], tuple[int, int]] = {}
        self._unpacked_bytes = self._stored_bytes = 0

    def check(self, path: str, page: Page, stored_bytes: int) -> None:
        """Raise `PagesTooLarge` if a page is too large beside the others.

        `stored_bytes`: how many the file really holds.
        """
        key = (path, page.kind == DICTIONARY)
        unpacked, stored = self._largest.get(key, (0, 0))
        if page.unpacked_bytes <= unpacked and stored_bytes <= stored:
            return
        of_both = max(unpacked, page.unpacked_bytes), max(stored, stored_bytes)
        self._largest[key] = of_both
        self._unpacked_bytes += of_both[0] - unpacked
        self._stored_bytes += of_both[1] - stored
        if self._unpacked_bytes > max(self._least, HELD_TIMES * self._stored_bytes):
            what = "dictionary" if page.kind == DICTIONARY else "page"
            raise PagesTooLarge(
                f"column {path} has a {what} of {page.stored_bytes:,} bytes that unpacks to "
                f"{page.unpacked_bytes:,}. One page of each column is in memory at a time, and "
                f"they may take {self._least:,} bytes together, or {HELD_TIMES} times what they "
                "take in the file. Write the file again with smaller pages, in pyarrow by a "
                "smaller write_batch_size"
            )


def _unpacks_to(leaf: Leaf) -> float:
    """Return the most bytes that all pages of a leaf can decompress to, whatever they say."""
    return leaf.stored_bytes * _TIMES.get(leaf.codec, math.inf)
