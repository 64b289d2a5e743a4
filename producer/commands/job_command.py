"""Commands that run a job: click's parameters become one record of options.

Schedules build the records of their steps with the same function, so that a step is checked like
its command.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any, TypeVar

import rich_click as click

from producer.commands.record_command import RecordCommand, record_command
from producer.options.job import JobOptions
from producer.options.load import LoadOptions
from producer.options.option import record_of
from producer.request.cqlshrc import apply_cqlshrc
from producer.request.password import prompting_for_password
from producer.request.presets import with_preset
from producer.request.values import given_options
from producer.startup import take_sigterm
from ringhaul.ledger.kinds import JobKind
from tasks.command_line import VALUES_PREFIX, spell_as

Options = TypeVar("Options", bound=JobOptions)


def job_command(
    kind: JobKind, record: type[Options]
) -> Callable[[Callable[[Options], int]], RecordCommand]:
    """Make a function a command that runs a job of this kind: it gets its options as a record.

    `--job-id` makes a command safe to repeat: see `run.existing_job`.
    """

    def decorate(command: Callable[[Options], int]) -> RecordCommand:
        @wraps(command)
        def run(**params: Any) -> int:
            from producer.commands.format_profile import apply_profile
            from producer.report.reporter import Shown
            from producer.request.conflicts import refuse_together
            from producer.request.fingerprint import fingerprint_of
            from producer.run.existing_job import run_or_continue

            take_sigterm()
            context = click.get_current_context()
            assert context is not None
            profile = apply_profile(context)
            for warning in apply_cqlshrc(context):
                print(f"warning: {warning}", file=sys.stderr)
            refuse_together(given_options(context))
            spell_as(kind)
            options: Any = job_options(kind, context, fingerprint=fingerprint_of(context))
            if profile is not None:
                Shown.from_options(options).say(profile)
            with prompting_for_password(options) as options:
                code: int = run_or_continue(options, kind, command)
            return code

        return record_command(kind.value, record)(run)

    return decorate


def job_options(kind: JobKind, context: click.Context, *, fingerprint: str = "") -> JobOptions:
    """Return the options of a parsed command, for its kind of job."""
    command, given = context.command, frozenset(given_options(context))
    assert isinstance(command, RecordCommand), command
    options: JobOptions = record_of(
        command.record, context.params, given=given, fingerprint=fingerprint
    )
    if isinstance(options, LoadOptions):
        options, settled = with_preset(replace(options, kind=kind), given)
        return replace(options, given=frozenset(settled))
    if kind.runs_statements:
        return _with_preset_of_values(options, given)
    return options


def _with_preset_of_values(options: Any, given: frozenset[str]) -> JobOptions:
    """Return the options of a statement with the preset of its values applied."""
    start = VALUES_PREFIX.replace("-", "_")
    of_values = {name.removeprefix(start) for name in given if name.startswith(start)}
    found: JobOptions = replace(options, values=with_preset(options.values, of_values)[0])
    return found
