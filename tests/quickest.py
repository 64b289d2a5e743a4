"""The CPU of a piece of work, for bounds that tell linear from quadratic."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import TypeVar

TRIES = 3
Result = TypeVar("Result")


def quickest(work: Callable[[], Result], *, enough_s: float) -> tuple[float, Result]:
    """Return the least CPU seconds of `TRIES`, fewer if one took less than `enough_s`, and what the
    work returns. The collector, which may look through all of pytest's objects, waits meanwhile."""
    took_s = []
    for _ in range(TRIES):
        gc.disable()
        try:
            started = time.process_time()
            result = work()
            took_s.append(time.process_time() - started)
        finally:
            gc.enable()
        if took_s[-1] < enough_s:
            break
    return min(took_s), result
