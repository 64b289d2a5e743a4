"""How many ranges a scan reads at once from nodes at some distance."""

from __future__ import annotations

import pytest

from ringhaul.scan.options import RANGES_FAR_MAX, ScanOptions


@pytest.mark.parametrize(
    ("distance_s", "ranges"), [(0.0, 2), (0.02, 2), (0.05, 3), (0.2, 6), (0.6, RANGES_FAR_MAX)]
)
def test_more_ranges_are_read_at_once_from_far_nodes(distance_s: float, ranges: int) -> None:
    assert ScanOptions(consistency=1).at_once(distance_s) == ranges


def test_a_scan_in_order_reads_no_further_ahead_than_elsewhere() -> None:
    assert ScanOptions(consistency=1, in_order=True).at_once(0.2) == 2


def test_a_number_that_was_set_higher_stays() -> None:
    assert ScanOptions(consistency=1, in_flight=20).at_once(0.2) == 20
