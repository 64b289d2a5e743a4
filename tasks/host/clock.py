"""Measure how far clocks differ, with bounds, and whether the kernel's clock is synchronised.

A clock is read over the network, so its reading belongs to some moment between the request and the
response. Each reading gives an interval in which the difference surely lies; several readings give
a narrower one. Nothing assumes that both ways take the same time.
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass

from ringhaul.ledger.connection import Caller

READINGS = 5


@dataclass(frozen=True)
class Offset:
    """How far a clock is ahead of another: between `low_ms` and `high_ms`; negative: behind."""

    low_ms: float
    high_ms: float

    def minus(self, other: Offset) -> Offset:
        """Return how far this clock is ahead of `other`, if both are relative to a third."""
        return Offset(self.low_ms - other.high_ms, self.high_ms - other.low_ms)

    def plus(self, other: Offset) -> Offset:
        """Return how far clock A is ahead of C. This offset: how far A is ahead of B; `other`: how
        far B is ahead of C."""
        return Offset(self.low_ms + other.low_ms, self.high_ms + other.high_ms)

    @property
    def middle_ms(self) -> float:
        """The best single estimate."""
        return (self.low_ms + self.high_ms) / 2

    @property
    def width_ms(self) -> float:
        """How uncertain it is."""
        return self.high_ms - self.low_ms

    @property
    def surely_ms(self) -> float:
        """The smallest difference, without its sign, that the interval allows."""
        return max(self.low_ms, -self.high_ms, 0.0)


@dataclass(frozen=True)
class Reading:
    """One reading of another clock, in ms since the epoch."""

    before_ms: float  #: our clock when the request was sent
    after_ms: float  #: our clock when the response was there
    theirs_ms: float
    step_ms: float = 0.001  #: the other clock is cut off to a multiple of this

    @property
    def offset(self) -> Offset:
        """How far the other clock is ahead of ours."""
        return Offset(
            self.theirs_ms - self.after_ms, self.theirs_ms + self.step_ms - self.before_ms
        )


def combine(offsets: Iterable[Offset]) -> Offset | None:
    """Return the intersection of the intervals; None: there are no intervals.

    If they do not overlap, because a clock was set meanwhile, return an interval that covers all.
    """
    found = list(offsets)
    if not found:
        return None
    low, high = max(one.low_ms for one in found), min(one.high_ms for one in found)
    if low > high:
        low, high = min(one.low_ms for one in found), max(one.high_ms for one in found)
    return Offset(low, high)


def now_ms() -> float:
    """Return this host's clock."""
    return time.time_ns() / 1e6


def broker_offset(caller: Caller) -> Offset | None:
    """Return how far the broker's clock is ahead of ours. Raises as `Caller.script` does."""
    found = []
    for _ in range(READINGS):
        before = now_ms()
        seconds, micros = caller.command("TIME")
        found.append(Reading(before, now_ms(), int(seconds) * 1e3 + int(micros) / 1e3).offset)
    return combine(found)


class _Timex(ctypes.Structure):
    """The start of `struct timex`; the kernel fills more than is read here."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("more", ctypes.c_char * 256),
    )


_STA_UNSYNC = 0x40


def synchronised() -> bool | None:
    """Return whether a time service keeps the kernel's clock; None if the kernel does not say."""
    if sys.platform != "linux":
        return None
    timex = _Timex()  # modes = 0: only read
    try:
        if ctypes.CDLL(None).adjtimex(ctypes.byref(timex)) < 0:
            return None
    except (OSError, AttributeError):
        return None
    return not timex.status & _STA_UNSYNC
