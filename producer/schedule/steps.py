"""Check the options of a schedule's step as far as possible without the cluster, the broker and the
files.

These are the commands' own checks, which they make before they connect.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import rich_click as click
from click.core import ParameterSource
from click.exceptions import Exit

from config.errors import ConfigError
from producer.commands.click_options import AS_STEP
from producer.commands.format_profile import apply_profile
from producer.commands.job_options import job_options
from producer.commands.registry import find_command
from producer.options.job import JobOptions
from producer.options.load import LoadOptions
from producer.options.option import declared_by
from producer.options.output import ResultPlace, RowsOutput
from producer.options.reads import UnloadOptions
from producer.options.statements import ExecOptions, LookupOptions
from producer.request.conflicts import refuse_together
from producer.request.cqlshrc import apply_cqlshrc
from producer.request.output import STDOUT
from producer.request.settings import settings_with
from producer.schedule.listing import find_strange
from producer.schedule.step_output import check_output
from ringhaul.errors import UsageError
from ringhaul.ledger.kinds import JobKind
from ringhaul.query.errors import QueryError
from ringhaul.schedule.parse import STEP_COMMANDS
from ringhaul.schedule.runs import Run, step_arguments
from ringhaul.schedule.schedules import Schedule
from ringhaul.schedule.times import FAR_MS
from ringhaul.storage.access import is_url
from ringhaul.storage.streams import is_stream
from tasks.command_line import spelled_as


def check_step_options(options: JobOptions, folder: Path) -> None:
    """Raise `UsageError` for options that the command of a step would refuse.

    `folder`: where the step runs.
    """
    if isinstance(options, RowsOutput | ResultPlace):
        output = options.output
        if output is not None and output != STDOUT and not is_url(output):
            placed: Any = options  # both have the field, which mypy cannot see
            options = replace(placed, output=os.path.join(folder, output))
    from producer.schedule.step_checks import check_kind  # slow: not to list schedules

    refuse_together(options.given)
    try:
        with spelled_as(_kind(options)):
            check_kind(options, settings_with(options))
    except ConfigError as error:
        raise UsageError(str(error)) from error
    except UsageError as error:
        if not isinstance(error, QueryError):
            raise
        parts = [name for name in ("where", "columns") if getattr(options, name, None)]
        sql = "--query" if isinstance(options, UnloadOptions) else "SELECT"
        place = " or ".join(f"--{name}" for name in parts) or sql
        raise UsageError(f"{place}: {error}") from error


def _kind(options: JobOptions) -> JobKind | None:
    """Return the kind of a step's job, as far as its options are spelled in another way."""
    return {LookupOptions: JobKind.LOOKUP, ExecOptions: JobKind.EXEC}.get(type(options))


def check_step(schedule: Schedule, step: tuple[str, ...], number: int, folder: Path) -> str | None:
    """Check a step; return a warning or None. Raises `UsageError` for what its command would
    refuse, and for what no step may do.

    `folder`: where it runs.
    """

    def parsed(due_ms: int) -> click.Context:
        return _parsed(schedule.arguments(due_ms, ("/file",))[number - 1])

    kind = JobKind(step[0])
    first = parsed(0)
    options = job_options(kind, first)
    _check_input(options)
    warning = None
    if isinstance(options, RowsOutput):
        given, _, _ = first.command.make_parser(first).parse_args(list(step[1:]))
        template = given.get("output", options.output)
        warning = check_output(schedule, options, template, time.time_ns() // 1_000_000)
    _check_values([options, job_options(kind, parsed(FAR_MS))], folder)
    return warning


def _check_values(runs: Sequence[JobOptions], folder: Path) -> None:
    """Check the options of runs that are far apart. An error that only some runs have, such as a
    range from a fixed day to the due time, is raised by the run that has it."""
    found: list[UsageError] = []
    for options in runs:
        try:
            check_step_options(options, folder)
        except UsageError as error:
            found.append(error)
    if len(found) == len(runs):
        raise found[-1]


def _check_input(options: JobOptions) -> None:
    inputs: tuple[str | None, ...] = ()
    if isinstance(options, LoadOptions):
        inputs = (*options.sources, options.urlfile)
    elif isinstance(options, LookupOptions):
        inputs = (options.keys,)
    elif isinstance(options, ExecOptions):
        inputs = (options.params,)
    for name in inputs:
        if name is not None and is_stream(name):
            raise UsageError(f"{name}: a step has no standard input and no pipe: give a file")


def run_arguments(schedule: Schedule, run: Run, index: int, folder: Path) -> list[str]:
    """Return the command line of a run's step: from the schedule file, with the run's values in its
    templates, and checked again with them.

    `folder`: where relative paths start. Raises `UsageError` for a file that the schedule does not
    look for, and for what a step must not do.
    """
    strange = find_strange(schedule.arrive, str(folder), [file.path for file in run.files])
    if strange is not None:
        raise UsageError(f"{strange!r} is not among the files of arrive: it is ignored")
    try:
        arguments = step_arguments(schedule, run, index)
    except ValueError as error:
        raise UsageError(str(error)) from None
    job_options(JobKind(arguments[0]), _parsed(arguments))
    return arguments


def _parsed(arguments: Sequence[str]) -> click.Context:
    """Parse a step's command line without running it. Raises `UsageError`."""
    name = arguments[0]
    command = find_command(name) if name in STEP_COMMANDS else None
    if command is None:
        raise UsageError(f"{name} is not a command that a step may have")
    try:
        context = command.make_context(name, list(arguments[1:]), obj=AS_STEP)
    except Exit:
        raise UsageError("--help is not allowed in a step") from None
    except click.ClickException as error:
        raise UsageError(error.format_message()) from None
    _refuse(context)
    try:
        apply_profile(context)
    except ConfigError as error:
        raise UsageError(str(error)) from error
    apply_cqlshrc(context)
    return context


def _refuse(context: click.Context) -> None:
    """Raise `UsageError` for options that no step may have.

    An option that names a cluster, or a user of it, is refused before any file that it names is
    read: a writer of the schedule file could send beat's password to another cluster with it, or
    have beat read other secrets."""
    for parameter in context.command.params:
        declared = declared_by(parameter)
        if declared is not None and declared.no_step and _is_given(context, declared.name):
            raise UsageError(f"{declared.flag}: {declared.no_step}")


def _is_given(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is ParameterSource.COMMANDLINE
