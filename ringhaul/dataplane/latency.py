"""Latency histogram with log-linear buckets, so that counts of several hosts can be added up.

Eight buckets per power of two of microseconds give any percentile to about 9 %. A bucket is
identified by its index, and histograms are merged by adding their counts (HINCRBY in the ledger).
HdrHistogram has the same layout with 3 significant bits.
"""

from __future__ import annotations

from collections.abc import Mapping

_BITS = 3
_SUB_BUCKETS = 1 << _BITS


def bucket(latency_us: int) -> int:
    """Return the index of the bucket that holds a latency of `latency_us` >= 0 microseconds."""
    if latency_us < _SUB_BUCKETS:
        return latency_us
    shift = latency_us.bit_length() - 1 - _BITS
    return (shift << _BITS) + (latency_us >> shift)


def bucket_ceiling_us(index: int) -> int:
    """Return the largest latency of a bucket, in microseconds."""
    if index < 2 * _SUB_BUCKETS:
        return index
    shift = (index >> _BITS) - 1
    return (((index & (_SUB_BUCKETS - 1)) + _SUB_BUCKETS + 1) << shift) - 1


def percentile_ms(counts: Mapping[int, int], share: float) -> float | None:
    """Return the latency in milliseconds that `share` (0..1) of the requests did not exceed.

    `counts` maps bucket index to requests; None if it is empty.
    """
    total = sum(counts.values())
    if not total:
        return None
    seen = 0
    for index in sorted(counts):
        seen += counts[index]
        if seen >= share * total:
            return bucket_ceiling_us(index) / 1000
    raise AssertionError("the counts do not add up to their own sum")
