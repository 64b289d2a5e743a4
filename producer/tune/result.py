"""The result of `ringhaul tune`: the report, and the settings file."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from config.cores import usable_cores
from config.layers import FILE_NAME
from producer.options.tune import TuneOptions
from producer.outputs.stdout import json_text, print_message
from producer.outputs.whole_file import check_replacing, whole_file
from producer.report.reporter import Shown
from producer.services.start import Services
from producer.text import rate_text
from producer.tune.limits import Evidence, Verdict, evidence_lines, judge
from producer.tune.preparation import Prepared
from producer.tune.search import Found
from producer.tune.settings_file import edited, section_text
from producer.tune.setup import Knob, Setup
from producer.tune.table import (
    drift_note,
    median_figures,
    race_line,
    setup_text,
    table_lines,
    to_json,
    wrapped,
)
from ringhaul.errors import UsageError
from ringhaul.plain_text import lines_of


def settings_file(options: TuneOptions, services: Services) -> Path | None:
    """Return the file that the winner goes to; None: nowhere.

    Raises `UsageError` if it cannot be written, or not changed: before minutes are spent.
    """
    if options.no_write:
        return None
    file = options.write or services.loaded.config_file or Path(FILE_NAME)
    check_replacing(str(file))
    edited(_text(file), {str(knob): Setup().value(knob) for knob in Knob}, {})
    return file


def _text(file: Path) -> str:
    """Return what is in a settings file; empty if there is none. Raises `UsageError`."""
    try:
        return file.read_text(encoding="utf-8") if file.exists() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file}: cannot be read: {error}") from error


def evidence_of(found: Found, prepared: Prepared) -> Evidence:
    """Return what was measured with the best setup."""
    trials = prepared.trials
    best = median_figures(trials.figures[found.best])
    own = trials.groups is not None
    return Evidence(
        rate=best.rate,
        bytes_s=best.bytes_count / max(best.seconds, 0.001),
        workers=found.best.workers or prepared.workers.slots,
        cpu_us_per_row=best.cpu_us_per_row or 0.0,
        p50_ms=best.p50_ms,
        p99_ms=best.p99_ms,
        round_trip_ms=prepared.round_trip_ms,
        source=prepared.source,
        retries=best.retries,
        cores=usable_cores() if own else None,
        busy=best.busy if own else None,
    )


def report(found: Found, prepared: Prepared, evidence: Evidence, shown: Shown) -> None:
    """Print the table, the limit, and the best setup; or JSON."""
    start, figures = prepared.start, prepared.trials.figures
    verdict = judge(evidence)
    if shown.as_json:
        print_message(json_text(to_json(found, start, figures, evidence, verdict)))
    else:
        print(lines_of(list(_report_lines(found, prepared, evidence, verdict))))


def _report_lines(
    found: Found, prepared: Prepared, evidence: Evidence, verdict: Verdict
) -> Iterator[str]:
    start = prepared.start
    yield from table_lines(found, prepared.trials.figures)
    yield ""
    yield from wrapped(f"{verdict.limit}: {verdict.reason}", " limit     ")
    for line in evidence_lines(evidence):
        yield f"           {line}"
    yield from wrapped(verdict.advice, " advice    ")
    changed = [knob for knob in Knob if found.best.value(knob) != start.value(knob)]
    if not changed:
        yield f" best      the settings as they are, {rate_text(evidence.rate)} rows/s"
    else:
        gain = "" if found.gain is None else f", {found.gain:.2f} times the rate before"
        yield from wrapped(f"{setup_text(found.best, changed)}{gain}", " best      ")
    if note := drift_note(prepared.trials.figures[found.best]):
        yield from wrapped(note, " note      ")
    if start.workers == 0:
        yield from wrapped(
            "worker processes: those that run are not this command's, and --broker none starts "
            "some that are",
            " not tried ",
        )


def write(
    found: Found,
    evidence: Evidence,
    file: Path | None,
    options: TuneOptions,
    services: Services,
    shown: Shown,
) -> None:
    """Write what was compared and won into the settings file, with the evidence."""
    values = {
        str(knob): found.best.value(knob)
        for knob in Knob
        if knob in found.tried and (knob is not Knob.WORKERS or found.best.workers)
    }
    if file is None:
        shown.say(lines_of([" not written:", *section_text(values).splitlines()]))
        return
    text = edited(_text(file), values, {"load": _comments(found, evidence, options)})
    with whole_file(str(file)) as out:
        out.write(text.encode())
    shown.say(f" wrote     {file}")
    for key in values:
        origin = services.loaded.origins[key]
        if origin.startswith("env"):
            shown.warn(f"warning: {origin} overrides {key} of the file")


def _comments(found: Found, evidence: Evidence, options: TuneOptions) -> Sequence[str]:
    verdict = judge(evidence)
    gain = f", {found.gain:.2f} times that of the settings before" if found.gain else ""
    if found.gain and found.gain < 1:  # so they stayed
        gain = ", with the settings as they were"
    lines = [
        f"by `ringhaul tune` on {time.strftime('%Y-%m-%d')}, for {options.table}: "
        f"{rate_text(evidence.rate)} rows/s{gain}",
        f"limit: {verdict.limit}: {verdict.reason}",
        *map(race_line, found.races),
    ]
    return [part for line in filter(None, lines) for part in wrapped(line, "", "  ")]
