"""`ringhaul tune`: options in, exit code out. The work is in `producer.tune.run`."""

from __future__ import annotations

import secrets
import time
from contextlib import ExitStack
from typing import Any

import psutil
import rich_click as click

from producer.commands.record_command import record_command
from producer.options.option import record_of
from producer.options.tune import TuneOptions
from producer.request.password import prompting_for_password
from producer.request.presets import with_preset
from producer.request.values import given_options
from producer.startup import take_sigterm
from producer.tune.deadline import TimeOver, stops_before, too_short, until
from ringhaul.errors import UsageError


@record_command("tune", TuneOptions)
def tune_command(**params: Any) -> int:
    """Find the fastest settings for a load, and what limits it.

    SOURCE and the options about records are the same as for a load. It loads the first records
    again and again into a scratch table, with other settings each time.
    """
    began_s = time.monotonic() - (time.time() - psutil.Process().create_time())
    from producer.services.start import start_tune

    take_sigterm()
    context = click.get_current_context()
    assert context is not None
    options = tune_options(context)
    if options.overwrite and not options.in_place:
        raise UsageError("--overwrite needs --in-place: give both, or leave it out")
    if options.write is not None and options.no_write:
        raise UsageError("--write names a file and --no-write writes none: give one of them")
    run = secrets.token_hex(3)
    ends_s = began_s + options.budget_s
    with prompting_for_password(options) as options, ExitStack() as stack:
        try:
            with until(stops_before(ends_s)):
                services = start_tune(stack, options, run)
                from producer.tune.run import run_tune
        except TimeOver:
            raise too_short(0) from None
        return run_tune(options, services, run, ends_s)


def tune_options(context: click.Context) -> TuneOptions:
    """Return the options of a parsed command."""
    given = frozenset(given_options(context))
    options: TuneOptions = record_of(TuneOptions, context.params, given=given)
    return with_preset(options, given)[0]
