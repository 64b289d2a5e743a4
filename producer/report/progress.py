"""Show progress: a bar or logfmt lines on stderr, or JSON Lines on stdout."""

from __future__ import annotations

import json
import sys
import time
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime
from types import TracebackType
from typing import Protocol, Self

from config.secrets import mask
from producer.figures.snapshot import Snapshot
from producer.outputs.plain_streams import console_for, escape_beside_live
from producer.outputs.stdout import json_text, print_message
from producer.text import bytes_text, count_text, ms_text, rate_text, time_text
from ringhaul.plain_text import as_line, as_message

#: Interval of lines if there is no bar.
LINE_EVERY_S = 30.0
#: New trouble of a job is shown at once, but at most once in this time.
TROUBLE_EVERY_S = 10.0
BAR_WIDTH = 30


class Progress(Protocol):
    """Shows snapshots. A context manager, so that a bar restores the terminal at the end."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

    def show(self, snapshot: Snapshot) -> None:
        """Show the current state of the job; called a few times a second."""

    def note(self, text: str) -> None:
        """Print a sentence that stays visible, such as one about an unavailable broker."""


def open_progress(kind: str, *, quiet: bool) -> Progress:
    """Return the display for `--progress auto|bar|plain|json|none`."""
    if quiet or kind == "none":
        return NoProgress()
    if kind == "json":
        return JsonProgress()
    if kind == "bar" or (kind == "auto" and sys.stderr.isatty()):
        return BarProgress()
    return LineProgress()


class NoProgress:
    """Shows nothing but notes."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def show(self, snapshot: Snapshot) -> None:
        return None

    def note(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)


class LineProgress(NoProgress):
    """Prints a logfmt line every 30 s, as for cron, and one as soon as units are being retried."""

    def __init__(self) -> None:
        self._due = time.monotonic() + LINE_EVERY_S
        self._trouble_due = 0.0
        self._shown = False  # whether a line about retries was printed

    def show(self, snapshot: Snapshot) -> None:
        now = time.monotonic()
        is_new = snapshot.retrying is not None and not self._shown
        self._shown = self._shown and snapshot.retrying is not None
        if now >= self._due or (is_new and now >= self._trouble_due):
            self._shown = snapshot.retrying is not None
            self._due = now + LINE_EVERY_S
            self._trouble_due = now + TROUBLE_EVERY_S
            print(logfmt(snapshot), file=sys.stderr, flush=True)


class JsonProgress(NoProgress):
    """Prints a `status` message every second on stdout, as JSON Lines."""

    def __init__(self) -> None:
        self._due = 0.0

    def show(self, snapshot: Snapshot) -> None:
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + 1.0
            figures = asdict(snapshot) | {"done": snapshot.share}
            print_message(json_text({"message_type": "status", **figures}))


class BarProgress(NoProgress):
    """Lines that are redrawn in place."""

    def __init__(self) -> None:
        from rich.live import Live

        self._console = console_for(sys.stderr)
        self._live = Live(console=self._console, refresh_per_second=8, transient=True)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stack.enter_context(self._live)
        escape_beside_live()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def show(self, snapshot: Snapshot) -> None:
        from rich.text import Text

        # An error message may contain brackets, which must not be read as markup.
        self._live.update(Text("\n".join(map(as_line, bar_lines(snapshot)))))

    def note(self, text: str) -> None:
        self._console.print(mask(as_message(text)), markup=False)


def bar_lines(snapshot: Snapshot) -> tuple[str, ...]:
    """Return the two lines of the bar, and a third while units are only being retried."""
    filled = round(snapshot.share * BAR_WIDTH)
    bar = "━" * filled + "─" * (BAR_WIDTH - filled)
    # Jobs that read have no rejects to watch for, unless there are some.
    rejected = snapshot.bytes_total or snapshot.rejected
    units = f"{snapshot.units_done:,}/{snapshot.units:,}" + ("" if snapshot.sealed else "+")
    end = f"ETA {time_text(snapshot.eta_s)}"
    if snapshot.state == "PAUSED" or snapshot.condition:
        end = snapshot.shown_state
    retrying = (f" retrying {snapshot.retrying}",) if snapshot.retrying else ()
    standing = (f" {snapshot.standing}",) if snapshot.standing else ()
    return (
        f" {bar} {snapshot.share:4.0%}  {units} units   {time_text(snapshot.elapsed_s)}"
        f"  {end}   {count_text(snapshot.workers, 'worker')}",
        f" {count_text(snapshot.rows, 'row')}"
        + (f"   {snapshot.rejected:,} rejected" if rejected else "")
        + f"   {rate_text(snapshot.rows_per_s)} rows/s   {bytes_text(snapshot.bytes_per_s)}/s"
        f"   p50 {ms_text(snapshot.p50_ms)}  p99 {ms_text(snapshot.p99_ms)}"
        f"   {count_text(snapshot.retries, 'retry', 'retries')}",
        *retrying,
        *standing,
    )


def logfmt(snapshot: Snapshot) -> str:
    """Format a snapshot as a log line in logfmt."""
    pairs = {
        "ts": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "job": snapshot.job,
        "state": snapshot.state,
        "pct": f"{100 * snapshot.share:.1f}",
        "units": f"{snapshot.units_done}/{snapshot.units}",
        "rows": snapshot.rows,
        "rejected": snapshot.rejected,
        "rows_s": round(snapshot.rows_per_s),
        "bytes_s": round(snapshot.bytes_per_s),
        "p50_ms": snapshot.p50_ms,
        "p99_ms": snapshot.p99_ms,
        "retries": snapshot.retries,
        "eta_s": None if snapshot.eta_s is None else round(snapshot.eta_s),
        "workers": snapshot.workers,
        "retrying": snapshot.retrying and json.dumps(snapshot.retrying, ensure_ascii=False),
        "standing": snapshot.standing and json.dumps(snapshot.standing, ensure_ascii=False),
    }
    return " ".join(f"{name}={value}" for name, value in pairs.items() if value is not None)
