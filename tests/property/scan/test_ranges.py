"""Units cover the ring once, in order, for any ring and any estimates."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringhaul.cluster.view import RingToken, SizeEstimate
from ringhaul.scan.ranges import (
    FULL_RING,
    MAX_TOKEN,
    MIN_TOKEN,
    RangeUnit,
    TokenRange,
    pack_ranges,
    plan_ranges,
    split_range,
    spread_ranges,
    unpack_ranges,
    unwrap,
)

HOSTS = ("a", "b", "c", "d")

tokens = st.one_of(
    st.integers(MIN_TOKEN, MAX_TOKEN),
    st.integers(-20, 20),
    st.integers(MIN_TOKEN, MIN_TOKEN + 3),
    st.integers(MAX_TOKEN - 3, MAX_TOKEN),
)
replica_sets = st.sets(st.sampled_from(HOSTS), min_size=1, max_size=3).map(
    lambda hosts: tuple(sorted(hosts))
)
rings = st.dictionaries(tokens, replica_sets, max_size=40).map(
    lambda ring: [RingToken(token, ring[token][0], ring[token]) for token in sorted(ring)]
)
estimates = st.lists(
    st.builds(SizeEstimate, tokens, tokens, st.integers(0, 10**12), st.integers(0, 10**9)),
    max_size=20,
)
bounds = st.one_of(
    st.just(FULL_RING), st.tuples(tokens, tokens).map(sorted).map(lambda ends: TokenRange(*ends))
)


def own_estimates(ring: list[RingToken], sizes: list[int]) -> list[SizeEstimate]:
    """The size estimates of each node of a ring for its ranges."""
    before = [ring[-1], *ring[:-1]]
    return [
        SizeEstimate(lo.token, hi.token, size, 100)
        for lo, hi, size in zip(before, ring, sizes, strict=False)
    ]


def replicas_at(ring: list[RingToken], token: int) -> tuple[str, ...]:
    for entry in ring:
        if token <= entry.token:
            return entry.replicas
    return ring[0].replicas if ring else ()


def check_cover(units: list[RangeUnit], whole: TokenRange) -> None:
    """The units' ranges follow each other from one end of `whole` to the other."""
    ranges = [one for unit in units for one in unit.ranges]
    if whole.lo >= whole.hi:
        assert ranges == []
        return
    assert ranges[0].lo == whole.lo
    assert ranges[-1].hi == whole.hi
    assert all(one.lo < one.hi for one in ranges)
    assert all(one.hi == after.lo for one, after in pairwise(ranges))
    assert all(unit.ranges for unit in units)


@given(rings, estimates, st.integers(1, 50), st.integers(1, 10**12), bounds)
def test_units_cover_the_ring_once_in_order(
    ring: list[RingToken],
    sizes: list[SizeEstimate],
    units_min: int,
    total_per_unit: int,
    whole: TokenRange,
) -> None:
    # Bound the number of units that the test checks.
    total = sum(size.bytes for size in sizes)
    bytes_per_unit = max(total_per_unit, total // 100, 1)
    units = plan_ranges(
        ring, sizes, units_min=units_min, bytes_per_unit=bytes_per_unit, bounds=whole
    )
    check_cover(units, whole)


@given(rings, st.data())
def test_each_range_has_one_set_of_replicas(ring: list[RingToken], data: st.DataObject) -> None:
    sizes = own_estimates(ring, data.draw(st.lists(st.integers(0, 10**6)))) if ring else []
    for unit in plan_ranges(ring, sizes, units_min=7, bytes_per_unit=10**7):
        for one in unit.ranges:
            replicas = {replicas_at(ring, one.lo + 1), replicas_at(ring, one.hi)}
            replicas |= {entry.replicas for entry in ring if one.lo < entry.token <= one.hi}
            assert len(replicas) == 1
        for one, after in pairwise(unit.ranges):
            assert replicas_at(ring, one.hi) != replicas_at(ring, after.hi)


@given(rings, st.integers(1, 64))
def test_without_estimates_the_ring_is_cut_evenly(ring: list[RingToken], units_min: int) -> None:
    units = plan_ranges(ring, [], units_min=units_min, bytes_per_unit=1)
    assert len(units) == units_min
    even = (MAX_TOKEN - MIN_TOKEN) / units_min
    for unit in units:
        assert unit.bytes == 0
        assert 0.59 * even <= unit.ranges[-1].hi - unit.ranges[0].lo <= 1.41 * even


def test_estimates_make_the_work_even() -> None:
    """If all data is in a hundredth of the ring, most units are there."""
    ring = [RingToken(0, "a", ("a",)), RingToken(2**57, "b", ("b",)), RingToken(2**60, "a", ("a",))]
    sizes = own_estimates(ring, [0, 10**6, 0])
    units = plan_ranges(ring, sizes, units_min=2, bytes_per_unit=10**6)
    assert len(units) == 100
    within = [unit for unit in units if unit.ranges[0].lo >= 0 and unit.ranges[-1].hi <= 2**57]
    assert len(within) >= 85
    assert sum(unit.bytes for unit in units) == pytest.approx(10**8, rel=1e-3)
    assert max(unit.bytes for unit in units) < 1.5e6


def test_a_range_without_an_estimate_counts_as_the_mean() -> None:
    """One of two nodes has no estimates."""
    ring = [RingToken(-1, "a", ("a",)), RingToken(MAX_TOKEN, "b", ("b",))]
    sizes = [SizeEstimate(-1, MAX_TOKEN, 10**6, 100)]
    units = plan_ranges(ring, sizes, units_min=1, bytes_per_unit=10**7)
    assert len(units) == 20
    assert sum(unit.bytes for unit in units) == pytest.approx(2 * 10**8)


def test_a_cut_moves_to_the_end_of_a_range_of_the_ring() -> None:
    ring = [RingToken(token, "a", (host,)) for token, host in ((-(2**62), "a"), (100, "b"))]
    ring.append(RingToken(2**62, "c", ("c",)))
    units = plan_ranges(ring, [], units_min=2, bytes_per_unit=1)
    assert [unit.ranges[-1].hi for unit in units] == [100, MAX_TOKEN]


def test_vnodes_are_merged_to_units() -> None:
    """1536 ranges of six nodes in turn, with two replicas each."""
    ring = []
    for number in range(1536):
        token = MIN_TOKEN + (number + 1) * (2**64 // 1537)
        replicas = sorted({HOSTS[number % 4], HOSTS[(number + 1) % 4]})
        ring.append(RingToken(token, HOSTS[number % 4], tuple(replicas)))
    units = plan_ranges(ring, [], units_min=8, bytes_per_unit=1)
    check_cover(units, FULL_RING)
    assert [len(unit.ranges) for unit in units] == pytest.approx([192] * 8, abs=2)


def test_one_node_one_token() -> None:
    """The range of a ring's only token is the whole ring: one range for one unit."""
    ring = [RingToken(42, "a", ("a",))]
    sizes = [SizeEstimate(42, 42, 1000, 1000)]
    assert plan_ranges(ring, sizes, units_min=1, bytes_per_unit=10**6) == [
        RangeUnit((FULL_RING,), 10**6)
    ]


def test_few_tokens_for_many_units() -> None:
    units = plan_ranges([], [], units_min=10, bytes_per_unit=1, bounds=TokenRange(5, 8))
    assert [unit.ranges for unit in units] == [((5, 6),), ((6, 7),), ((7, 8),)]


@pytest.mark.parametrize(
    ("lo", "hi", "parts"),
    [
        (1, 5, [(1, 5)]),
        (5, 1, [(MIN_TOKEN, 1), (5, MAX_TOKEN)]),
        (5, 5, [(MIN_TOKEN, 5), (5, MAX_TOKEN)]),
        (5, MIN_TOKEN, [(5, MAX_TOKEN)]),
        (MIN_TOKEN, MIN_TOKEN, [FULL_RING]),
        (MAX_TOKEN, 5, [(MIN_TOKEN, 5)]),
        (MAX_TOKEN, MAX_TOKEN, [FULL_RING]),
        (MAX_TOKEN, MIN_TOKEN, []),
    ],
)
def test_ranges_around_the_end_of_the_ring(lo: int, hi: int, parts: list[TokenRange]) -> None:
    assert unwrap(lo, hi) == parts


@given(tokens, tokens, st.data())
def test_a_split_is_of_two_ranges_that_make_up_the_whole(
    one: int, other: int, data: st.DataObject
) -> None:
    lo, hi = sorted((one, other))
    if lo == hi:
        return
    after = data.draw(st.none() | st.integers(lo + 1, hi))
    if hi - lo == 1 or after == hi:
        with pytest.raises(ValueError, match="nothing to cut"):
            split_range(TokenRange(lo, hi), after)
        return
    first, second = split_range(TokenRange(lo, hi), after)
    assert (first.lo, first.hi, second.hi) == (lo, second.lo, hi)
    assert first.lo < first.hi < second.hi
    assert after is None or after <= first.hi


@given(st.lists(tokens, max_size=12, unique=True), st.integers(0, 12))
def test_ranges_are_spread_by_halves(ends: list[int], count: int) -> None:
    ranges = [TokenRange(lo, hi) for lo, hi in list(pairwise(sorted(ends)))[::2]]
    spread = spread_ranges(ranges, count)
    covered = sum(one.hi - one.lo for one in ranges)
    assert len(spread) == max(len(ranges), min(count, covered))
    assert sum(one.hi - one.lo for one in spread) == covered
    assert all(before.hi <= after.lo for before, after in pairwise(spread))
    assert all(any(of.lo <= one.lo < one.hi <= of.hi for of in ranges) for one in spread)
    # The longest range is cut first: no range is longer than two halves of another.
    longest = max((one.hi - one.lo for one in spread), default=0)
    assert all(longest <= 2 * (one.hi - one.lo) + 1 for one in spread if one not in ranges)


@given(rings)
def test_a_spec_unpacks_to_what_was_packed(ring: list[RingToken]) -> None:
    for unit in plan_ranges(ring, [], units_min=3, bytes_per_unit=1):
        assert unpack_ranges(pack_ranges(unit.ranges)) == list(unit.ranges)


def test_an_empty_spec() -> None:
    assert unpack_ranges(pack_ranges([])) == []


@pytest.mark.parametrize(
    "packed", ["1", "1:", "2:1", "1:1", "a:b", "1:2;", f"0:{2**63}", f"{-(2**63) - 1}:0"]
)
def test_an_invalid_spec_is_refused(packed: str) -> None:
    with pytest.raises(ValueError):
        unpack_ranges(packed)
