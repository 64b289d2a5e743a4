"""`ringhaul top`: show all jobs and workers, refreshed every second. It reads only Redis."""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
import time
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from rich.console import Console
from rich.live import Live

from producer.figures.speed import recent_snapshot
from producer.figures.standing import no_worker_text
from producer.options.connection import LedgerPlace
from producer.outputs.plain_streams import console_for, escape_beside_live
from producer.outputs.stdout import json_text
from producer.report.top_view import View, as_document, as_screen
from producer.services.ledger import reading_ledger
from ringhaul.errors import EXIT_COMPLETE, LedgerUnavailable
from ringhaul.ledger.audit import JobDamaged
from ringhaul.ledger.fleet import look_at_fleet
from ringhaul.ledger.history import History, Sample
from ringhaul.ledger.job_status import JobStatus
from ringhaul.ledger.ledger import Ledger

LOOK_EVERY_S = 1.0
#: Without Redis, a look fails this soon, so that the screen can show the failure.
PATIENCE_MS = 500
#: How many ended jobs are shown, newest first.
ENDED_SHOWN = 5


def run_top(place: LedgerPlace, *, once: bool, as_json: bool) -> int:
    """Run `ringhaul top` until the user quits; return the exit code."""
    with reading_ledger(place) as ledger:
        look = Look(ledger)
        if as_json:
            _print_documents(look, once=once)
        elif once or not sys.stdout.isatty():
            console = Console()
            console.print(as_screen(look.view(), size=console.size, whole=True))
        else:
            _show(Look(ledger.with_patience(PATIENCE_MS)))
    return EXIT_COMPLETE


class Look:
    """Makes views of all jobs and workers."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._history = History(ledger.caller)

    def view(self) -> View:
        """Return the current view. Raises `LedgerUnavailable`."""
        running = self._ledger.unended()
        shown = {status.job for status in running}
        newest = self._ledger.jobs(len(running) + ENDED_SHOWN)
        ended = [status for status in newest if status.finished and status.job not in shown]
        statuses = [*running, *ended[:ENDED_SHOWN]]
        units = [
            unit
            for status in running
            if status.leased
            for unit in self._ledger.units_at_work(status.job)
        ]
        fleet = look_at_fleet(self._ledger.caller)
        return View(
            jobs=[
                (status, recent_snapshot(status, self._samples(status), fleet=fleet))
                for status in statuses
            ],
            workers=sorted(fleet.workers),
            no_worker=no_worker_text(fleet) if running else "",
            units=sorted(units, key=lambda unit: -unit.seconds),
        )

    def _samples(self, status: JobStatus) -> list[Sample]:
        with suppress(JobDamaged):  # a job that lost only its history is complete
            return self._history.recent(status)
        return []


def _print_documents(look: Look, *, once: bool) -> None:
    """Print each view as a line of JSON."""
    while True:
        print(json_text(as_document(look.view())), flush=True)
        if once:
            return
        time.sleep(LOOK_EVERY_S)


def _show(look: Look) -> None:
    """Show the live screen until q or Ctrl-C."""
    console = console_for(sys.stdout)
    view, away = None, ""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with (
        suppress(KeyboardInterrupt),
        _pressed_keys() as pressed,
        Live(console=console, screen=True, auto_refresh=False) as live,
    ):
        escape_beside_live()
        while True:
            began_s = time.monotonic()
            try:
                view, away = look.view(), ""
            except LedgerUnavailable as error:
                away = str(error)
            live.update(as_screen(view, size=console.size, away=away), refresh=True)
            left_s = LOOK_EVERY_S - (time.monotonic() - began_s)
            if pressed("q", max(left_s, 0.05)):
                return


class _Pressed:
    """Reports whether a key was pressed on the terminal."""

    def __init__(self, *, has_keys: bool) -> None:
        self._has_keys = has_keys

    def __call__(self, key: str, wait_s: float) -> bool:
        """Wait up to `wait_s` for `key`; return whether it was pressed."""
        give_up_at = time.monotonic() + wait_s
        while (left_s := give_up_at - time.monotonic()) > 0:
            if not self._has_keys:
                time.sleep(left_s)
            elif select.select([sys.stdin], [], [], left_s)[0]:
                typed = os.read(sys.stdin.fileno(), 1).decode(errors="replace")
                if typed.lower() == key:
                    return True
                self._has_keys = bool(typed)  # at the end of input, every read returns at once
        return False


@contextmanager
def _pressed_keys() -> Iterator[_Pressed]:
    """Read single keys instead of lines, if standard input is a terminal."""
    if not sys.stdin.isatty():
        yield _Pressed(has_keys=False)
        return
    before = termios.tcgetattr(sys.stdin)
    try:
        tty.setcbreak(sys.stdin)
        yield _Pressed(has_keys=True)
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
