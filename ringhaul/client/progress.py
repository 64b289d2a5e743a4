"""Progress of a running job, and the bar that shows it in a notebook or a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from ringhaul.client.errors import UsageError

BAR_WIDTH = 30
#: Seconds between two lines where no bar can be redrawn.
LINE_EVERY_S = 30.0


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a job is; about one a second while a call waits for it, and one at its end."""

    job: str
    state: str  #: RUNNING, PAUSED, or how it ended
    done: float  #: share, 0 to 1
    rows: int
    rejected: int
    units: int  #: known so far
    units_done: int
    bytes_done: int
    bytes_total: int
    rows_per_second: float
    bytes_per_second: float
    elapsed_seconds: float
    eta_seconds: float | None  #: None: not known yet
    workers: int
    retrying: str | None  #: why the job makes no progress; None: it does

    @classmethod
    def read(cls, message: Mapping[str, Any]) -> Progress:
        """Return the progress in a `status` message of the command."""
        return cls(
            job=message["job"],
            state=message["state"],
            done=message.get("done") or 0.0,
            rows=message.get("rows") or 0,
            rejected=message.get("rejected") or 0,
            units=message.get("units") or 0,
            units_done=message.get("units_done") or 0,
            bytes_done=message.get("bytes_done") or 0,
            bytes_total=message.get("bytes_total") or 0,
            rows_per_second=message.get("rows_per_s") or 0.0,
            bytes_per_second=message.get("bytes_per_s") or 0.0,
            elapsed_seconds=message.get("elapsed_s") or 0.0,
            eta_seconds=message.get("eta_s"),
            workers=message.get("workers") or 0,
            retrying=message.get("retrying"),
        )

    @classmethod
    def at_end(cls, summary: Mapping[str, Any], last: Mapping[str, Any]) -> Progress:
        """Return the progress of a job that has ended, from its summary and its last `status`
        message (empty: there was none)."""
        names = ("job", "state", "rows", "rejected", "units", "units_done", "elapsed_s")
        figures = {name: summary.get(name) for name in (*names, "rows_per_s", "retrying")}
        units = summary.get("units") or 0
        done = (summary.get("units_done") or 0) / units if units else 1.0
        return cls.read({**last, **figures, "done": done, "eta_s": None})


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
    """Return a function for `progress=` that calls another one at most so often, and at the end:
    for logs, in which a line a second is too much."""
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
    if shell is not None and hasattr(shell, "kernel"):  # in a terminal it has none
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
