"""`ringhaul lookup` and `ringhaul exec`: options in, exit code out. The work is in
`producer.run.statements`."""

from __future__ import annotations

from contextlib import ExitStack

from producer.commands.job_command import job_command
from producer.options.statements import ExecOptions, LookupOptions
from ringhaul.ledger.kinds import JobKind


@job_command(JobKind.LOOKUP, LookupOptions)
def lookup_command(options: LookupOptions) -> int:
    """Read the rows of a list of keys.

    Each key is read from the nodes that hold its rows.
    """
    from producer.services.start import start_job

    with ExitStack() as stack:
        services = start_job(stack, options, JobKind.LOOKUP, own_workers=options.output == "-")
        from producer.run.statements import run_lookup  # while the services start

        return run_lookup(options, services)


@job_command(JobKind.EXEC, ExecOptions)
def exec_command(options: ExecOptions) -> int:
    """Run a CQL statement once for each row of values.

    The values fill its ? markers.

    SELECT, INSERT, UPDATE, DELETE and counters. What must not be done twice is never sent twice.
    """
    from producer.services.start import start_job

    with ExitStack() as stack:
        services = start_job(stack, options, JobKind.EXEC)
        from producer.run.statements import run_exec  # while the services start

        return run_exec(options, services)
