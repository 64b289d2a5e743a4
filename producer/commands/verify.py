"""`ringhaul verify`: options in, exit code out. The work is in `producer.run.load`: a verification
is a load that compares rows instead of writing them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from producer.commands.job_command import job_command
from producer.options.verify import VerifyOptions
from ringhaul.ledger.kinds import JobKind

if TYPE_CHECKING:
    from producer.services.start import Start


@job_command(JobKind.VERIFY, VerifyOptions)
def verify_command(options: VerifyOptions, start: Start) -> int:
    """Compare files with a table, record by record; change nothing.

    It takes the SOURCE (CSV, JSON Lines or Parquet) and the options of a load. `ringhaul errors
    JOB` lists the records by which a load would change something, and exports them to be loaded.
    """
    with start() as services:
        # Imported now, while the services start: both take as long.
        from producer.run.load import run_load

        return run_load(options, services)
