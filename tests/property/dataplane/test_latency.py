"""Any latency lies in its bucket; percentiles are too high by at most an eighth."""

import math
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from ringhaul.dataplane.latency import bucket, bucket_ceiling_us, percentile_ms

LATENCIES_US = st.integers(0, 2**40)


@given(LATENCIES_US)
def test_a_bucket_holds_its_latency_and_is_narrow(latency_us: int) -> None:
    ceiling_us = bucket_ceiling_us(bucket(latency_us))
    assert latency_us <= ceiling_us <= latency_us + latency_us // 8
    assert bucket(ceiling_us) == bucket(latency_us)
    assert bucket(ceiling_us + 1) == bucket(latency_us) + 1


@given(LATENCIES_US, LATENCIES_US)
def test_longer_latencies_are_in_later_buckets(one_us: int, other_us: int) -> None:
    if one_us <= other_us:
        assert bucket(one_us) <= bucket(other_us)
    else:
        assert bucket(one_us) >= bucket(other_us)


@given(st.lists(LATENCIES_US, min_size=1, max_size=200), st.floats(0.01, 1.0))
def test_a_percentile_is_at_most_an_eighth_above_the_exact_one(
    latencies_us: list[int], share: float
) -> None:
    # Given the exact percentile of all latencies, by sorting them
    exact_us = sorted(latencies_us)[math.ceil(share * len(latencies_us)) - 1]
    # When it is read from the histogram
    found_ms = percentile_ms(Counter(map(bucket, latencies_us)), share)
    # Then it is the ceiling of the exact one's bucket
    assert found_ms == bucket_ceiling_us(bucket(exact_us)) / 1000
    assert found_ms is not None
    assert exact_us <= round(found_ms * 1000) <= exact_us * 1.125
