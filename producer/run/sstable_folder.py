"""The folder of a load that writes SSTables."""

from __future__ import annotations

import os

from ringhaul.errors import OutputUnusable
from ringhaul.records.sstable_output import SSTableOutput


def make_staged(output: SSTableOutput, job_id: str) -> None:
    """Create the folder in which workers write. They do not create it, so that a worker on a host
    that does not share it fails. Raises `OutputUnusable`."""
    staged = output.staged(job_id)
    try:
        os.makedirs(staged, exist_ok=True)
    except OSError as error:
        raise OutputUnusable(f"--to-sstables: cannot create {staged}: {error.strerror}") from error
