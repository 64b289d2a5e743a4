"""The pause before a command polls its job again."""

from __future__ import annotations

import pytest

from producer.run.watch import LOOK_EVERY_S, LOOK_SOON_S, pause_before_look_s
from tests.unit.producer.statuses import status


@pytest.mark.parametrize(
    ("age_s", "pause_s"), [(0.0, LOOK_SOON_S), (1.9, LOOK_SOON_S), (2.1, LOOK_EVERY_S)]
)
def test_units_that_are_still_split_are_published_soon_at_first(
    age_s: float, pause_s: float
) -> None:
    job = status(units=3, pending=3, leased=2, sealed=False)
    assert pause_before_look_s(job, None, age_s, fed=False) == pause_s


@pytest.mark.parametrize(
    ("eta_s", "pause_s"),
    [(None, LOOK_SOON_S), (0.1, LOOK_SOON_S), (1.0, 0.15), (1.2, 0.18), (60.0, LOOK_EVERY_S)],
)
def test_pauses_between_polls_shrink_towards_the_end(eta_s: float | None, pause_s: float) -> None:
    job = status(units=8, pending=2, done=6, leased=2)
    assert pause_before_look_s(job, eta_s, 5.0, fed=True) == pytest.approx(pause_s)


@pytest.mark.parametrize("leased", [0, 1])
def test_units_without_a_worker_do_not_shorten_the_pause(leased: int) -> None:
    job = status(units=8, pending=2, done=6, leased=leased)
    assert pause_before_look_s(job, 0.1, 5.0, fed=True) == LOOK_EVERY_S
