"""Remove what was spooled from standard input once no job wants it."""

from __future__ import annotations

import os
import time
from pathlib import Path

from producer.inputs.stdin_spool import spool_folder_of
from ringhaul.errors import EXIT_COMPLETE, EXIT_REJECTS, EXIT_STILL_RUNNING
from ringhaul.ledger.keys import JOB_TTL_S
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.reading import JobMissing
from ringhaul.records.job import LoadJob

#: Of more rejects it is not looked up, record by record, whether one of them wants the file.
REJECTS_LOOKED_AT = 100_000


def drop_spooled(state_dir: Path, job_id: str, job: LoadJob) -> None:
    """Remove what was spooled for a job, by whichever command began it."""
    for path in _spooled(state_dir, job_id, job):
        path.unlink(missing_ok=True)


def drop_if_done(
    ledger: Ledger,
    state_dir: Path,
    job_id: str,
    job: LoadJob,
    code: int,
    *,
    resumable: bool = True,
) -> None:
    """Remove what was spooled for a job whose command ends with this exit code, if it is done with.

    `job`: of a lookup or an exec, its values. `resumable`: a job that did not end well may go on.
    """
    over = code in (EXIT_COMPLETE, EXIT_REJECTS)
    over = over or (not resumable and code != EXIT_STILL_RUNNING)
    if over and _spooled(state_dir, job_id, job) and _are_kept(ledger, job_id):
        drop_spooled(state_dir, job_id, job)


def forget_spooled(ledger: Ledger, state_dir: Path) -> None:
    """Remove what is older than the ledger keeps a job that is over, and of no job it knows."""
    oldest_s = time.time() - JOB_TTL_S
    for path in spool_folder_of(state_dir).glob("*.csv"):
        try:
            if path.stat().st_mtime < oldest_s:
                ledger.status(path.name.rsplit(".", 2)[0])
        except JobMissing:
            path.unlink(missing_ok=True)
        except FileNotFoundError:  # another command did the same
            continue


def _are_kept(ledger: Ledger, job_id: str) -> bool:
    """Whether the ledger has the bytes of all rejects of a job."""
    from producer.report.rejects import job_rejects  # not for each load

    for count, reject in enumerate(job_rejects(ledger, job_id)):
        if reject.data is None or count == REJECTS_LOOKED_AT:
            return False
    return True


def _spooled(state_dir: Path, job_id: str, job: LoadJob) -> list[Path]:
    folder = Path(os.path.abspath(spool_folder_of(state_dir)))  # as sources are named
    paths = [Path(source.file.path) for source in job.sources]
    return [p for p in paths if p.parent == folder and p.name.startswith(f"{job_id}.")]
