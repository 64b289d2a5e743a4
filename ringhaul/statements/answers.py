"""Gather responses into batches, and derive from their sizes how many requests to allow. Pure.

A batch keeps the server's bytes (`replies.py`), so that thousands of responses can be decoded to
columns at once. Bytes on their way are limited as well: the size of a response is unknown before it
comes, so requests are limited by the mean size of the responses so far.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ringhaul.cql.frames import STREAMS_MAX
from ringhaul.statements.options import RequestStats
from ringhaul.statements.replies import Found, Ints, Piece

#: Least number of responses, or bytes, handed out together while more come: enough for the cost of
#: a batch to vanish, and decoded no slower than the server empties a window.
ANSWERS_BATCH = 1024
ANSWERS_BATCH_BYTES = 1 << 20
#: Most bytes of responses on their way on one connection, estimated by the mean response so far,
#: and the number of requests to start with, while nothing is known.
ANSWERS_BYTES_MAX = 16 << 20
REQUESTS_FIRST = 64


class Answers(NamedTuple):
    """Some responses and their pages, in order of arrival."""

    pieces: list[Piece]

    def finished(self) -> Ints:
        """Return the numbers of the rows whose responses are now complete."""
        none = np.zeros(0, np.int64)
        return np.concatenate([none, *(piece.numbers[piece.last] for piece in self.pieces)])


class Gathering:
    """The responses of one unit that have not been handed out yet."""

    def __init__(self, stats: RequestStats, requests_max: int) -> None:
        """`requests_max`: most unanswered requests on a connection; 0: no limit."""
        self._stats = stats
        self._requests_max = requests_max or STREAMS_MAX
        self._pieces: list[Piece] = []
        self._count = self._bytes = 0
        self._answer_bytes_mean = 0.0

    def keep(self, data: bytes, found: Found, numbers: Ints, last: NDArray[np.bool_]) -> None:
        """Keep the responses in `data`, at least one, to the rows with these numbers."""
        buffer = np.frombuffer(data, np.uint8)
        self._pieces.append(Piece(buffer, numbers, found.starts, found.ends, found.counts, last))
        count, size = len(numbers), int(found.ends.sum() - found.frames.sum())
        self._count += count
        self._bytes += size
        self._stats.answered += int(np.count_nonzero(last))
        self._stats.rows += int(found.counts.sum())
        self._stats.answer_bytes += size
        # Recent responses count most; a few of thousands of small ones would be enough.
        weight = min(count / REQUESTS_FIRST, 1.0)
        mean = self._answer_bytes_mean or size / count
        self._answer_bytes_mean = mean + (size / count - mean) * weight

    @property
    def full(self) -> bool:
        """Whether there is enough for a batch."""
        return self._count >= ANSWERS_BATCH or self._bytes >= ANSWERS_BATCH_BYTES

    def hand_out(self) -> Iterator[Answers]:
        """Yield the rows that are complete, if any."""
        if self._pieces:
            pieces, self._pieces = self._pieces, []
            self._count = self._bytes = 0
            yield Answers(pieces)

    def requests_cap(self) -> int:
        """Return the limit of unanswered requests on a connection, by the size of responses."""
        most = self._requests_max
        if not self._answer_bytes_mean:
            return min(REQUESTS_FIRST, most)
        return min(max(int(ANSWERS_BYTES_MAX / self._answer_bytes_mean), 2), most)
