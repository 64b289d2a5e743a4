"""The alarm that ends a command's work."""

from __future__ import annotations

import signal
import time

import pytest

from producer.tune.deadline import TimeOver, until


def test_it_ends_what_waits() -> None:
    started = time.monotonic()
    with pytest.raises(TimeOver), until(started + 0.05):
        time.sleep(60)
    assert time.monotonic() - started < 30


def test_an_alarm_that_the_parent_process_has_blocked_still_rings() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    try:
        started = time.monotonic()
        with pytest.raises(TimeOver), until(started + 0.05):
            time.sleep(60)
        assert time.monotonic() - started < 30
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})


def test_what_ends_in_time_is_left_alone() -> None:
    with until(time.monotonic() + 60):
        pass
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0
