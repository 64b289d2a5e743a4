"""How many bytes the sessions of a delivery may send now.

Each session runs in its own thread. A job's limits are kept by the thread that runs the unit,
which also renews its lease: it pays for one session after the other.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass


@dataclass
class _Request:
    """What one session wants to send."""

    bytes_max: int
    granted: int = 0


class Allowance:
    """Shared by the sessions of one delivery and the thread that pays for them."""

    def __init__(self, spend: Callable[[int], int], sessions: int) -> None:
        """`spend`: pays for some of so many bytes, waits until they may be sent, and returns how
        many. `sessions`: how many will call `leave` at their end."""
        self._spend, self._sessions = spend, sessions
        self._changed = threading.Condition()
        self._requests: deque[_Request] = deque()
        self._is_over = False

    def take(self, bytes_max: int) -> int:
        """Return how many of so many bytes a session may send, at least 1; blocks until it may.

        Raises `ConnectionAbortedError` after `end`.
        """
        request = _Request(bytes_max)
        with self._changed:
            self._requests.append(request)
            self._changed.notify_all()
            while not request.granted:
                if self._is_over:
                    raise ConnectionAbortedError("the session was aborted")
                self._changed.wait()
        return request.granted

    def leave(self) -> None:
        """Say that a session has ended."""
        with self._changed:
            self._sessions -= 1
            self._changed.notify_all()

    def serve(self, timeout_s: float) -> bool:
        """Pay for a session that wants to send within `timeout_s`, if any; return whether any
        session is left. Raises what `spend` does."""
        with self._changed:
            if self._sessions and not self._requests:
                self._changed.wait(timeout_s)
            if not self._requests:
                return self._sessions > 0
            request = self._requests.popleft()
        granted = self._spend(request.bytes_max)
        with self._changed:
            request.granted = granted
            self._changed.notify_all()
        return True

    def end(self) -> None:
        """Let no session send any more."""
        with self._changed:
            self._is_over = True
            self._changed.notify_all()


def unlimited(bytes_max: int) -> int:
    """Let all bytes go: the `take` and the `spend` of a job without limits."""
    return bytes_max
