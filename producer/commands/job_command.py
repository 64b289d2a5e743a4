"""Commands that run a job: what click parses becomes a record of options."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import rich_click as click

from producer.commands.record_command import RecordCommand, record_command
from producer.options.job import JobOptions
from ringhaul.ledger.kinds import JobKind

if TYPE_CHECKING:
    from producer.services.start import Start

Options = TypeVar("Options", bound=JobOptions)


def job_command(
    kind: JobKind, record: type[Options]
) -> Callable[[Callable[[Options, Start], int]], RecordCommand]:
    """Make a function a command that runs a job of this kind. The function gets its options as a
    record, and what starts the job's services.

    `--job-id` makes a command safe to repeat: see `run.existing_job`.
    """

    def decorate(command: Callable[[Options, Start], int]) -> RecordCommand:
        @wraps(command)
        def run(**params: Any) -> int:
            from producer.commands.job_start import start_command

            context = click.get_current_context()
            assert context is not None
            return start_command(kind, context, command)

        return record_command(kind.value, record)(run)

    return decorate
