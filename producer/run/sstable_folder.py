"""What a load that writes SSTables needs before its workers start."""

from __future__ import annotations

import importlib
import os

from ringhaul.errors import OutputUnusable
from ringhaul.records.sstable_output import SSTableOutput


def prepare_sstables(output: SSTableOutput, job_id: str, *, own_workers: bool) -> None:
    """Create the folder in which workers write. They do not create it, so that a worker on a host
    that does not share it fails.

    `own_workers`: they belong to this command and load no kernels when they start. Kernels that are
    compiled for the first time on a machine take longer than a unit may be silent, so that is done
    here. Raises `OutputUnusable`.
    """
    staged = output.staged(job_id)
    try:
        os.makedirs(staged, exist_ok=True)
    except OSError as error:
        raise OutputUnusable(f"--to-sstables: cannot create {staged}: {error.strerror}") from error
    if own_workers:
        importlib.import_module("ringhaul.sstables.build")
