"""Local times around changes of the clocks: some do not exist, and some occur twice.

A time that clocks skip is hardly meant, and a time that they repeat means one of two moments, so a
format says what is read (`value_words.CLOCK_CHANGES`). A date alone is the start of its local day,
whatever the clocks do at midnight.
"""

from __future__ import annotations

import functools
from datetime import tzinfo
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ringhaul.cql.calendar import DAY_MS, offset_ms

#: Zones change their offsets on quarters of an hour; bisection finds other changes.
_QUARTER_MS = 900_000
#: Beyond, in 146 million years, numpy's integers may be too short; the old offset is good enough.
_FAR_MS = 2**62

Int64s = NDArray[np.int64]
Mask = NDArray[np.bool_]


class Moments(NamedTuple):
    """Moments of local times, and masks of refused times (None: no time is refused)."""

    utc_ms: Int64s
    skipped: Mask | None  #: refused, because clocks skip them
    repeated: Mask | None  #: refused, because clocks repeat them


class _Day(NamedTuple):
    """The pieces of a local day, each with constant offsets."""

    starts: Int64s  #: first local millisecond of each piece
    before: Int64s  #: offset of the first of two moments; in a skipped hour, the old offset
    after: Int64s  #: offset of the second of two moments; in a skipped hour, the new offset


class RepeatedTimes:
    """Counts the repeated times that this process has read without a choice between them.

    A time whose layout is unusual counts once, however often it occurs.
    """

    def __init__(self) -> None:
        self.count = 0


#: The counter of this process.
REPEATED = RepeatedTimes()


def moments_of(local_ms: Int64s, zone: tzinfo, choice: str = "", *, dates: bool = False) -> Moments:
    """Return the moments of local times, with one look-up per day whose offset is constant.

    `dates`: these are midnights that stand for dates.
    """
    days, codes = np.unique(local_ms // DAY_MS, return_inverse=True)
    codes = codes.reshape(-1)
    offsets = np.empty(len(days), np.int64)
    changing = np.zeros(len(days), np.bool_)
    for index, day in enumerate(days.tolist()):
        offset = _constant_offset(day, zone)
        offsets[index] = offset or 0
        changing[index] = offset is None
    utc_ms: Int64s = local_ms - offsets[codes]
    if not changing.any():
        return Moments(utc_ms, None, None)
    left = np.flatnonzero(changing[codes])
    left_codes = codes[left]
    skipped, repeated = np.zeros((2, len(local_ms)), np.bool_)
    for index in np.flatnonzero(changing).tolist():
        rows = left[left_codes == index]
        pieces = _pieces(int(days[index]), zone)
        if dates:
            start = _start_of_day(pieces)
            skipped[rows] = start is None
            utc_ms[rows] = local_ms[rows] - pieces.before[0] if start is None else start
            continue
        at = np.searchsorted(pieces.starts, local_ms[rows], side="right") - 1
        before, after = pieces.before[at], pieces.after[at]
        skipped[rows], repeated[rows] = before < after, before > after
        chosen = np.where(before > after, after, before) if choice == "second" else before
        utc_ms[rows] = local_ms[rows] - chosen
    if not choice:
        REPEATED.count += int(np.count_nonzero(repeated))
    return Moments(
        utc_ms,
        skipped if choice != "forward" and skipped.any() else None,
        repeated if choice == "reject" and repeated.any() else None,
    )


def moment_of(local_ms: int, zone: tzinfo, choice: str = "", *, dates: bool = False) -> int:
    """Return the moment of one local time. Raises `SkippedTime` or `RepeatedTime`."""
    offset = _constant_offset(local_ms // DAY_MS, zone)
    if offset is not None or abs(local_ms) > _FAR_MS:
        return local_ms - (offset_ms(local_ms, zone) if offset is None else offset)
    found = moments_of(np.array([local_ms], np.int64), zone, choice, dates=dates)
    if found.skipped is not None:
        raise SkippedTime
    if found.repeated is not None:
        raise RepeatedTime
    return int(found.utc_ms[0])


class SkippedTime(ValueError):
    """A local time does not exist: clocks skip it."""


class RepeatedTime(ValueError):
    """A local time occurs twice, and none of the two moments was chosen."""


@functools.lru_cache(maxsize=1 << 16)  # 180 years of days, about 10 MB
def _constant_offset(day: int, zone: tzinfo) -> int | None:
    """Return a local day's offset; None if the offset changes or a time occurs twice or never."""
    found = _offsets(day * DAY_MS, zone)
    if found[0] != found[1] or found != _offsets(day * DAY_MS + DAY_MS - 1, zone):
        return None
    return found[0]


def _offsets(local_ms: int, zone: tzinfo) -> tuple[int, int]:
    """Return the offsets for both meanings of a local time (PEP 495)."""
    return offset_ms(local_ms, zone), offset_ms(local_ms, zone, fold=1)


@functools.lru_cache(maxsize=4096)
def _pieces(day: int, zone: tzinfo) -> _Day:
    first = day * DAY_MS
    found = [(first, *_offsets(first, zone))]
    for low in range(first, first + DAY_MS, _QUARTER_MS):
        high = low + _QUARTER_MS - 1
        if _offsets(low, zone) != found[-1][1:]:
            found.append((low, *_offsets(low, zone)))
        while (last := _offsets(high, zone)) != found[-1][1:]:
            at, end = found[-1][0] if found[-1][0] >= low else low, high
            while at < end:  # find the first time with other offsets
                middle = (at + end) // 2
                if _offsets(middle, zone) != found[-1][1:]:
                    end = middle
                else:
                    at = middle + 1
            found.append((at, *_offsets(at, zone)))
            if found[-1][1:] == last:
                break
    starts, before, after = (np.array(column, np.int64) for column in zip(*found, strict=True))
    return _Day(starts, before, after)


def _start_of_day(day: _Day) -> int | None:
    """Return the first moment of a local day; None if clocks skip all of it."""
    place = 0 if day.before[0] >= day.after[0] else 1
    if place == len(day.starts):
        return None
    return int(day.starts[place] - day.before[place])
