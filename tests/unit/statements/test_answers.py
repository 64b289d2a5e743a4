"""Answers are gathered into batches; their sizes limit the requests in flight."""

from __future__ import annotations

import numpy as np

from ringhaul.cql.frames import STREAMS_MAX
from ringhaul.statements.answers import (
    ANSWERS_BATCH,
    ANSWERS_BATCH_BYTES,
    ANSWERS_BYTES_MAX,
    REQUESTS_FIRST,
    Gathering,
)
from ringhaul.statements.options import RequestStats
from ringhaul.statements.replies import Found


def keep(gathering: Gathering, *numbers: int, size: int, last: bool = True) -> None:
    """Answers of one row and `size` bytes each."""
    count = len(numbers)
    ends = np.arange(1, count + 1) * size
    found = Found.of(
        np.array(
            [np.zeros(count), np.zeros(count), ends - size, ends - size, ends, np.ones(count)]
        ).astype(np.int64),
        count * size,
    )
    gathering.keep(bytes(count * size), found, np.array(numbers), np.full(count, last))


def test_a_batch_has_a_number_of_answers_or_of_bytes() -> None:
    many = Gathering(RequestStats(), 0)
    keep(many, *range(ANSWERS_BATCH - 1), size=1)
    assert not many.full
    keep(many, ANSWERS_BATCH, size=1)
    assert many.full
    large = Gathering(RequestStats(), 0)
    keep(large, 1, size=ANSWERS_BATCH_BYTES)
    assert large.full


def test_answers_are_handed_out_once_in_their_order() -> None:
    stats = RequestStats()
    gathering = Gathering(stats, 0)
    keep(gathering, 3, size=10, last=False)
    keep(gathering, 3, 1, size=10)
    (answers,) = gathering.hand_out()
    assert [piece.numbers.tolist() for piece in answers.pieces] == [[3], [3, 1]]
    assert answers.finished().tolist() == [3, 1]
    assert list(gathering.hand_out()) == []
    assert (stats.answered, stats.rows, stats.answer_bytes) == (2, 3, 30)


def test_larger_answers_mean_fewer_requests_in_flight() -> None:
    gathering = Gathering(RequestStats(), 0)
    assert gathering.requests_cap() == REQUESTS_FIRST
    keep(gathering, *range(REQUESTS_FIRST), size=1 << 14)
    assert gathering.requests_cap() == ANSWERS_BYTES_MAX >> 14
    keep(gathering, *range(REQUESTS_FIRST), size=1)
    assert gathering.requests_cap() == STREAMS_MAX
    huge = Gathering(RequestStats(), 0)
    keep(huge, 1, size=ANSWERS_BYTES_MAX)
    assert huge.requests_cap() == 2


def test_the_limit_of_requests_may_be_small() -> None:
    gathering = Gathering(RequestStats(), 5)
    assert gathering.requests_cap() == 5
    keep(gathering, 1, size=100)
    assert gathering.requests_cap() == 5
