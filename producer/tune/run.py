"""Run `ringhaul tune`: plan the load, try setups on a sample, report the limit, keep the best.

The time is bounded hard: an alarm ends whatever is running some seconds before the budget is over,
and the rest is for cleaning up.
"""

from __future__ import annotations

import time
from contextlib import ExitStack

from producer.options.tune import TuneOptions
from producer.report.reporter import Shown
from producer.services.start import Services
from producer.tune.deadline import TimeOver, stops_before, too_short, until
from producer.tune.preparation import Prepared, first_loads, prepare, sample_text
from producer.tune.result import evidence_of, report, settings_file, write
from producer.tune.search import Found, search
from producer.tune.table import race_line, wrapped
from ringhaul.errors import EXIT_COMPLETE
from ringhaul.plain_text import lines_of


def run_tune(options: TuneOptions, services: Services, run: str, ends_s: float) -> int:
    """Run `ringhaul tune` with the services that were started for it; the exit code.

    `run`: names the run. `ends_s`: when the command has to be over, on the monotonic clock.
    """
    shown = Shown.from_options(options)
    file = settings_file(options, services)
    stops_s = stops_before(ends_s)
    with ExitStack() as stack:
        try:
            with until(stops_s):
                prepared = prepare(stack, options, services, run, ends_s, shown)
        except TimeOver:
            raise too_short(0) from None
        found = Found(best=prepared.start)
        try:
            with until(stops_s):
                _search(found, prepared, stops_s, shown, repeat=not options.in_place)
        except TimeOver:
            if not found.tried:
                raise too_short(prepared.trials.count) from None
    evidence = evidence_of(found, prepared)
    report(found, prepared, evidence, shown)
    write(found, evidence, file, options, services, shown)
    return EXIT_COMPLETE


def _search(
    found: Found, prepared: Prepared, stops_s: float, shown: Shown, *, repeat: bool
) -> None:
    """Run the search to its end; `found` is complete at any time."""
    sample, seconds, space = first_loads(prepared, stops_s, repeat=repeat)
    shown.say(f"  {sample_text(sample)}, about {seconds:.1f} s")
    began_s = time.monotonic()
    steps = search(found, space, lambda: (time.monotonic() - began_s) / (stops_s - began_s))
    said = 0
    rate: float | None = None
    while True:
        try:
            setup = next(steps) if rate is None else steps.send(rate)
        except StopIteration:
            break
        for race in found.races[said : len(found.races) - 1]:
            if line := race_line(race):
                shown.say(lines_of(wrapped(line, "  ", "    ")))
            said += 1
        rate = prepared.trials.measure(setup, sample, seconds)
