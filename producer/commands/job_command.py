"""Commands that run a job: click's parameters become one record of options.

Schedules build the records of their steps with the same function, so that a step is checked like
its command.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import rich_click as click

from producer.request.cqlshrc import apply_cqlshrc
from producer.request.options import (
    CountOptions,
    ExecOptions,
    JobOptions,
    LoadOptions,
    LookupOptions,
    QueryOptions,
    Spelling,
    UnloadOptions,
)
from producer.request.password import prompting_for_password
from producer.request.presets import with_preset
from producer.request.values import given_options
from producer.startup import take_sigterm
from ringhaul.ledger.kinds import JobKind
from tasks.command_line import VALUES_PREFIX, spell_as

Options = TypeVar("Options", bound=JobOptions)


def job_command(kind: JobKind) -> Callable[[Callable[[Options], int]], Callable[..., int]]:
    """Decorate a command that runs a job of this kind: it gets its options as one record.

    Adds `--job-id`, which makes a command safe to repeat: see `run.existing_job`.
    """

    def decorate(command: Callable[[Options], int]) -> Callable[..., int]:
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

        option: Callable[[Callable[..., int]], Callable[..., int]] = click.option(
            "--job-id",
            metavar="ID",
            help="Job id. An existing job is continued, so that the command is safe to repeat.",
        )
        return option(_cqlshrc_option(run))

    return decorate


def _cqlshrc_option(command: Callable[..., int]) -> Callable[..., int]:
    option: Callable[[Callable[..., int]], Callable[..., int]] = click.option(
        "--cqlshrc",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Take connection and options of COPY from this file of cqlsh.",
    )
    return option(command)


def job_options(kind: JobKind, context: click.Context, *, fingerprint: str = "") -> JobOptions:
    """Return the options of a parsed command, for its kind of job."""
    params, given = dict(context.params), frozenset(given_options(context))
    if kind.is_load:
        params["kind"] = kind
    elif kind.runs_statements:
        params = _with_values(params, given)
    options = _RECORDS[kind](**params, given=given, fingerprint=fingerprint)
    if isinstance(options, LoadOptions):
        options, settled = with_preset(options, given)
        options = replace(options, given=frozenset(settled))
    return options


_RECORDS: Mapping[JobKind, Callable[..., JobOptions]] = {
    JobKind.LOAD: LoadOptions,
    JobKind.VERIFY: LoadOptions,
    JobKind.UNLOAD: UnloadOptions,
    JobKind.COUNT: CountOptions,
    JobKind.QUERY: QueryOptions,
    JobKind.LOOKUP: LookupOptions,
    JobKind.EXEC: ExecOptions,
}


def _with_values(params: Mapping[str, Any], given: Collection[str]) -> dict[str, Any]:
    """Return the parameters, with those about values as one `Spelling` with its preset applied."""
    prefix = VALUES_PREFIX.replace("-", "_")
    own = {name: value for name, value in params.items() if not name.startswith(prefix)}
    values = {name.removeprefix(prefix): value for name, value in params.items() if name not in own}
    values["file_format"] = values.pop("format")
    of_values = {name.removeprefix(prefix) for name in given if name.startswith(prefix)}
    return {**own, "values": with_preset(Spelling(**values), of_values)[0]}
