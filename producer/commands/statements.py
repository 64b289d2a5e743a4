"""`ringhaul lookup` and `ringhaul exec`: options in, exit code out. The work is in
`producer.run.statements`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from producer.commands.job_command import job_command
from producer.options.statements import ExecOptions, LookupOptions
from ringhaul.ledger.kinds import JobKind

if TYPE_CHECKING:
    from producer.services.start import Start


@job_command(JobKind.LOOKUP, LookupOptions)
def lookup_command(options: LookupOptions, start: Start) -> int:
    """Read the rows of a list of keys.

    Each key is read from the nodes that hold its rows.
    """
    with start(own_workers=options.output == "-") as services:
        from producer.run.statements import run_lookup  # while the services start

        return run_lookup(options, services)


@job_command(JobKind.EXEC, ExecOptions)
def exec_command(options: ExecOptions, start: Start) -> int:
    """Run a CQL statement once for each row of values.

    The values fill its ? markers.

    SELECT, INSERT, UPDATE, DELETE and counters. What must not be done twice is never sent twice.
    """
    with start() as services:
        from producer.run.statements import run_exec  # while the services start

        return run_exec(options, services)
