"""The start of a command that runs a job: from click's parameters to its options and services."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import rich_click as click

from producer.commands.format_profile import apply_profile
from producer.commands.job_options import job_options
from producer.options.job import JobOptions
from producer.report.reporter import Shown
from producer.request.conflicts import refuse_together
from producer.request.cqlshrc import apply_cqlshrc
from producer.request.fingerprint import fingerprint_of
from producer.request.password import prompting_for_password
from producer.request.values import given_options
from producer.services.start import Start, starter
from producer.startup import take_sigterm
from ringhaul.ledger.kinds import JobKind
from tasks.command_line import spell_as


def start_command(
    kind: JobKind, context: click.Context, command: Callable[[Any, Start], int]
) -> int:
    """Run a command with its options, or continue the job of its `--job-id`. Return the exit
    code."""
    take_sigterm()
    profile = apply_profile(context)
    for warning in apply_cqlshrc(context):
        print(f"warning: {warning}", file=sys.stderr)
    refuse_together(given_options(context))
    spell_as(kind)
    options: JobOptions = job_options(kind, context, fingerprint=fingerprint_of(context))
    if profile is not None:
        Shown.from_options(options).say(profile)

    def run(options: JobOptions) -> int:
        return command(options, starter(options, kind))

    with prompting_for_password(options) as options:
        if options.job_id is None:
            return run(options)
        # Most commands have no id: their start does not wait for this.
        from producer.run.existing_job import run_or_continue

        return run_or_continue(options, kind, run)
