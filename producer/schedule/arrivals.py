"""Look for arrived files, in a thread: listing and checksums may take minutes."""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path

from producer.schedule.listing import OddName, are_bases_there, list_arrivals, take_checksum
from ringhaul.errors import RinghaulError
from ringhaul.ledger.schedules import ScheduleBook
from ringhaul.schedule.arrivals import (
    FAILED,
    Arrived,
    Listed,
    Settling,
    batch,
    candidates,
    is_alone,
    same_content,
)
from ringhaul.schedule.runs import Run, RunState
from ringhaul.schedule.schedules import Schedule
from ringhaul.schedule.times import duration_text

log = logging.getLogger(__name__)

#: How often vanished files are recorded; those gone for long are forgotten.
FORGET_EVERY_S = 3600.0
#: A look that takes longer is logged while it lasts: on a dead mount it never ends.
SLOW_S = 60.0


class ArrivalPoller:
    """Looks repeatedly for the files of one schedule."""

    def __init__(self, book: ScheduleBook, schedule: Schedule, folder: Path) -> None:
        """`folder`: where relative patterns start."""
        self.schedule = schedule
        self._book, self._folder = book, folder
        self._settling = Settling(schedule.settle_s * 1000)
        #: Files with a new time stamp and the same content: they were only touched.
        self._touched: set[Listed] = set()
        self._thread: threading.Thread | None = None
        self._began = 0.0
        #: The pattern or file being read, for messages.
        self._at = ""
        self._warned_of_slow = False
        self._found: list[Arrived] = []
        self._forget_due = 0.0
        self._logged = ""
        #: Paths that the last look could not list or read, with their errors.
        self.odd: dict[str, Exception] = {}
        #: Earliest time of the next look.
        self.next_ms = 0
        #: `settled_ms` before the look: if a run has ended since, the files found are stale.
        self.settled_ms = 0
        #: The value in the ledger before the look: see `Run.troubles`.
        self.troubles = 0
        #: Whether the look found one file that must be tried alone.
        self.alone = False
        #: Whether there are more files than fit in the next run.
        self.left = False

    @property
    def busy(self) -> bool:
        """Whether a look is running."""
        return self._thread is not None

    def start(self, settled_ms: int, now_ms: int, troubles: int = 0) -> None:
        """Start a look. `settled_ms`, `now_ms`, `troubles`: current values in the ledger."""
        self.settled_ms, self.troubles = settled_ms, troubles
        self.next_ms = self.schedule.timing.due_after(now_ms) or 0
        self._began, self._warned_of_slow = time.monotonic(), False
        self._thread = threading.Thread(
            target=self._run, args=(now_ms,), name="arrivals", daemon=True
        )
        self._thread.start()

    def result(self) -> list[Arrived] | None:
        """Return the files of the next run if a look has ended; None if none is running or it has
        not ended."""
        if self._thread is None:
            return None
        lasted_s = time.monotonic() - self._began
        if self._thread.is_alive():
            if lasted_s > SLOW_S and not self._warned_of_slow:
                self._warned_of_slow = True
                log.warning(
                    "%s: the search for files has taken %s so far and is at %s: no file is loaded "
                    "until it ends; is a mount dead?",
                    self.schedule.name,
                    duration_text(lasted_s),
                    self._at,
                )
            return None
        if self._warned_of_slow:
            log.info(
                "%s: the search for files took %s", self.schedule.name, duration_text(lasted_s)
            )
        self._thread = None
        return self._found

    def run_ended(self, run: Run) -> None:
        """Note that a run has ended. If it left files, or its files must now be tried one by one,
        the next look starts at once."""
        if self.left or (run.state is RunState.FAILED and len(run.files) > 1):
            self.next_ms = 0
        self.left = False

    def look(self, now_ms: int, *, failed_too: bool = False) -> list[Arrived]:
        """Return the files to load in the next run. Raises as `ScheduleBook` does.

        `failed_too`: include files that could not be loaded before. A file or folder that cannot
        be read does not block others: it is logged once, and listed in `odd`.
        """
        schedule = self.schedule
        before, self.odd = self.odd, {}

        def report(path: str, error: Exception) -> None:
            self.odd[path] = error
            if path not in before:  # only once
                log.warning("%s: left out: %s", schedule.name, odd_text(path, error))

        def begin(pattern: str) -> None:
            self._at = pattern

        listed = list_arrivals(schedule.arrive, str(self._folder), report, begin)
        self._forget(listed, now_ms)
        settled = self._settling.look(listed, time.monotonic_ns() // 1_000_000)
        known = self._book.remembered(schedule.name, [file.path for file in settled])
        self._touched &= set(listed)
        again = {path for path, file in known.items() if failed_too and file.state == FAILED}
        wanted = [
            file
            for file in candidates(settled, known, failed_too=failed_too)
            if file not in self._touched or file.path in again
        ]
        found: list[Arrived] = []
        alone_first = any(is_alone(file, known) for file in wanted) and self._is_turn_of_alone()
        while wanted and not found:
            files = batch(wanted, known, schedule.files_max, alone_first=alone_first)
            tried = set(files)
            wanted = [file for file in wanted if file not in tried]
            for file in files:
                self._at = file.path
                try:
                    arrived = take_checksum(file)
                except (RinghaulError, OSError) as error:
                    report(file.path, error)
                    continue
                if arrived is None:
                    continue  # it has changed meanwhile, so it has not settled
                same = same_content(known.get(file.path), file, arrived.checksum)
                if same and file.path not in again:
                    self._touched.add(file)
                else:
                    found.append(arrived)
        self.alone = bool(found) and is_alone(found[0].listed, known)
        self.left = bool(found and wanted)
        return found

    def _is_turn_of_alone(self) -> bool:
        """Return whether the last run was not of a single file tried alone. It asks the ledger,
        since beats may take turns."""
        last = next(iter(self._book.runs(self.schedule.name, 1)), None)
        return last is not None and not last.alone

    def _run(self, now_ms: int) -> None:
        self._found = []
        try:
            self._found = self.look(now_ms)
            self._logged = ""
        except (RinghaulError, OSError) as error:
            if str(error) != self._logged:  # only once
                log.warning("%s: cannot look for files: %s", self.schedule.name, error)
            self._logged = str(error)
        except Exception:
            log.exception("%s: cannot look for files", self.schedule.name)

    def _forget(self, listed: list[Listed], now_ms: int) -> None:
        if time.monotonic() < self._forget_due:
            return
        self._forget_due = time.monotonic() + FORGET_EVERY_S
        name, patterns = self.schedule.name, self.schedule.arrive
        self._book.keep_files(name)
        listed_all = all(isinstance(error, OddName) for error in self.odd.values())
        if not listed_all or not are_bases_there(patterns, str(self._folder)):
            return  # files that are not listed may still exist
        gone = self._book.forget(name, {file.path for file in listed}, now_ms)
        if gone:
            log.info("%s: forgot %d files that are gone", self.schedule.name, gone)


def odd_text(path: str, error: Exception) -> str:
    """Return why a file or a folder is left out."""
    return f"{path}: {error.strerror}" if isinstance(error, OSError) else str(error)
