"""Displays of a job's progress: a bar in a notebook or a terminal, or a function of the caller."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, Literal, Protocol

from ringhaul.client.errors import UsageError
from ringhaul.client.progress import Progress

BAR_WIDTH = 30
#: Seconds between two lines where no bar can be redrawn.
LINE_EVERY_S = 30.0

#: What `progress=` takes.
Watcher = Callable[[Progress], None] | Literal["bar"] | None


class Display(Protocol):
    """Shows progress until the call ends."""

    def show(self, progress: Progress) -> None: ...

    def close(self) -> None: ...


class Quiet:
    """Shows nothing."""

    def show(self, progress: Progress) -> None:
        return None

    def close(self) -> None:
        return None


class Called(Quiet):
    """Passes progress to a function of the caller."""

    def __init__(self, call: Callable[[Progress], None]) -> None:
        self._call = call

    def show(self, progress: Progress) -> None:
        self._call(progress)


def every(seconds: float, call: Callable[[Progress], None]) -> Callable[[Progress], None]:
    """Return a function for `progress=` that calls `call` at most every so many seconds, and at the
    end: for logs, in which a line a second is too much."""
    due = 0.0

    def show(progress: Progress) -> None:
        nonlocal due
        now = time.monotonic()
        if now >= due or progress.state not in ("RUNNING", "PAUSED"):
            due = now + seconds
            call(progress)

    return show


class TerminalBar(Quiet):
    """One line on standard error, redrawn in place; without a terminal a line now and then."""

    def __init__(self) -> None:
        self._redraws = sys.stderr.isatty()
        self._width, self._due = 0, time.monotonic() + LINE_EVERY_S

    def show(self, progress: Progress) -> None:
        line = bar_line(progress)
        if self._redraws:
            print(f"\r{line:<{self._width}}", end="", file=sys.stderr, flush=True)
            self._width = len(line)
        elif time.monotonic() >= self._due:
            self._due = time.monotonic() + LINE_EVERY_S
            print(line, file=sys.stderr, flush=True)

    def close(self) -> None:
        if self._width:
            print(file=sys.stderr, flush=True)


class NotebookBar(Quiet):
    """One output of the cell, replaced in place."""

    def __init__(self, publish: Callable[..., Any]) -> None:
        """Take the `publish` of the notebook's shell."""
        self._publish, self._shown = publish, False
        self._place = {"display_id": f"ringhaul-{id(self)}-{time.monotonic_ns()}"}

    def show(self, progress: Progress) -> None:
        content = {"text/plain": bar_line(progress)}
        self._publish(data=content, transient=self._place, update=self._shown)
        self._shown = True


def open_display(watcher: Watcher) -> Display:
    """Return the display for `progress=`. Raises `UsageError` for anything else."""
    if watcher is None:
        return Quiet()
    if callable(watcher):
        return Called(watcher)
    if watcher != "bar":
        raise UsageError(f"progress is a function or 'bar', not {watcher!r}")
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is not None and hasattr(shell, "kernel"):  # a shell in a terminal has no kernel
        return NotebookBar(shell.display_pub.publish)
    return TerminalBar()


def bar_line(progress: Progress) -> str:
    """Return the bar with its figures, for people."""
    filled = round(progress.done * BAR_WIDTH)
    bar = "━" * filled + "─" * (BAR_WIDTH - filled)
    parts = [
        f"{bar} {progress.done:4.0%}",
        f"{progress.rows:,} row{'' if progress.rows == 1 else 's'}",
        f"{progress.rows_per_second:,.0f} rows/s",
    ]
    if progress.rejected:
        parts.append(f"{progress.rejected:,} rejected")
    if progress.state != "RUNNING":
        parts.append(progress.state)
    elif progress.eta_seconds is not None:
        minutes, seconds = divmod(round(progress.eta_seconds), 60)
        parts.append(f"ETA {minutes}:{seconds:02}")
    if progress.retrying:
        parts.append(f"retrying {progress.retrying}")
    return "  ".join(parts)
