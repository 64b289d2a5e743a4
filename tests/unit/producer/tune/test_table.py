"""What `ringhaul tune` prints fits 80 columns, and names what was chosen."""

from __future__ import annotations

from dataclasses import replace

from producer.tune.search import Found, Line
from producer.tune.setup import Knob, Setup
from producer.tune.table import (
    Figures,
    drift_note,
    median_figures,
    race_line,
    setup_text,
    table_lines,
    value_text,
    wrapped,
)

FIGURES = Figures(
    rate=1_234_567.0,
    rows=10,
    bytes_count=100,
    seconds=1.0,
    cpu_us_per_row=123.4,
    p50_ms=1.0,
    p99_ms=12_345.0,
    retries=0,
    busy=None,
)
START = Setup(workers=2)


def race(knob: Knob, *values: tuple[int | str, float]) -> list[Line]:
    lines = [Line(knob, START.having(knob, value), [ratio], [1e6]) for value, ratio in values]
    max(lines, key=lambda line: line.ratio).chosen = True
    return lines


def test_the_table_has_a_line_for_each_value_and_fits() -> None:
    found = Found(
        best=START,
        races=[
            race(Knob.IN_FLIGHT, (64, 0.5), (0, 1.0)),
            race(Knob.BATCH_ROWS, (2, 0.9), (0, 1.0)),
            race(Knob.IN_FLIGHT, (64, 1.25), (0, 1.0)),
            race(Knob.UNIT_BYTES, (64 * 2**20, 11.2), (0, 1.0)),
        ],
    )
    found.races[0].append(Line(Knob.IN_FLIGHT, START.having(Knob.IN_FLIGHT, 2048)))  # not measured
    figures = {line.setup: [FIGURES] for one in found.races for line in one}
    lines = list(table_lines(found, figures))
    assert len(lines) == 1 + 8
    assert all(len(line) < 80 for line in lines), lines
    assert [line.endswith(" <") for line in lines[1:]] == [
        *(False, True, False, True, True, False, True, False)
    ]
    assert lines[1].split()[:4] == ["requests", "in", "flight", "64"]
    assert "again" in lines[5] and "64.0 MiB" in lines[7]


def test_a_race_in_one_line() -> None:
    tried = race(Knob.IN_FLIGHT, (64, 0.5), (0, 1.0))
    assert race_line(tried) == "requests in flight: 64 0.50, adaptive 1.00"
    # Where the number of workers was changed as well, it is named
    tried[0].setup = tried[0].setup.having(Knob.WORKERS, 4)
    assert race_line(tried) == "requests in flight: 64 x 4 0.50, adaptive x 2 1.00"
    assert race_line([Line(Knob.WORKERS, START)]) == ""


def test_medians_leave_out_what_failed() -> None:
    failed = Figures(
        rate=0.0,
        rows=0,
        bytes_count=0,
        seconds=9.0,
        cpu_us_per_row=None,
        p50_ms=None,
        p99_ms=None,
        retries=7,
        busy=None,
    )
    assert median_figures([failed, FIGURES]) == FIGURES
    assert median_figures([failed]).rate == 0.0


def test_rates_that_differ_by_much_are_noted() -> None:
    steady = [replace(FIGURES, rate=rate) for rate in (100.0, 120.0, 180.0, 150.0, 0.0)]
    assert drift_note(steady) == ""
    assert drift_note([*steady[:3], replace(FIGURES, rate=900.0)]).startswith(
        "the best setup alone made 100 to 900 rows/s"
    )
    assert drift_note([FIGURES, replace(FIGURES, rate=1.0)]) == ""  # too few to tell


def test_values_in_words() -> None:
    assert value_text(Knob.UNIT_BYTES, 4 * 2**20) == "4.0 MiB"
    assert value_text(Knob.BATCH_ROWS, 0) == "as the server takes"
    knobs = [Knob.STRATEGY, Knob.WORKERS]
    assert setup_text(START, knobs) == "strategy pipeline, worker processes 2"


def test_long_lines_are_wrapped_below_their_beginning() -> None:
    lines = wrapped("word " * 40, " limit     ")
    assert all(len(line) < 80 for line in lines)
    assert lines[1].startswith(" " * 11 + "word")
