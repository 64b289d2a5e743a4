"""The list of jobs for `status`."""

from __future__ import annotations

import sys
import time

from producer.figures.speed import recent_snapshot
from producer.outputs.stdout import json_text
from producer.report.job_rows import job_row
from producer.tables import Column, screen_width, table_lines
from producer.text import rate_text, time_text
from ringhaul.ledger.fleet import look_at_fleet
from ringhaul.ledger.history import History
from ringhaul.ledger.job_status import JobStatus
from ringhaul.ledger.ledger import Ledger
from ringhaul.plain_text import as_line


def print_jobs(ledger: Ledger, limit: int, *, as_json: bool) -> None:
    """Print the last `limit` jobs of the broker, the newest first."""
    history, fleet = History(ledger.caller), look_at_fleet(ledger.caller)
    snapshots = [
        (status, recent_snapshot(status, history.recent(status), fleet=fleet))
        for status in ledger.jobs(limit)
    ]
    if as_json:
        rows = [job_row(status, snapshot) for status, snapshot in snapshots]
        print(json_text(rows, indent=2))
        return
    columns = (
        Column("JOB", short=16, ends=True),
        Column("VERB", goes=3),
        Column("TARGET", short=12, ends=True),
        Column("STATE"),
        Column("DONE", right=True),
        Column("ROWS", right=True),
        Column("ROWS/S", goes=2, right=True),
        Column("ETA", goes=4, right=True),
        Column("REJECTED", goes=1, right=True),
        Column("STARTED", goes=5, right=True),
    )
    lines = []
    for status, snapshot in snapshots:
        state = status.state_name if status.damage else snapshot.shown_state
        head = (status.job, status.labels.get("kind", "-"), _target(status), state)
        if status.damage:  # none of its counts is right
            lines.append((*head, *[""] * 6))
            continue
        ago = time_text(max(time.time() - status.created_ms / 1000, 0))
        figures = (
            f"{snapshot.share:.0%}",
            f"{snapshot.rows:,}",
            rate_text(snapshot.rows_per_s),
            time_text(snapshot.eta_s),
            f"{snapshot.rejected:,}",
            f"{ago} ago",
        )
        lines.append((*head, *figures))
    for line in table_lines(columns, lines, width=screen_width(sys.stdout)):
        print(line)
    for standing in dict.fromkeys(one.standing for _, one in snapshots if one.standing):
        print(standing, file=sys.stderr)


def _target(status: JobStatus) -> str:
    """Return the job's table, from its label: text that the job's maker chose."""
    return as_line(status.labels.get("table", "-"))
