"""The record of options of a parsed command that runs a job.

Schedules build the records of their steps with the same function, so that a step is checked like
its command.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import rich_click as click

from producer.commands.record_command import RecordCommand
from producer.options.job import JobOptions
from producer.options.load import LoadOptions
from producer.options.option import record_of
from producer.request.presets import with_preset
from producer.request.values import given_options
from ringhaul.ledger.kinds import JobKind
from tasks.command_line import VALUES_PREFIX


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
