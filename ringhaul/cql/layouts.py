"""Fixed layouts: read a column of dates or times as columns of digits.

Values of one length form a matrix of characters; transposed, each character position is a
contiguous column. A *sample* value shows where the digits and the punctuation are. All values with
digits and punctuation at the same places have the same layout and are read by the same plan, in a
few numpy operations on whole columns. Values of other layouts get their own sample in the next
round.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringhaul.cql.column import Mask, TextColumn

#: Longest text with a layout: a timestamp with nanoseconds and a zone has 35 characters.
LENGTH_MAX = 48
#: Most rounds per length: enough for twelve month names, or a few spellings.
LAYOUTS_MAX = 16
_ZERO = 0x30

#: One row per character position, one column per value.
Characters = NDArray[np.uint8]
#: Characters -> the values, and a mask of the values in range.
Plan = Callable[[Characters], tuple[NDArray[Any], Mask]]


def read_by_layout(
    column: TextColumn, plan_for: Callable[[str], Plan | None], out: NDArray[Any]
) -> Mask:
    """Read values that have a plan into `out` (one item per value), and return a mask of them.

    `plan_for` gets a sample value and must decide only by the places of its digits and by its
    punctuation, which includes letters. The plan itself must check anything else that must match,
    such as a literal digit in a format.
    """
    lengths = column.lengths
    done = np.zeros(len(lengths), np.bool_)
    counts = np.bincount(np.minimum(lengths, LENGTH_MAX + 1), minlength=LENGTH_MAX + 2)
    for length in np.flatnonzero(counts[: LENGTH_MAX + 1]).tolist():
        if length == 0:
            continue
        if counts[length] == len(lengths):
            rows, data = np.arange(len(lengths)), column.data
        else:
            mask = lengths == length
            rows, data = np.flatnonzero(mask), column.filter(mask).data
        _read_length(np.ascontiguousarray(data.reshape(-1, length).T), rows, plan_for, out, done)
    return done


def _read_length(
    characters: Characters,
    rows: NDArray[np.intp],
    plan_for: Callable[[str], Plan | None],
    out: NDArray[Any],
    done: Mask,
) -> None:
    for _ in range(LAYOUTS_MAX):
        sample = characters[:, len(rows) // 2].copy()
        same = _has_layout(characters, sample)
        plan = plan_for(sample.tobytes().decode("ascii")) if sample.max() < 0x80 else None
        whole = bool(same.all())
        if plan is not None:
            values, ok = plan(characters if whole else characters[:, same])
            if whole and ok.all():
                out[rows], done[rows] = values, True
                return
            taken = (rows if whole else rows[same])[ok]
            out[taken], done[taken] = values[ok], True
        if whole:
            return
        characters, rows = characters[:, ~same], rows[~same]


def _has_layout(characters: Characters, sample: NDArray[np.uint8]) -> Mask:
    digits = sample - _ZERO <= 9
    same: NDArray[np.bool_] = np.all(characters[digits] - np.uint8(_ZERO) <= 9, axis=0)
    for position in np.flatnonzero(~digits).tolist():
        np.logical_and(same, characters[position] == sample[position], out=same)
    return same


def number(characters: Characters, span: tuple[int, int]) -> NDArray[Any]:
    """Return the digits of `span` (start, end) as numbers: uint8 for up to 2 digits, int32 for up
    to 9, else int64."""
    start, end = span
    zero = np.uint8(_ZERO)
    if end - start <= 2:
        value: NDArray[Any] = characters[start] - zero
        if end - start == 2:
            value = value * np.uint8(10) + (characters[start + 1] - zero)
        return value
    total: NDArray[Any] = (characters[start] - zero).astype(
        np.int32 if end - start <= 9 else np.int64
    )
    for position in range(start + 1, end):
        total *= 10
        total += characters[position] - zero
    return total
