"""`ringhaul load`: options in, exit code out. The work is in `producer.run.load`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from producer.commands.job_command import job_command
from producer.options.load import LoadOptions
from ringhaul.ledger.kinds import JobKind

if TYPE_CHECKING:
    from producer.services.start import Start


@job_command(JobKind.LOAD, LoadOptions)
def load_command(options: LoadOptions, start: Start) -> int:
    """Load CSV, JSON Lines or Parquet files into a table.

    SOURCE is a file, a glob, a folder, a URL or - for standard input; .gz, .zst, .bz2, .xz, .lz4,
    .br, .lzma and the files in a .zip are unpacked while they are read.
    """
    with start() as services:
        # Imported now, while the services start: both take as long.
        from producer.run.load import run_load

        return run_load(options, services)
