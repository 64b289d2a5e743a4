"""`ringhaul unload`: options in, exit code out. The work is in `producer.run.unload`."""

from __future__ import annotations

from contextlib import ExitStack

from producer.commands.job_command import job_command
from producer.options.reads import UnloadOptions
from ringhaul.ledger.kinds import JobKind


@job_command(JobKind.UNLOAD, UnloadOptions)
def unload_command(options: UnloadOptions) -> int:
    """Write a table's rows to files: CSV, JSON Lines or Parquet.

    Each file appears when it is complete; _manifest.json comes last and lists them. `-o out.csv`
    makes one file. `ringhaul load` loads them again.
    """
    from producer.services.start import start_job

    with ExitStack() as stack:
        services = start_job(stack, options, JobKind.UNLOAD, own_workers=options.output == "-")
        from producer.run.unload import run_unload  # while the services start

        return run_unload(options, services)
