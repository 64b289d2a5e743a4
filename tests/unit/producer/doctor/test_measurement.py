"""Measurements with time limits."""

from __future__ import annotations

import threading
import time

from config.errors import ConfigError
from producer.doctor.finding import BROKER, State
from producer.doctor.measurement import Timed
from ringhaul.errors import LedgerUnavailable


def failing(error: Exception) -> Timed[int]:
    def work() -> int:
        raise error

    return Timed(BROKER, "address", 5, work)


def test_a_result_is_returned_without_troubles() -> None:
    check = Timed(BROKER, "address", 5, lambda: 7)
    assert check.value() == 7 and check.troubles() == []
    nothing: Timed[None] = Timed(BROKER, "address", 5, lambda: None)
    assert nothing.value() is None and nothing.troubles() == []


def test_work_that_hangs_is_left_behind() -> None:
    stop = threading.Event()
    began = time.monotonic()
    check = Timed(BROKER, "address", 0.1, lambda: stop.wait(60))
    assert check.value() is None
    (found,) = check.troubles()
    assert found.state is State.FAULT and found.text.startswith("no answer within 0 s")
    assert time.monotonic() - began < 10
    # A result that comes later changes nothing: others have already seen that there is none.
    stop.set()
    time.sleep(0.1)
    assert check.value() is None and check.troubles() == [found]


def test_errors_become_findings() -> None:
    (found,) = failing(LedgerUnavailable("it is away")).troubles()
    assert (found.state, found.text) == (State.FAULT, "it is away")
    (found,) = failing(ConfigError("one", "two")).troubles()
    assert (found.state, found.text) == (State.FAULT, "one two")
    (found,) = failing(KeyError("x")).troubles()
    assert found.state is State.UNCHECKED and "KeyError: 'x'" in found.text
    assert "defect" in found.advice
