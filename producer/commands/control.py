"""`ringhaul pause`, `resume`, `throttle` and `cancel`: control a running job."""

from __future__ import annotations

from typing import Any

import rich_click as click

from producer.commands.options import connection_options, following_options, ledger_options
from producer.commands.query import RESULT_FORMATS
from producer.request.options import LedgerPlace, ResumeOptions, ThrottleOptions
from producer.request.password import prompting_for_password
from producer.request.rate import Rate
from producer.request.values import given_options
from producer.startup import take_sigterm
from ringhaul.ledger.states import JobState


@click.command("pause")
@click.argument("job")
@ledger_options
def pause_command(job: str, place: LedgerPlace) -> int:
    """Hold a running job.

    Its workers stop working on it within 2 s. `resume` continues it.
    """
    from producer.services.ledger import reading_ledger

    with reading_ledger(place) as ledger:
        state = ledger.pause(job)
    paused = state is JobState.RUNNING
    click.echo(f"{job} is {'PAUSED' if paused else state}", err=True)
    return 0 if paused else 2


@click.command("cancel")
@click.argument("job")
@ledger_options
def cancel_command(job: str, place: LedgerPlace) -> int:
    """End a running job.

    Its workers stop within 2 s. `resume` continues it from there, where that is possible.
    """
    from producer.services.ledger import reading_ledger

    with reading_ledger(place) as ledger:
        state = ledger.cancel(job)
    click.echo(f"{job} is {state}", err=True)
    return 0 if state is JobState.CANCELLED else 2


@click.command("resume")
@click.argument("job")
@click.option("--max-errors", metavar="N|N%", help="Rejects that are allowed from now on.")
@click.option(
    "--format",
    "result_format",
    type=click.Choice(RESULT_FORMATS),
    help="Format of the result of a count or a query [as its command said].",
)
@click.option(
    "-o",
    "--output",
    metavar="FILE|-",
    help="Write this result here; -: standard output [as its command said].",
)
@following_options
@connection_options
def resume_command(**params: Any) -> int:
    """Continue a paused job, or run the missing units of one that ended early.

    The job keeps its original options.
    """
    from producer.run.unpause import unpause

    take_sigterm()
    with prompting_for_password(
        ResumeOptions(**params, given=frozenset(given_options()))
    ) as options:
        if unpause(options):
            return 0
        from producer.run.resume import run_resume

        return run_resume(options)


@click.command("throttle")
@click.argument("job")
@click.option(
    "--rate",
    type=Rate(),
    metavar="ROWS/S",
    help="Rows, or bytes as 50MB/s, over all workers: as --rate of the job's own command.",
)
@click.option(
    "--rows-per-second", type=click.IntRange(1), metavar="N", help="Rows, over all workers."
)
@click.option(
    "--mb-per-second",
    type=click.FloatRange(0, min_open=True),
    metavar="N",
    help="Megabytes (1,000,000 bytes), over all workers.",
)
@click.option(
    "--in-flight",
    type=click.IntRange(1),
    metavar="N",
    help="Requests without an answer, over all workers; each unit that runs has at least one.",
)
@click.option(
    "--between",
    multiple=True,
    metavar="HH:MM-HH:MM",
    help="Hours of the day in which the limits hold; may be repeated [always].",
)
@click.option(
    "--timezone", metavar="NAME", help="Time zone of the hours, such as Europe/Berlin [UTC]."
)
@click.option("--off", is_flag=True, help="Remove all limits.")
@click.option("--json", "as_json", is_flag=True, help="Print the limits as JSON.")
@ledger_options
def throttle_command(job: str, place: LedgerPlace, **params: Any) -> int:
    """Limit a running job, or show its limits.

    New limits take effect within 2 s and replace all earlier ones.
    """
    from producer.run.throttle import run_throttle

    return run_throttle(job, place, ThrottleOptions(**params))
