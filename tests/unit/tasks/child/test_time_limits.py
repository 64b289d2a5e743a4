"""Time limits of a unit: its work counts, its waits for rate limits do not."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tasks.child import time_limits
from tasks.child.time_limits import TimeLimits, UnitTooLong

#: A process whose unit waits longer than the hard limit, checking often, then ends or hangs.
PROCESS = """
import sys, time
from tasks.child.time_limits import TimeLimits
waited_s = 0.0
with TimeLimits(0.5, 0.6, lambda: waited_s) as limits:
    for _ in range(20):
        began_s = time.monotonic()
        time.sleep(0.05)
        waited_s += time.monotonic() - began_s
        limits.look()
    print("waited", flush=True)
    if sys.argv[1] == "hang":
        time.sleep(60)
time.sleep(1)
print("left")
"""


def test_a_unit_that_works_too_long_is_stopped_with_advice() -> None:
    with (
        TimeLimits(0.05, 60, lambda: 0.0) as limits,
        pytest.raises(UnitTooLong, match=r"--unit-size.*worker\.time_limit_soft_s"),
    ):
        limits.look()
        time.sleep(0.06)
        limits.look()


class Clock:
    """The clock of the limits, in seconds; only the test moves it."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time_limits, "time", clock)
    return clock


def test_waits_do_not_count(clock: Clock) -> None:
    waits_s = [5.0]  # waits of earlier units
    with TimeLimits(0.2, 60, lambda: sum(waits_s)) as limits:
        for _ in range(3):
            clock.now_s += 0.1
            waits_s.append(0.1)
            limits.look()
        # But work after the waits counts
        clock.now_s += 0.19
        limits.look()
        clock.now_s += 0.02
        with pytest.raises(UnitTooLong):
            limits.look()


def test_time_with_few_requests_under_way_does_not_count(clock: Clock) -> None:
    with TimeLimits(0.1, 60, lambda: 0.0) as limits:
        clock.now_s += 0.15
        limits.look(held=True)
        limits.look()
        clock.now_s += 0.15
        with pytest.raises(UnitTooLong):
            limits.look()


@pytest.mark.parametrize(("then", "code", "said"), [("end", 0, "left\n"), ("hang", 1, "")])
def test_a_process_whose_unit_hangs_is_ended_and_one_that_waits_is_not(
    then: str, code: int, said: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROCESS, then],
        cwd=Path(__file__).parents[4],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (code, f"waited\n{said}"), done.stderr
    # And the place where it hung is printed
    assert ("Timeout" in done.stderr, "<string>" in done.stderr) == (code == 1, code == 1)
