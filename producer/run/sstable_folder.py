"""What a load that writes SSTables needs before its workers start."""

from __future__ import annotations

import importlib
import os

from ringhaul.errors import OutputUnusable
from ringhaul.records.sstable_output import SSTableOutput


def compile_kernels() -> None:
    """Compile the kernels for SSTables, for workers of this command: they load none when they
    start. Compiling takes longer than a unit may be silent."""
    importlib.import_module("ringhaul.sstables.build")


def prepare_sstables(output: SSTableOutput, job_id: str) -> None:
    """Create the folder in which workers write. They do not create it, so that a worker on a host
    that does not share it fails. Raises `OutputUnusable`."""
    staged = output.staged(job_id)
    try:
        os.makedirs(staged, exist_ok=True)
    except OSError as error:
        raise OutputUnusable(f"--to-sstables: cannot create {staged}: {error.strerror}") from error
