"""A search for files that hangs; tests/integration has the files that searches find."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from producer.schedule import arrivals
from producer.schedule.arrivals import ArrivalPoller
from ringhaul.ledger.connection import Caller
from ringhaul.ledger.schedules import ScheduleBook
from ringhaul.schedule.parse import parse_schedules


def until(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_search_that_hangs_is_reported_once_with_its_pattern(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # Given a mount that does not answer
    dead, back = tmp_path / "dead", threading.Event()
    dead.mkdir()
    scandir: Callable[..., Any] = os.scandir

    def scan(path: Any = ".") -> Any:
        if str(path).startswith(str(dead)):
            back.wait(30)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", scan)
    monkeypatch.setattr(arrivals, "SLOW_S", 1.0)
    text = f'[schedule.a]\narrive = ["none", "{dead}/*.csv"]\n'
    schedule = parse_schedules(text + 'steps = [["load", "{files}", "-t", "k.t"]]', "s")["a"]
    # and a ledger that is not used, because no file is found
    look = ArrivalPoller(ScheduleBook(Caller.__new__(Caller)), schedule, tmp_path)
    look._forget_due = float("inf")

    def said() -> list[logging.LogRecord]:
        """Return ours: a driver of other tests of this process logs, too."""
        return [record for record in caplog.records if record.name == arrivals.log.name]

    with caplog.at_level(logging.INFO, logger=arrivals.log.name):
        look.start(0, 0)
        assert look.result() is None and not said(), "it is not late yet"
        until(lambda: look.result() is None and said())
        for _ in range(3):
            assert look.result() is None
        # Then that is reported once
        (record,) = said()
        assert record.levelno == logging.WARNING
        assert record.message.startswith("a: the search for files has taken ")
        assert f" is at {dead}/*.csv: no file is loaded until it ends" in record.message
        # When the mount answers again, the search ends and reports how long it took
        back.set()
        until(lambda: look.result() == [])
        assert said()[-1].message.startswith("a: the search for files took ")
        assert not look.busy
        # and the next search gets the full time again
        look.start(0, 0)
        until(lambda: look.result() == [])
        assert len(said()) == 2
