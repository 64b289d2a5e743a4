"""What `ringhaul tune` prints: a table of what was tried, for people, in 80 columns. Pure."""

from __future__ import annotations

import statistics
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from producer.text import bytes_text, ms_text, rate_text
from producer.tune.limits import Evidence, Verdict
from producer.tune.search import Found, Line
from producer.tune.setup import Knob, Setup, Value

WIDTH = 79
#: The rates of one setup differ by this factor, in so many trials, when others use the machines.
DRIFT, DRIFT_TRIALS = 2.0, 4
#: Setting -> its heading and the name of its default.
_NAMES: Mapping[Knob, tuple[str, str]] = {
    Knob.STRATEGY: ("strategy", ""),
    Knob.WORKERS: ("worker processes", "as they run"),
    Knob.BATCH_ROWS: ("rows in a request", "as the server takes"),
    Knob.IN_FLIGHT: ("requests in flight", "adaptive"),
    Knob.UNIT_BYTES: ("unit size", "auto"),
}


@dataclass(frozen=True, kw_only=True)
class Figures:
    """The measurements of one trial."""

    rate: float  #: rows/s; 0: it failed
    rows: int
    bytes_count: int  #: input bytes
    seconds: float
    cpu_us_per_row: float | None  #: CPU time of the workers
    p50_ms: float | None
    p99_ms: float | None
    retries: int
    busy: float | None  #: share of this host's cores that were at work


def median_figures(trials: Sequence[Figures]) -> Figures:
    """Return the medians over trials of one setup, of which at least one succeeded."""
    good = [trial for trial in trials if trial.rate] or trials

    def middle(values: Sequence[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return statistics.median(known) if known else None

    return Figures(
        rate=statistics.median(trial.rate for trial in good),
        rows=sum(trial.rows for trial in good),
        bytes_count=sum(trial.bytes_count for trial in good),
        seconds=sum(trial.seconds for trial in good),
        cpu_us_per_row=middle([trial.cpu_us_per_row for trial in good]),
        p50_ms=middle([trial.p50_ms for trial in good]),
        p99_ms=middle([trial.p99_ms for trial in good]),
        retries=sum(trial.retries for trial in good),
        busy=middle([trial.busy for trial in good]),
    )


def drift_note(trials: Sequence[Figures]) -> str:
    """Return a warning if the rates of one setup differ by much; empty if they do not."""
    rates = sorted(trial.rate for trial in trials if trial.rate)
    if len(rates) < DRIFT_TRIALS or rates[-1] < DRIFT * rates[0]:
        return ""
    return (
        f"the best setup alone made {rate_text(rates[0])} to {rate_text(rates[-1])} rows/s: "
        "something else was busy, so repeat this when it is quiet"
    )


def value_text(knob: Knob, value: Value) -> str:
    """Return a value for people: `16 MiB`, `adaptive`."""
    if not value:
        return _NAMES[knob][1]
    return bytes_text(int(value)) if knob is Knob.UNIT_BYTES else f"{value}"


def setup_text(setup: Setup, knobs: Sequence[Knob]) -> str:
    """Return the values of some settings, such as `strategy pipeline, worker processes 2`."""
    return ", ".join(f"{_NAMES[knob][0]} {value_text(knob, setup.value(knob))}" for knob in knobs)


def table_lines(found: Found, figures: Mapping[Setup, Sequence[Figures]]) -> Iterator[str]:
    """Yield the table of all races: at most 79 characters a line. `<` marks what was chosen."""
    yield (
        f" {'setting':<18} {'value':<19} {'ratio':>6} {'rows/s':>9} {'us/row':>7} {'p99':>7} rounds"
    )
    seen: set[Knob] = set()
    for race in found.races:
        tried = [line for line in race if line.ratios]
        name = _NAMES[race[0].knob][0]
        if race[0].knob in seen:
            name = "  again, with that"
        seen.add(race[0].knob)
        for line in tried:
            middle = median_figures(figures[line.setup])
            mark = " <" if line.chosen else ""
            yield (
                f" {name:<18} {_shown(line, race):<19} {line.ratio:>6.2f} "
                f"{rate_text(line.rate):>9} {_cpu(middle):>7} "
                f"{ms_text(middle.p99_ms):>7} {len(line.ratios):>3}{mark}"
            )
            name = ""


def race_line(race: Sequence[Line]) -> str:
    """Return a race in one line, for progress; empty: nothing was compared."""
    tried = [line for line in race if line.ratios]
    chosen = next((line for line in tried if line.chosen), None)
    if len(tried) < 2 or chosen is None:
        return ""
    ratios = ", ".join(f"{_shown(line, race)} {line.ratio:.2f}" for line in tried)
    return f"{_NAMES[race[0].knob][0]}: {ratios}"


def wrapped(text: str, head: str, indent: str | None = None) -> list[str]:
    """Return a text in lines of at most `WIDTH` characters, the first one behind `head`.

    `indent`: start of the other lines; None: spaces as wide as `head`.
    """
    rest = " " * len(head) if indent is None else indent
    return textwrap.wrap(
        text, WIDTH, initial_indent=head, subsequent_indent=rest, break_long_words=False
    )


def _cpu(figures: Figures) -> str:
    return "-" if figures.cpu_us_per_row is None else f"{figures.cpu_us_per_row:.1f}"


def _shown(line: Line, race: Sequence[Line]) -> str:
    text = value_text(line.knob, line.value)
    if len({one.setup.workers for one in race}) > 1 and line.knob is not Knob.WORKERS:
        text += f" x {line.setup.workers}"  # both were changed
    return text


def to_json(
    found: Found,
    first: Setup,
    figures: Mapping[Setup, Sequence[Figures]],
    evidence: Evidence,
    verdict: Verdict,
) -> dict[str, Any]:
    """Return what was found, for programs. Fields are only ever added."""
    return {
        "message_type": "tune",
        "best": _settings(found.best),
        "before": _settings(first),
        "gain": found.gain,
        "compared": sorted(found.tried),
        "limit": str(verdict.limit),
        "reason": verdict.reason,
        "advice": verdict.advice,
        "evidence": {
            "rows_per_s": evidence.rate,
            "bytes_per_s": evidence.bytes_s,
            "cpu_us_per_row": evidence.cpu_us_per_row,
            "busy_workers": evidence.busy_workers,
            "busy_host": evidence.busy,
            "p50_ms": evidence.p50_ms,
            "p99_ms": evidence.p99_ms,
            "round_trip_ms": evidence.round_trip_ms,
            "source_rows_per_s": evidence.source.rows_s,
            "source_encoded_rows_per_s": evidence.source.encoded_rows_s,
        },
        "trials": [
            {
                "setting": str(line.knob),
                **_settings(line.setup),
                "ratio": line.ratio,
                "rows_per_s": line.rate,
                "cpu_us_per_row": median_figures(figures[line.setup]).cpu_us_per_row,
                "p99_ms": median_figures(figures[line.setup]).p99_ms,
                "rounds": len(line.ratios),
                "chosen": line.chosen,
            }
            for race in found.races
            for line in race
            if line.ratios
        ],
    }


def _settings(setup: Setup) -> dict[str, Value]:
    return {str(knob): setup.value(knob) for knob in Knob}
