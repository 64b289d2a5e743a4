"""Beats with a real Valkey; the steps' cluster does not answer."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from config.settings import load_settings
from producer.schedule.scheduler import Beat
from ringhaul.ledger import keys
from ringhaul.ledger.connection import connect
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.schedules import ScheduleBook
from ringhaul.schedule.runs import Run


class Rig:
    """Beats on one Valkey, with a schedule file that the test writes."""

    def __init__(self, folder: Path, url: str) -> None:
        self.file = folder / "config" / "schedule.toml"
        self.file.parent.mkdir()
        self.client = connect(url)
        self.ledger = Ledger(self.client)
        self.book = ScheduleBook(self.ledger.caller)

    def beat(self) -> Beat:
        return Beat(load_settings(), self.ledger)

    def set_back(self, name: str, days: int) -> None:
        """Set the schedule back, as if no beat had looked for so many days."""
        key = keys.schedule_key(name, "state")
        for field, value in self.client.hgetall(key).items():
            if field == b"settled_ms" or field.startswith((b"since:", b"seen:")):
                self.client.hset(key, field, int(value) - days * 86_400_000)

    def run(self) -> Run | None:
        return next(iter(self.book.runs("a", 1)), None)


def rewrite(path: Path, text: str) -> None:
    """Write a file whose time differs from that of its last version: the clock of files may stand
    still for 10 ms."""
    before_ns = path.stat().st_mtime_ns if path.exists() else 0
    path.write_text(text)
    if before_ns:
        os.utime(path, ns=(before_ns, before_ns + 1_000_000_000))


def look_until(beat: Beat, true: Callable[[], object], what: str, *others: Beat) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline, what
        time.sleep(min(0.05, *(one.look() for one in (beat, *others))))
