"""Latency buckets are exact when small and always ordered; percentiles are bucket ceilings."""

import pytest

from ringhaul.dataplane.latency import bucket, bucket_ceiling_us, percentile_ms


def test_latencies_below_sixteen_microseconds_have_a_bucket_each() -> None:
    assert [bucket(us) for us in range(16)] == list(range(16))
    assert [bucket_ceiling_us(index) for index in range(16)] == list(range(16))


@pytest.mark.parametrize(
    ("latency_us", "index", "ceiling_us"),
    [
        (16, 16, 17),
        (17, 16, 17),
        (18, 17, 19),
        (31, 23, 31),
        (32, 24, 35),
        (1_000, 63, 1_023),
        (1_024, 64, 1_151),
        (1_000_000, 143, 1_048_575),
        (12_000_000, 171, 12_582_911),
    ],
)
def test_eight_buckets_for_each_power_of_two(latency_us: int, index: int, ceiling_us: int) -> None:
    assert bucket(latency_us) == index
    assert bucket_ceiling_us(index) == ceiling_us


def test_no_requests_have_no_percentile() -> None:
    assert percentile_ms({}, 0.5) is None
    assert percentile_ms({7: 0}, 0.5) is None


def test_a_percentile_is_what_that_share_stayed_within() -> None:
    # Given 98 requests of 1 ms and two of 1 s
    counts = {bucket(1_000): 98, bucket(1_000_000): 2}
    # Then half of them took about a millisecond, and only the slowest two about a second
    assert percentile_ms(counts, 0.50) == 1.023
    assert percentile_ms(counts, 0.98) == 1.023
    assert percentile_ms(counts, 0.99) == 1048.575
    assert percentile_ms(counts, 1.0) == 1048.575


def test_hosts_add_up_by_bucket() -> None:
    # Given the histograms of two hosts
    fast, slow = {bucket(100): 9}, {bucket(100): 1, bucket(90_000): 10}
    # When they are added by bucket
    both = {index: fast.get(index, 0) + slow.get(index, 0) for index in fast | slow}
    # Then the median lies with the fast half, and the 51st percentile with the slow one
    assert percentile_ms(both, 0.5) == bucket_ceiling_us(bucket(100)) / 1000
    assert percentile_ms(both, 0.51) == bucket_ceiling_us(bucket(90_000)) / 1000
