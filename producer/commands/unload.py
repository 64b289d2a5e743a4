"""`ringhaul unload`: options in, exit code out. The work is in `producer.run.unload`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from producer.commands.job_command import job_command
from producer.options.reads import UnloadOptions
from ringhaul.ledger.kinds import JobKind

if TYPE_CHECKING:
    from producer.services.start import Start


@job_command(JobKind.UNLOAD, UnloadOptions)
def unload_command(options: UnloadOptions, start: Start) -> int:
    """Write a table's rows to files: CSV, JSON Lines or Parquet.

    Each file appears when it is complete; _manifest.json comes last and lists them. `-o out.csv`
    makes one file. `ringhaul load` loads them again.
    """
    with start(own_workers=options.output == "-") as services:
        from producer.run.unload import run_unload  # while the services start

        return run_unload(options, services)
