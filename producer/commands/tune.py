"""`ringhaul tune`: options in, exit code out. The work is in `producer.run.tune`."""

from __future__ import annotations

import secrets
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import rich_click as click

from producer.commands.options import connection_options
from producer.commands.record_options import record_options
from producer.request.options import TuneOptions
from producer.request.password import prompting_for_password
from producer.request.presets import with_preset
from producer.request.values import given_options
from producer.services.deadline import TimeOver, stops_before, too_short, until
from producer.startup import take_sigterm
from ringhaul.errors import UsageError
from ringhaul.ledger.shares import NORMAL
from ringhaul.schedule.times import parse_duration_s

#: Below this, nothing can be compared after the start.
BUDGET_MIN_S = 20


def _parse_budget(context: click.Context, option: click.Parameter, text: str) -> int:
    try:
        seconds = parse_duration_s(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    if seconds < BUDGET_MIN_S:
        raise click.BadParameter(f"give at least {BUDGET_MIN_S}s")
    return seconds


@click.command("tune")
@record_options
@click.option(
    "--nulls",
    type=click.Choice(["unset", "tombstone"]),
    default="unset",
    show_default=True,
    help="unset: leave the column as it is; tombstone: delete its value.",
)
@click.option(
    "--max-errors", metavar="N|N%", help="Stop when more records of a trial are rejected [1000]."
)
@click.option("--consistency", metavar="LEVEL", help="Consistency level for writes [LOCAL_QUORUM].")
@click.option(
    "--budget",
    "budget_s",
    default="5m",
    show_default=True,
    metavar="TIME",
    callback=_parse_budget,
    help="Time limit of the command, such as 90s or 10m.",
)
@click.option(
    "-c",
    "--workers",
    type=click.IntRange(1),
    metavar="N",
    help="Most worker processes to try [1.5 times the cores].",
)
@click.option(
    "--in-place",
    is_flag=True,
    help="Load into the table itself, not into a scratch table of the same schema.",
)
@click.option(
    "--overwrite",
    is_flag=True,
    help="With --in-place: even if the table has rows; those with the sample's keys are replaced.",
)
@click.option(
    "--write",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Put the result into this file [the ringhaul.toml that is read, else a new one here].",
)
@click.option("--no-write", is_flag=True, help="Only print the result.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.option("-q", "--quiet", is_flag=True, help="Only the result.")
@connection_options
def tune_command(**params: Any) -> int:
    """Find the fastest settings for a load, and what limits it.

    SOURCE and the options about records are those of a load. The first records are loaded again and
    again into a scratch table, with other settings each time.
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
                from producer.run.tune import run_tune
        except TimeOver:
            raise too_short(0) from None
        return run_tune(options, services, run, ends_s)


def tune_options(context: click.Context) -> TuneOptions:
    """Return the options of a parsed command."""
    given = frozenset(given_options(context))
    options = TuneOptions(
        **context.params,
        job_id=None,
        rate=None,
        priority=NORMAL,
        on_interrupt=None,
        unit_size=None,
        given=given,
    )
    return with_preset(options, given)[0]
