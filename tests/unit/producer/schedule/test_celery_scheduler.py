"""Beat is stopped at any moment of its start: what it is building is built, then it ends."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from producer.schedule.celery_scheduler import ScheduleScheduler

STOPS = (signal.SIGTERM, signal.SIGINT)


class StoppedWhileItImports:
    """An application whose part for messages is imported when it is first used, and while that
    happens beat gets a signal."""

    def __init__(self, number: signal.Signals) -> None:
        self.conf: Any = SimpleNamespace(
            beat_max_loop_interval=1, beat_sync_every=0, beat_schedule={}, result_expires=None
        )
        self.timezone = None
        self._number = number

    @property
    def amqp(self) -> SimpleNamespace:
        signal.raise_signal(self._number)
        return SimpleNamespace(Producer=object)


@pytest.fixture
def handled() -> Iterator[list[int]]:
    """Handle signals as Celery's beat does: in the middle of everything."""
    seen: list[int] = []
    before = {number: signal.signal(number, lambda n, _: seen.append(n)) for number in STOPS}
    yield seen
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", STOPS)
def test_a_signal_during_the_start_ends_beat_at_its_first_tick(
    handled: list[int], number: signal.Signals
) -> None:
    scheduler = ScheduleScheduler(StoppedWhileItImports(number))
    assert handled == []
    with pytest.raises(SystemExit):
        scheduler.tick()


def test_the_scheduler_of_the_banner_leaves_signals_alone(handled: list[int]) -> None:
    ScheduleScheduler(StoppedWhileItImports(signal.SIGTERM), lazy=True)
    assert handled == [signal.SIGTERM]
