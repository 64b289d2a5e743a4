"""How many rows of a LIMIT one attempt may take."""

from __future__ import annotations

import pytest

from ringhaul.scan.row_limit import RowLimit, Share, ShareLost, reserve_alone


def test_without_a_limit_every_row_is_taken() -> None:
    limit = RowLimit(None)
    assert [limit.allow(0), limit.allow(10, 5)] == [0, 5]
    assert not limit.is_reached(10**12)


@pytest.mark.parametrize(
    ("taken", "wanted", "allowed", "reached"),
    [(0, 40, 40, False), (60, 40, 40, True), (60, 50, 40, True), (100, 0, 0, True)],
)
def test_the_only_unit_ends_with_the_last_row(
    taken: int, wanted: int, allowed: int, reached: bool
) -> None:
    limit = RowLimit(reserve_alone(100))
    assert not limit.is_reached(taken), "no unit has reserved yet"
    assert limit.allow(taken, wanted) == allowed
    assert limit.is_reached(taken + allowed) is reached


def test_an_attempt_takes_what_an_earlier_one_reserved() -> None:
    # Given a unit whose earlier attempt had reserved 70 rows, and no rows that others left
    limit = RowLimit(lambda rows: Share(70, 0))
    assert limit.allow(0) == 0
    assert not limit.is_reached(0)
    # Then it takes these 70, and no more
    assert limit.allow(0, 50) == 50
    assert not limit.is_reached(50)
    assert limit.allow(50, 50) == 20
    assert limit.is_reached(70)


def test_rows_that_the_ledger_forgot_are_not_written_twice() -> None:
    limit = RowLimit(lambda rows: Share(70, 0))
    with pytest.raises(ShareLost, match="forgot that 30 rows"):
        limit.allow(100)
