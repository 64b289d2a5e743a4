"""The history of a job for `status --events`."""

from __future__ import annotations

from dataclasses import replace

from producer.figures.summary import read_closing
from producer.report.events import event_lines, history_json
from producer.report.reporter import Shown, print_closing
from ringhaul.ledger.audit import JobDamaged
from ringhaul.ledger.history import History
from ringhaul.ledger.ledger import Ledger


def print_history(ledger: Ledger, job_id: str, *, as_json: bool) -> int:
    """Print what happened to a job, and return the exit code of its command."""
    closing = read_closing(ledger, job_id)
    shown = Shown(as_json=as_json)
    history = History(ledger.caller)
    try:
        events, samples = history.events(job_id), history.samples(job_id)
    except JobDamaged:
        print_closing(closing, shown)
        return closing.exit_code
    if as_json:
        print_closing(replace(closing, data=closing.data | history_json(events, samples)), shown)
        return closing.exit_code
    for line in event_lines(events) if events else ():
        print(line)
    if not events:
        shown.say(f"no events of {job_id} are kept: a version that keeps none ran it")
    if "damage" in closing.data:
        print_closing(closing, shown)
    return closing.exit_code
