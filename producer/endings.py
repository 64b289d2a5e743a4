"""What a job that wrote files needs at its end: its manifest, by whoever follows it to there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ringhaul.ledger.ledger import Ledger
    from ringhaul.ledger.reading import JobStatus


def publish_end(ledger: Ledger, status: JobStatus) -> None:
    """Write the manifest of an unload, a lookup or an exec that wrote files and is over.

    Nothing for other jobs. Repeating it writes the same. Raises `OutputUnusable` where the files
    are not to be seen.
    """
    from ringhaul.ledger.states import JobState
    from tasks.publish import KIND_LABEL

    kind = status.labels.get(KIND_LABEL)
    done = status.state in (JobState.COMPLETE, JobState.PARTIAL)
    if not done or kind not in ("unload", "lookup", "exec"):
        return
    from ringhaul.read.ask_finish import publish_ask_manifest
    from ringhaul.read.finish import publish_manifest
    from tasks.kinds import job_of

    job: Any = job_of(ledger.job_spec(status.job))
    if job.output is None or job.streams:
        return
    if kind == "unload":
        publish_manifest(ledger, status.job)
    else:
        publish_ask_manifest(ledger, status)
