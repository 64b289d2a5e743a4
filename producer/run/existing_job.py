"""`--job-id`: makes a command safe to repeat, because it continues an existing job of this id.

A schedule, a cron job or a restarted container cannot know whether an earlier attempt created its
job before it was killed. With a job id it does not need to: the second command follows a running
job, runs what a failed job lacks, or reports how a job ended.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from producer.options.job import JobOptions
from producer.run.continuation import continue_job
from ringhaul.ledger.keys import job_key
from ringhaul.ledger.kinds import JobKind
from ringhaul.ledger.reading import JobTaken

Options = TypeVar("Options", bound=JobOptions)


def run_or_continue(options: Options, kind: JobKind, command: Callable[[Options], int]) -> int:
    """Run `command`, or continue the job of its `--job-id`; return the exit code. `kind`: the job's
    kind."""
    assert options.job_id is not None
    job_key(options.job_id, "meta")  # raises for an invalid id
    if options.dry_run:
        return command(options)
    code, adopted = continue_job(options, kind)
    if code is None:
        try:
            return command(replace(options, adopted=adopted))
        except JobTaken:  # another command created it in the meantime
            code, adopted = continue_job(options, kind)
            if code is None:
                raise
    return code
