"""Answers, gathered until they are a batch, and how many requests their sizes leave room for. Pure.

A batch stays in the server's bytes (`replies.py`), so that whoever wants columns makes them of
thousands of answers at once. What may be on its way is bounded in bytes, too: nobody knows the size
of an answer before it comes, so requests are counted by the mean size of the answers so far.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ringhaul.cql.frames import STREAMS_MAX
from ringhaul.statements.options import RequestStats
from ringhaul.statements.replies import Found, Ints, Piece

#: Answers, and their bytes, that are handed out together at least while more come: enough for the
#: cost of a batch to vanish, and no longer to decode than the server takes to empty a window.
ANSWERS_BATCH = 1024
ANSWERS_BATCH_BYTES = 1 << 20
#: Bytes of answers that may be on their way on one wire, by the mean of those that came, and how
#: many requests to begin with: nothing is known then.
ANSWERS_BYTES_MAX = 16 << 20
REQUESTS_FIRST = 64


class Answers(NamedTuple):
    """Some answers, in the order in which they came; pages of one row are in theirs."""

    pieces: list[Piece]

    def finished(self) -> Ints:
        """The numbers of the rows whose answers are complete with these."""
        none = np.zeros(0, np.int64)
        return np.concatenate([none, *(piece.numbers[piece.last] for piece in self.pieces)])


class Gathering:
    """The answers that were not handed out yet, of one unit."""

    def __init__(self, stats: RequestStats, requests_max: int) -> None:
        """`requests_max`: unanswered on a wire, however small their answers; 0: no bound."""
        self._stats = stats
        self._requests_max = requests_max or STREAMS_MAX
        self._pieces: list[Piece] = []
        self._count = self._bytes = 0
        self._answer_bytes_mean = 0.0

    def keep(self, data: bytes, found: Found, numbers: Ints, last: NDArray[np.bool_]) -> None:
        """Answers to hand out, one or more: those of `data` to the rows with these numbers."""
        buffer = np.frombuffer(data, np.uint8)
        self._pieces.append(Piece(buffer, numbers, found.starts, found.ends, found.counts, last))
        count, size = len(numbers), int(found.ends.sum() - found.frames.sum())
        self._count += count
        self._bytes += size
        self._stats.answered += int(np.count_nonzero(last))
        self._stats.rows += int(found.counts.sum())
        self._stats.answer_bytes += size
        # The newest answers have the most to say; of thousands of small ones a few do.
        weight = min(count / REQUESTS_FIRST, 1.0)
        mean = self._answer_bytes_mean or size / count
        self._answer_bytes_mean = mean + (size / count - mean) * weight

    @property
    def full(self) -> bool:
        """They are a batch."""
        return self._count >= ANSWERS_BATCH or self._bytes >= ANSWERS_BATCH_BYTES

    def hand_out(self) -> Iterator[Answers]:
        """What there is, if there is anything."""
        if self._pieces:
            pieces, self._pieces = self._pieces, []
            self._count = self._bytes = 0
            yield Answers(pieces)

    def requests_cap(self) -> int:
        """Requests unanswered on a wire, by what their answers take."""
        most = self._requests_max
        if not self._answer_bytes_mean:
            return min(REQUESTS_FIRST, most)
        return min(max(int(ANSWERS_BYTES_MAX / self._answer_bytes_mean), 2), most)
