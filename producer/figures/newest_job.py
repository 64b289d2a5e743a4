"""Choose the job of a command that names none: the newest."""

from __future__ import annotations

import sys
from collections.abc import Callable

from ringhaul.errors import UsageError
from ringhaul.ledger.kinds import JobKind
from ringhaul.ledger.ledger import Ledger


def newest_job(
    ledger: Ledger, *, wanted: Callable[[JobKind], bool] | None = None, none: str
) -> str:
    """Return the newest job, or the newest of a wanted kind, and say on stderr which it is.

    For commands that change no job. Raises `UsageError` with the text `none` if there is no such
    job.
    """
    for status in ledger.jobs():
        kind = JobKind.of_labels(status.labels)
        if wanted is None or wanted(kind):
            print(f"{status.job}, the newest {kind}:", file=sys.stderr)
            return status.job
    raise UsageError(none)
