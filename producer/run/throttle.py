"""`ringhaul throttle`: set or show the limits of a job."""

from __future__ import annotations

import rich_click as click

from producer.options.connection import LedgerPlace
from producer.options.control import ThrottleOptions
from producer.outputs.stdout import json_text
from producer.services.ledger import reading_ledger
from ringhaul.errors import EXIT_COMPLETE, EXIT_USAGE, UsageError
from ringhaul.ledger.pace import NO_LIMITS, NO_PACE, Limits, Pace
from ringhaul.ledger.states import JobState


def run_throttle(job: str, place: LedgerPlace, options: ThrottleOptions) -> int:
    """Set the limits that the options give, or show the present ones; return the exit code."""
    pace = wanted_pace(options)
    with reading_ledger(place) as ledger:
        if pace is not None:
            state = ledger.throttle(job, pace)
            if state is not JobState.RUNNING:
                click.echo(f"{job} is {state}", err=True)
                return EXIT_USAGE
        found = ledger.status(job).pace
    if options.as_json:
        print(json_text({"job": job, **found.to_json()}))
    else:
        # The limits are data, for stdout; the message about a change goes to stderr.
        click.echo(
            f"{job}: {found}" if str(found) else f"{job} has no limits", err=pace is not None
        )
    return EXIT_COMPLETE


def wanted_pace(options: ThrottleOptions) -> Pace | None:
    """Return the limits to set, or None to show the present ones. Raises `UsageError`."""
    rate = options.rate or NO_LIMITS
    limits = Limits(
        rows_per_s=rate.rows_per_s or options.rows_per_second or 0,
        bytes_per_s=rate.bytes_per_s
        or (max(1, round(options.mb_per_second * 1e6)) if options.mb_per_second else 0),
        in_flight=options.in_flight or 0,
    )
    for own, name, given in (
        (rate.rows_per_s, "rows-per-second", options.rows_per_second),
        (rate.bytes_per_s, "mb-per-second", options.mb_per_second),
    ):
        if own and given:
            raise UsageError(f"--rate and --{name} both limit the same: give one of them")
    hours = options.between or options.timezone is not None
    if options.off:
        if limits != NO_LIMITS or hours:
            raise UsageError("--off removes all limits: leave the other options out")
        return NO_PACE
    if limits == NO_LIMITS:
        if hours:
            raise UsageError(
                "--between says when limits apply: give --rate, --rows-per-second, "
                "--mb-per-second or --in-flight, too"
            )
        return None
    return Pace.of(limits, options.between, options.timezone)
