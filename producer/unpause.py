"""Let a paused job go on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import rich_click as click

from producer.embedded import refuse_workers_of_others
from producer.hints import next_command
from producer.ledgers import reading_ledger
from producer.options import connection_flags, settle
from ringhaul.errors import UsageError
from ringhaul.ledger.fleet import look_at_fleet


def unpause(options: Mapping[str, Any]) -> bool:
    """Let a paused job go on; whether there is nothing else to do.

    A job whose units are not all split, or that has no workers, has lost its command: it is to be
    resumed as if it had not been paused. Raises `JobMissing`, or `UsageError` for what cannot be
    changed in a job that is not over.
    """
    from tasks.publish import QUEUE_LABEL, publish_next, queue_of

    job_id = options["job"]
    loaded = settle(connection_flags(options), options["config_file"])
    refuse_workers_of_others(loaded, options)
    with reading_ledger(None) as ledger:
        if not ledger.status(job_id).paused:
            return False
        if options["max_errors"]:
            raise UsageError(f"job {job_id} is paused: --max-errors can be changed when it is over")
        if options["output"] is not None or options["result_format"] is not None:
            raise UsageError(
                f"job {job_id} is paused: let it go on first; -o and --format are for the result "
                "of a count or a query, when it is over"
            )
        ledger.unpause(job_id)
        status = ledger.status(job_id)
        workers = look_at_fleet(ledger.caller).workers
        queue = queue_of(status.labels.get(QUEUE_LABEL, ""), workers)
        staffed = any(queue in worker.queues for worker in workers)
        if status.finished or (status.sealed and staffed):
            publish_next(ledger, job_id)
            watch = "" if status.finished else f"   watch: {next_command(f'status -f {job_id}')}"
            click.echo(f"{job_id} is {status.shown}{watch}", err=True)
            return True
    return False
