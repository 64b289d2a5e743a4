"""Ctrl-C and SIGTERM, taken as requests to a command that has more to do before it ends."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

#: Further requests to end are not waited for.
PATIENT_SIGNALS = 2


@contextmanager
def taking_interrupts(on_signal: Callable[[], None] | None = None) -> Iterator[list[int]]:
    """Yield a list that collects SIGINT and SIGTERM. The third signal ends the command at once.

    `on_signal`: is called after each signal.
    """
    received: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        received.append(number)
        if on_signal is not None:
            on_signal()
        if len(received) > PATIENT_SIGNALS:
            raise KeyboardInterrupt

    before = {taken: signal.signal(taken, note) for taken in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for taken, handler in before.items():
            signal.signal(taken, handler)
