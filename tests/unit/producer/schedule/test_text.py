"""What lists and pages say of a run beside its state."""

from __future__ import annotations

from producer.schedule.text import run_notes
from ringhaul.schedule.arrivals import Arrived
from ringhaul.schedule.runs import Run


def test_files_and_failed_notifications_are_named() -> None:
    files = tuple(Arrived(f"/in/{name}.csv", 5, "v", "") for name in "abcde")
    run = Run(schedule="a", due_ms=0, files=files, notified=("ok", "HTTP 500", "no such file"))
    assert run_notes(run) == [
        "files /in/a.csv, /in/b.csv, /in/c.csv and 2 other files",
        "notification failed: HTTP 500",
        "notification failed: no such file",
    ]
    assert run_notes(Run(schedule="a", due_ms=0, files=files[:1])) == ["files /in/a.csv"]
    assert run_notes(Run(schedule="a", due_ms=0, notified=("ok",))) == []
