"""Jobs that nobody can go on with: their rows went to the standard output of a command that is
gone.

What such a command leaves when it is killed runs no more, as its workers ended with it, and cannot
be resumed. A keeper that comes by ends it. Any other job of a killed command is left as it is:
`resume` goes on with it.

A command that lives is told by its workers: they say every few seconds that their queue is in use
(`private_queues.note_queues`), however long the command waits for whoever reads its output.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ringhaul.ledger import keys

if TYPE_CHECKING:
    from ringhaul.ledger.ledger import Ledger

#: Nothing was heard of a job's own workers for so long. A host may sleep for minutes and go on.
GONE_MS = 600_000
#: And at so many looks in a row: some 2 minutes at the default of one every 5 s. When Redis was
#: away nobody could say anything; whoever lives does within half a minute of its return.
LOOKS_MIN = 24

REASON = "its command is gone, and with it the standard output that its rows went to: start it anew"


class Abandoned:
    """Looks for such jobs, at each beat of a keeper."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        #: Job -> ms at which its workers were there last, and looks that have found just that.
        self._seen: dict[str, tuple[int, int]] = {}

    def look(self, running: Iterable[str]) -> list[str]:
        """End those of the jobs that run; which. Raises as the ledger does."""
        caller, ended = self._ledger.caller, []
        seconds, _ = caller.command("TIME")
        seen: dict[str, tuple[int, int]] = {}
        for job in running:
            there: float | None = caller.command("ZSCORE", keys.QUEUES, job)
            if there is None:  # standing workers do it
                continue
            last_ms, looks = self._seen.get(job, (0, 0))
            looks = looks + 1 if last_ms == int(there) else 1
            if looks >= LOOKS_MIN:
                looks = 0
                if seconds * 1000 - there >= GONE_MS and self._is_lost(job):
                    self._ledger.fail(job, REASON)
                    ended.append(job)
            seen[job] = int(there), looks
        self._seen = seen
        return ended

    def _is_lost(self, job: str) -> bool:
        """Whether the job's rows went to a standard output; loads, for one, know of none."""
        spec = json.loads(self._ledger.job_spec(job))
        return bool(spec.get("streams") and spec.get("output"))
