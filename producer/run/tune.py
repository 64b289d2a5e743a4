"""Run `ringhaul tune`: plan the load, try setups on a sample of it, say what limits, keep the best.

The time is bounded hard: an alarm ends whatever is running some seconds before the budget is over,
and the rest is for cleaning up.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType

from producer.report.reporter import Shown
from producer.request.options import TuneOptions
from producer.run.tune_prepare import Prepared, first_loads, prepare, sample_text
from producer.run.tune_result import evidence_of, report, settings_file, write
from producer.services.start import Services
from producer.text import count_text
from producer.tuning.search import Found, search
from producer.tuning.table import race_line, wrapped
from ringhaul.errors import EXIT_COMPLETE, UsageError
from ringhaul.plain_text import lines_of

#: Share of the budget that is kept for cleaning up, and its bounds in seconds: a busy node takes
#: seconds to drop a table.
END_SHARE, END_MIN_S, END_MAX_S = 0.15, 4.0, 15.0
#: Pause between two alarms.
AGAIN_S = 0.5


class _TimeOver(KeyboardInterrupt):
    """The time for trials is over. Like Ctrl-C, so that nothing takes it for a failure, least of
    all of a user's transform."""


def run_tune(options: TuneOptions, services: Services, run: str, ends_s: float) -> int:
    """Run `ringhaul tune` with the services that were started for it; the exit code.

    `run`: names the run. `ends_s`: when the command has to be over, on the monotonic clock.
    """
    shown = Shown.from_options(options)
    file = settings_file(options, services)
    budget_s = ends_s - time.monotonic()
    stops_s = ends_s - min(max(budget_s * END_SHARE, END_MIN_S), END_MAX_S)
    with ExitStack() as stack:
        try:
            with _until(stops_s):
                prepared = prepare(stack, options, services, run, ends_s, shown)
        except _TimeOver:
            raise _too_short(0) from None
        found = Found(best=prepared.start)
        try:
            with _until(stops_s):
                _search(found, prepared, stops_s, shown, repeat=not options.in_place)
        except _TimeOver:
            if not found.tried:
                raise _too_short(prepared.trials.count) from None
    evidence = evidence_of(found, prepared)
    report(found, prepared, evidence, shown)
    write(found, evidence, file, options, services, shown)
    return EXIT_COMPLETE


def _too_short(trials: int) -> UsageError:
    return UsageError(
        f"the time was over before anything could be compared, after "
        f"{count_text(trials, 'trial')}: give more with --budget"
    )


@contextmanager
def _until(stops_s: float) -> Iterator[None]:
    """Raise `_TimeOver` in the block when the time has come, whatever it is waiting for."""

    def over(number: int, frame: FrameType | None) -> None:
        raise _TimeOver

    before = signal.signal(signal.SIGALRM, over)
    # Again and again: it may be raised where it is ignored, as in a `__del__`.
    signal.setitimer(signal.ITIMER_REAL, max(stops_s - time.monotonic(), 0.001), AGAIN_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


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
