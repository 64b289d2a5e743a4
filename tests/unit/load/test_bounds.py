"""The bounds of a worker and of a job: the lower of each counts."""

from __future__ import annotations

import pytest

from ringhaul.dataplane.base import RequestBounds


@pytest.mark.parametrize(
    ("worker", "job", "both"), [(0, 0, 0), (0, 7, 7), (7, 0, 7), (5, 7, 5), (7, 5, 5)]
)
def test_the_lower_bound_counts(worker: int, job: int, both: int) -> None:
    own = RequestBounds(requests_in_flight_max=worker, batch_rows_max=worker, retries_max=3)
    bounds = own.within(requests_in_flight_max=job, batch_rows_max=job)
    assert bounds.requests_in_flight_max == bounds.batch_rows_max == both
    assert bounds.retries_max == 3
    options = bounds.options("pipeline", 1)
    assert options.requests_in_flight_max == (both or 1024)
    assert options.batch_rows_max == both
