"""Format runs and schedules as text for people and as documents for programs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from producer.text import count_text
from ringhaul.schedule.runs import Run, RunState, Step
from ringhaul.schedule.times import duration_text, run_id

#: Files of a run that a line names.
FILES_NAMED_MAX = 3


def time_text(ms: int | None) -> str | None:
    """Format a time in ms since the epoch as `2026-11-20T01:30:00Z`; None stays None."""
    if ms is None:
        return None
    return datetime.fromtimestamp(ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def run_document(run: Run, log: str = "") -> dict[str, Any]:
    """Return a run for programs, for `schedule history --json` and for notifications.

    `log`: the path of the steps' log, on the host that ran them.
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
        "error": step.error,
        "rows": step.rows,
        "rejected": step.rejected,
        "tries": step.tries,
        "started": time_text(step.started_ms),
        "ended": time_text(step.ended_ms),
        "duration_s": _seconds(step.started_ms, step.ended_ms),
    }


def run_line(run: Run) -> str:
    """Format a run as one line: when, its state, how late, how long, and why."""
    parts = [run.schedule, run.id, str(run.state)]
    if run.state is not RunState.SKIPPED:
        if run.late_ms:
            parts.append(f"{duration_text(run.late_ms / 1000)} late")
        seconds = _seconds(run.started_ms, run.ended_ms)
        if seconds is not None:
            parts.append(f"in {duration_text(seconds)}")
    if run.missed_from_ms is not None:
        parts.append(f"from {run_id(run.missed_from_ms)} on")
    if run.reason:
        parts.append(f"({run.reason})")
    return "  ".join(parts)


def run_notes(run: Run) -> list[str]:
    """Return what else there is to say of a run, for people: the files that it had, and the
    notifications that reached nobody."""
    notes = []
    if run.files:
        names = [file.path for file in run.files[:FILES_NAMED_MAX]]
        more = len(run.files) - len(names)
        others = f" and {count_text(more, 'other file')}" if more else ""
        notes.append(f"files {', '.join(names)}{others}")
    notes += [f"notification failed: {outcome}" for outcome in run.notified if outcome != "ok"]
    return notes


def step_text(step: Step) -> str:
    """Format a step as its command and exit code: `load exit 0`, `unload -`."""
    return f"{step.command} {'-' if step.code is None else f'exit {step.code}'}"


def _seconds(start_ms: int | None, end_ms: int | None) -> float | None:
    return None if start_ms is None or end_ms is None else (end_ms - start_ms) / 1000
