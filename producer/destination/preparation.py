"""What a load that makes SSTables needs before its workers start."""

from __future__ import annotations

import importlib
import os

from config.settings import Settings
from producer.text import bytes_text
from ringhaul.errors import OutputUnusable
from ringhaul.records.job import LoadJob
from ringhaul.storage.room import Need, check_room, free_bytes
from tasks.storage_settings import spill_bounds


def prepare_destination(
    job: LoadJob, job_id: str, settings: Settings, processes: int, *, own_workers: bool
) -> str:
    """Prepare folders and, for workers of this command, kernels; return a warning, or nothing.

    Raises `OutputUnusable` or `OutputUnavailable` for a folder that cannot be used, or a disk that
    has no room for the units that run at once.
    """
    if not job.destination.makes_sstables:
        return ""
    staged = job.destination.folder_of(job_id, complete=False)
    needs = [_create_staged(job, staged, processes)] if staged else []
    if own_workers:
        # Own workers load no kernels when they start, and compiling takes longer than a unit may
        # be silent.
        importlib.import_module("ringhaul.sstables.build")
        needs += spill_bounds(settings, job).needs(_unit_bytes(job), processes)
    try:
        check_room(needs)
    except OutputUnusable:
        if staged:
            os.rmdir(staged)
        raise
    return _room_warning(job, job_id, staged) if staged else ""


def _create_staged(job: LoadJob, staged: str, processes: int) -> Need:
    """Create the folder in which workers write; return what they need there at once. Workers do not
    create it, so that a worker on a host that does not share it fails. Raises `OutputUnusable`."""
    try:
        os.makedirs(staged, exist_ok=True)
    except OSError as error:
        raise OutputUnusable(f"--to-sstables: cannot create {staged}: {error.strerror}") from error
    return Need(
        folder=staged,
        bytes_count=min(processes * _unit_bytes(job), job.total_bytes),
        what="the SSTables of units that run at once",
        advice="name another folder (--to-sstables), or lower --unit-size",
    )


def _unit_bytes(job: LoadJob) -> int:
    return min(job.unit_bytes, job.total_bytes)


def _room_warning(job: LoadJob, job_id: str, staged: str) -> str:
    """Return a warning if a folder may be too small for all SSTables. They take about the bytes of
    the input: less of text, more of compressed files."""
    free = free_bytes(staged)
    if free >= job.total_bytes:
        return ""
    folder = os.path.dirname(os.path.dirname(staged))
    return (
        f"{folder} has {bytes_text(free)} free, and the input has "
        f"{bytes_text(job.total_bytes)}: its SSTables may need as much. Should the disk get full, "
        f"free some and run `ringhaul resume {job_id}`"
    )
