"""Remove standard input that was spooled, once no job needs it."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from producer.inputs.stdin_spool import spool_folder_of, spool_path
from ringhaul.errors import EXIT_COMPLETE, EXIT_REJECTS, EXIT_STILL_RUNNING
from ringhaul.ledger.keys import JOB_TTL_S
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.reading import JobMissing
from ringhaul.records.job import Input
from ringhaul.storage.streams import is_stream

#: With more rejects than this, the file is kept without checking which of them need it.
REJECTS_LOOKED_AT = 100_000


class SpooledInput:
    """Standard input of a command, which goes to a file for the job that will read it.

    A context manager: removes the file unless a job has it by then.
    """

    def __init__(self, state_dir: Path, job_id: str, sources: Sequence[str]) -> None:
        """`sources`: files, URLs or `-`, as the user gave them."""
        self.path = spool_path(state_dir, job_id)
        self._state_dir, self._streams = state_dir, any(map(is_stream, sources))
        self._given = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._given:
            self.path.unlink(missing_ok=True)

    def give_to_job(self, ledger: Ledger) -> None:
        """Leave the file to the job, which exists from now on; remove spooled files that no job
        needs."""
        self._given = True
        if self._streams:
            forget_spooled(ledger, self._state_dir)


def drop_spooled(state_dir: Path, job_id: str, job: Input) -> None:
    """Remove what was spooled for a job, by whichever command."""
    for path in _spooled(state_dir, job_id, job):
        path.unlink(missing_ok=True)


def drop_if_done(
    ledger: Ledger,
    state_dir: Path,
    job_id: str,
    job: Input,
    code: int,
    *,
    resumable: bool,
) -> None:
    """Remove what was spooled for a job if nothing needs it any more, now that its command ends
    with the exit code `code`.

    `job`: a load, or the values of a lookup or an exec. `resumable`: whether an unsuccessful job
    may be resumed.
    """
    over = code in (EXIT_COMPLETE, EXIT_REJECTS)
    over = over or (not resumable and code != EXIT_STILL_RUNNING)
    if over and _spooled(state_dir, job_id, job) and _are_kept(ledger, job_id):
        drop_spooled(state_dir, job_id, job)


def forget_spooled(ledger: Ledger, state_dir: Path) -> None:
    """Remove spooled files of unknown jobs that are older than the ledger keeps ended jobs."""
    oldest_s = time.time() - JOB_TTL_S
    for path in spool_folder_of(state_dir).glob("*.csv"):
        try:
            if path.stat().st_mtime < oldest_s:
                ledger.status(path.name.rsplit(".", 2)[0])
        except JobMissing:
            path.unlink(missing_ok=True)
        except FileNotFoundError:  # another command removed it
            continue


def _are_kept(ledger: Ledger, job_id: str) -> bool:
    """Return whether the ledger holds the bytes of all rejects of a job."""
    from producer.figures.rejects import job_rejects  # most loads do not need it

    for count, reject in enumerate(job_rejects(ledger, job_id)):
        if reject.data is None or count == REJECTS_LOOKED_AT:
            return False
    return True


def _spooled(state_dir: Path, job_id: str, job: Input) -> list[Path]:
    folder = Path(os.path.abspath(spool_folder_of(state_dir)))  # as sources are named
    paths = [Path(source.file.path) for source in job.sources]
    return [p for p in paths if p.parent == folder and p.name.startswith(f"{job_id}.")]
