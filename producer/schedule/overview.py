"""All schedules at a moment: what the file says and the ledger knows, for commands and pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from producer.schedule.file import ScheduleFile
from producer.schedule.text import run_document, time_text
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.schedules import Beats, Health, ScheduleBook, Standing, is_wanted
from ringhaul.schedule.runs import Run
from ringhaul.schedule.schedules import Schedule


@dataclass(frozen=True, kw_only=True)
class ScheduleRow:
    """One schedule."""

    schedule: Schedule
    standing: Standing
    last: Run | None  #: The newest run of its history.
    health: Health  #: How its runs ended lately.
    next_ms: int | None  #: When it is next due, unless it is paused.
    warnings: Sequence[str]  #: Possible mistakes in the file.

    @property
    def name(self) -> str:
        """Its name in the file."""
        return self.schedule.name

    @property
    def state(self) -> str:
        """`running`, `paused` or `waiting`."""
        if self.standing.run is not None:
            return "running"
        return "waiting" if self.standing.paused_ms is None else "paused"

    @property
    def shown_state(self) -> str:
        """The state for people: a run that goes on does not hide that the schedule is paused."""
        return "running, paused" if self.state == "running" and self.paused else self.state

    @property
    def paused(self) -> bool:
        """Whether no run starts at its due times; one may still be running."""
        return self.standing.paused_ms is not None

    @property
    def wanted(self) -> bool:
        """Whether a run was requested that no beat has started yet."""
        return is_wanted(self.standing)

    @property
    def when(self) -> str:
        """When it runs, in the words of the file."""
        timing, files = self.schedule.timing.text, self.schedule.arrive
        return f"{timing}: {', '.join(files)}" if files else timing

    @property
    def last_end(self) -> str:
        """How its last run ended, for people: `DONE`, `FAILED 3x`, `FAILED, seen` (somebody has
        acknowledged it), or `-`."""
        if self.health.ended is None:
            return "-"
        times = f" {self.health.failures}x" if self.health.failures > 1 else ""
        seen = ", seen" if self.health.acknowledged else ""
        return f"{self.health.ended.state}{times}{seen}"

    def to_json(self) -> dict[str, Any]:
        """Return the row for programs. Fields are only ever added."""
        return {
            "name": self.name,
            "state": self.state,
            "when": self.when,
            "next_due": time_text(self.next_ms),
            "paused_since": time_text(self.standing.paused_ms),
            "running": self.standing.run,
            "last": None if self.last is None else run_document(self.last),
            "last_ended": None if self.health.ended is None else run_document(self.health.ended),
            "last_success": time_text(self.health.success_ms),
            "failures_in_a_row": self.health.failures,
            "acknowledged": self.health.acknowledged,
            "warnings": list(self.warnings),
        }


@dataclass(frozen=True, kw_only=True)
class Overview:
    """All schedules of a file."""

    path: Path
    #: Living beats ("host:pid"), and why they cannot read their files; empty if they can.
    beats: Mapping[str, str]
    rows: Sequence[ScheduleRow]
    problem: str = ""  #: Why the file cannot be read now: see `ScheduleFile.problem`.

    @property
    def problems(self) -> list[str]:
        """What is wrong with the file, here and where beats run, for people."""
        here = [f"{self.problem}; shown is the last version that could be read"]
        beats = (
            f"beat {beat} cannot read its schedule file, and keeps to the last version: {problem}"
            for beat, problem in self.beats.items()
            if problem
        )
        return [*(here if self.problem else ()), *beats]

    def to_json(self) -> dict[str, Any]:
        """Return the document of `schedule list --json`."""
        schedules = [row.to_json() for row in self.rows]
        return {
            "file": str(self.path),
            "file_problem": self.problem or None,
            "beats": list(self.beats),
            "beat_problems": {beat: text for beat, text in self.beats.items() if text},
            "schedules": schedules,
        }


def look_at_schedules(ledger: Ledger, file: ScheduleFile) -> Overview:
    """Return all schedules of a file. Raises LedgerUnavailable."""
    book = ScheduleBook(ledger.caller)
    return Overview(
        path=file.path,
        problem=file.problem,
        beats=Beats(ledger.caller).problems(),
        rows=[look_at_schedule(book, file, schedule) for schedule in file.schedules.values()],
    )


def look_at_schedule(book: ScheduleBook, file: ScheduleFile, schedule: Schedule) -> ScheduleRow:
    """Return one schedule of a file. Raises LedgerUnavailable."""
    standing = book.standing(schedule.name)
    next_ms = schedule.timing.due_after(standing.now_ms)
    return ScheduleRow(
        schedule=schedule,
        standing=standing,
        last=next(iter(book.runs(schedule.name, 1)), None),
        health=book.health(schedule.name),
        next_ms=None if standing.paused_ms is not None else next_ms,
        warnings=tuple(file.warnings[schedule.name]),
    )
