"""Runs and schedules as words for people and as documents for programs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from ringhaul.schedule.runs import Run, RunState, Step
from ringhaul.schedule.times import duration_text, run_id


def time_text(ms: int | None) -> str | None:
    """A moment as `2026-11-20T01:30:00Z`."""
    if ms is None:
        return None
    return datetime.fromtimestamp(ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def run_document(run: Run, log: str = "") -> dict[str, Any]:
    """A run for programs: `schedule history --json`, and what notifications hold.

    `log`: the file with what its steps said, on the host that ran it.
    """
    return {
        "schedule": run.schedule,
        "run": run.id,
        "state": str(run.state),
        "due": time_text(run.due_ms),
        "started": time_text(run.started_ms),
        "ended": time_text(run.ended_ms),
        "late_s": run.late_ms / 1000,
        "duration_s": _seconds(run.started_ms, run.ended_ms),
        "by_hand": run.by_hand,
        "host": run.host,
        "takeovers": run.takeovers,
        "missed_from": time_text(run.missed_from_ms),
        "reason": run.reason,
        "files": [file.path for file in run.files],
        "steps": [_step_document(step) for step in run.steps],
        "notified": list(run.notified),
        "log": log,
    }


def _step_document(step: Step) -> dict[str, Any]:
    return {
        "command": step.command,
        "job": step.job,
        "exit_code": step.code,
        "state": step.state,
        "rows": step.rows,
        "tries": step.tries,
        "started": time_text(step.started_ms),
        "ended": time_text(step.ended_ms),
        "duration_s": _seconds(step.started_ms, step.ended_ms),
    }


def run_line(run: Run) -> str:
    """A run in one line: when, how late, its jobs and what became of them."""
    words = [run.schedule, run.id, str(run.state)]
    if run.state is not RunState.SKIPPED:
        if run.late_ms:
            words.append(f"{duration_text(run.late_ms / 1000)} late")
        seconds = _seconds(run.started_ms, run.ended_ms)
        if seconds is not None:
            words.append(f"in {duration_text(seconds)}")
    if run.missed_from_ms is not None:
        words.append(f"from {run_id(run.missed_from_ms)} on")
    if run.reason:
        words.append(f"({run.reason})")
    return "  ".join(words)


def step_text(step: Step) -> str:
    """A step in a few words: `load 0`, `count 4`, `unload -`."""
    code = "-" if step.code is None else str(step.code)
    return f"{step.command} {code}"


def _seconds(start_ms: int | None, end_ms: int | None) -> float | None:
    return None if start_ms is None or end_ms is None else (end_ms - start_ms) / 1000
