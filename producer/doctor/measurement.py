"""A measurement with a time limit."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from config.errors import ConfigError
from producer.doctor.finding import Finding, Section
from ringhaul.errors import RinghaulError

T = TypeVar("T")


class Timed(Generic[T]):
    """Runs `work` in a thread, which is left behind when its time is over."""

    def __init__(self, section: Section, check: str, limit_s: float, work: Callable[[], T]) -> None:
        """`section`, `check`: what a failure is shown as."""
        self._section, self._check, self._limit_s = section, check, limit_s
        self._value: T | None = None
        self._error: Exception | None = None
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._over = False
        self._give_up_at = time.monotonic() + limit_s
        threading.Thread(target=self._run, args=(work,), daemon=True).start()

    def value(self) -> T | None:
        """Wait for the result and return it; None if there is none: see `troubles`.

        Every call returns an equal value: a result that comes too late is dropped.
        """
        self._ended.wait(max(0.0, self._give_up_at - time.monotonic()))
        with self._lock:
            self._over = True
            return self._value

    def troubles(self) -> list[Finding]:
        """Return why there is no result; nothing if the work has ended well."""
        self.value()
        error = self._error
        if isinstance(error, ConfigError):
            return [self._section.fault(self._check, " ".join(error.lines))]
        if isinstance(error, RinghaulError):
            return [self._section.fault(self._check, str(error))]
        if error is not None:
            text = f"the check itself failed: {type(error).__name__}: {error}"
            advice = "this is a defect in ringhaul; please report it"
            return [self._section.unchecked(self._check, text, advice)]
        if not self._ended.is_set():
            text = f"no answer within {self._limit_s:.0f} s"
            advice = "find out whether it hangs, or whether something on the way drops packets"
            return [self._section.fault(self._check, text, advice)]
        return []

    def _run(self, work: Callable[[], T]) -> None:
        value: T | None = None
        failed: Exception | None = None
        try:
            value = work()
        except Exception as error:  # shown by `troubles`
            failed = error
        with self._lock:
            if not self._over:
                self._value, self._error = value, failed
                self._ended.set()
