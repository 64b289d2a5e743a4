"""Find and end abandoned jobs: their rows went to the standard output of a command that has ended.

When such a command is killed, its workers end too, and the job cannot be resumed: a keeper ends it.
Any other job of a killed command stays as it is, since `resume` can continue it.

A command counts as alive while its workers report every few seconds that their queue is in use
(`private_queues.note_queues`), however long the command waits for the reader of its output.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ringhaul.ledger import keys

if TYPE_CHECKING:
    from ringhaul.ledger.ledger import Ledger

#: A job is abandoned if its workers have been silent for this long (a host may sleep for minutes
#: and then continue) ...
GONE_MS = 600_000
#: ... and at this many looks in a row: about 2 minutes at the default of one every 5 s. While Redis
#: was unavailable no worker could report; a live one does within half a minute of its return.
LOOKS_MIN = 24

REASON = "its command, whose standard output its rows went to, has ended: run the command again"


class Abandoned:
    """Looks for abandoned jobs at each beat of a keeper."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        #: Job -> last report of its workers (ms), and how many looks in a row have seen that one.
        self._seen: dict[str, tuple[int, int]] = {}

    def look(self, running: Iterable[str]) -> list[str]:
        """End the abandoned jobs among `running` and return them. Raises as the ledger does."""
        caller, ended = self._ledger.caller, []
        seconds, _ = caller.command("TIME")
        seen: dict[str, tuple[int, int]] = {}
        for job in running:
            reported_ms: float | None = caller.command("ZSCORE", keys.QUEUES, job)
            if reported_ms is None:  # it has no private workers: shared ones run it
                continue
            last_ms, looks = self._seen.get(job, (0, 0))
            looks = looks + 1 if last_ms == int(reported_ms) else 1
            if looks >= LOOKS_MIN:
                looks = 0
                if seconds * 1000 - reported_ms >= GONE_MS and self._is_lost(job):
                    self._ledger.fail(job, REASON)
                    ended.append(job)
            seen[job] = int(reported_ms), looks
        self._seen = seen
        return ended

    def _is_lost(self, job: str) -> bool:
        """Return whether the job's rows went to a standard output (a load, for one, has none)."""
        spec = json.loads(self._ledger.job_spec(job))
        return bool(spec.get("streams") and spec.get("output"))
