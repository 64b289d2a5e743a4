"""Charts as inline SVG, for reports and pages. Pure.

Colours come from the classes of `templates/job.css`, so that charts follow light and dark. A line
is distinguished by its dashes and its name, and a repeated unit by its mark: no meaning by colour
alone. Each chart has a title and a text alternative.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import NamedTuple

from producer.figures.timeline import Bar
from producer.text import time_text
from ringhaul.plain_text import as_line

#: Room for the texts around a plot, in the chart's units.
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 10, 10, 24
#: Lines that steps between ticks are rounded to, as multiples of a power of ten.
_NICE = (1, 2, 2.5, 5, 10)
_NICE_SECONDS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 43_200)
_DAY_S = 86_400
#: Widths and heights of the lanes of a timeline, in its own units; see `timeline`.
_LANE_UNITS, _TIME_UNITS = 10.0, 1000.0
#: Height of a lane on the screen, the line height of the lanes' names in `job.css`.
_LANE_PIXELS = 18


class Point(NamedTuple):
    """A value at a time."""

    at_s: float  #: Since the beginning of the chart.
    value: float | None  #: None: not known; the line has a gap here.


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line of a chart."""

    name: str
    points: Sequence[Point]


def line_chart(
    lines: Sequence[Line], *, title: str, unit: str, width: int = 420, height: int = 170
) -> str:
    """Return a chart of values over time. Points that are not finite are left out.

    `width`, `height`: size of its view box; the chart fills the width that the page gives it.
    """
    lines = [Line(name=line.name, points=_finite(line.points)) for line in lines]
    shown = [point for line in lines for point in line.points if point.value is not None]
    if not shown:
        return _svg(title, "No figures were kept.", width, height, _nothing(width, height))
    end_s = max(max(point.at_s for point in shown), 1.0)
    ticks = _ticks(max(point.value or 0.0 for point in shown))
    plot = _Plot(width, height, end_s, ticks[-1])
    parts = [*_grid(plot, ticks), *_time_axis(plot)]
    for number, line in enumerate(lines, 1):
        parts.append(_path(plot, line.points, number))
    if len(lines) > 1:
        parts += _names(lines, width)
    return _svg(title, _in_words(lines, unit), width, height, "".join(parts))


def timeline(bars: Sequence[Bar], lanes: Sequence[str], *, title: str, seconds: float) -> str:
    """Return what ran when, a lane for each name. `seconds`: length of the time axis.

    Names and times are text of the page, so that they stay readable at any width; only the bars
    stretch with it.
    """
    end_s = max(seconds, 0.001)
    height = _LANE_UNITS * max(len(lanes), 1)
    words = f"{len(lanes):,} lanes over {time_text(seconds)}"
    rects = [_bar(bar, end_s) for bar in bars if 0 <= bar.lane < len(lanes)]
    quarters = [_number(_TIME_UNITS * part / 4) for part in range(1, 4)]
    grid = [
        f'<line class="grid" x1="{x}" y1="0" x2="{x}" y2="{_number(height)}"/>' for x in quarters
    ]
    svg = (
        f'<svg role="img" width="100%" height="{_LANE_PIXELS * max(len(lanes), 1)}" '
        f'viewBox="0 0 {_number(_TIME_UNITS)} {_number(height)}" '
        f'preserveAspectRatio="none"><title>{_escape(title)}</title><desc>{_escape(words)}</desc>'
        f"{''.join(grid)}{''.join(rects)}</svg>"
    )
    names = "".join(f"<li>{_escape(name)}</li>" for name in lanes)
    marks = "".join(f"<span>{time_text(end_s * part / 4)}</span>" for part in range(5))
    return (
        f'<div class="timeline"><ol class="lanes">{names}</ol>'
        f'<div class="bars">{svg}</div><div class="times" aria-hidden="true">{marks}</div></div>'
    )


def progress_bar(share: float, *, title: str) -> str:
    """Return a bar of which `share`, 0..1, is filled, and its text alternative."""
    done = min(max(share, 0.0), 1.0) if math.isfinite(share) else 0.0
    return (
        f'<svg class="progress" role="img" viewBox="0 0 100 2" preserveAspectRatio="none">'
        f"<title>{_escape(title)}</title><desc>{done:.0%}</desc>"
        '<rect class="track" width="100" height="2"/>'
        f'<rect class="done" width="{_number(done * 100)}" height="2"/></svg>'
    )


def rates(points: Sequence[Point]) -> list[Point]:
    """Return the change per second between consecutive points, as a line of steps; never below 0.

    A retried unit takes its rows back, which is no negative speed.
    """
    found: list[Point] = []
    for before, after in pairwise(points):
        span_s = after.at_s - before.at_s
        if span_s > 0 and before.value is not None and after.value is not None:
            per_s = max(after.value - before.value, 0.0) / span_s
            found += [Point(before.at_s, per_s), Point(after.at_s, per_s)]
    return found


@dataclass(frozen=True)
class _Plot:
    """The area between the axes."""

    width: int
    height: int
    end_s: float
    top: float  #: The value at its upper edge.

    def x(self, at_s: float) -> float:
        return _LEFT + min(max(at_s / self.end_s, 0.0), 1.0) * (self.width - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        room = self.height - _TOP - _BOTTOM
        return _TOP + room * (1 - min(max(value / self.top, 0.0), 1.0))


def _finite(points: Sequence[Point]) -> list[Point]:
    return [
        point if point.value is None or math.isfinite(point.value) else Point(point.at_s, None)
        for point in points
        if math.isfinite(point.at_s)
    ]


def _ticks(most: float) -> list[float]:
    """Return the values at which grid lines are, from 0 to at least `most`."""
    if most <= 0:
        return [0.0, 1.0]
    step = _step(most / 3)
    return [step * number for number in range(math.ceil(most / step - 1e-9) + 1)]


def _step(least: float) -> float:
    power = 10.0 ** math.floor(math.log10(least))
    return next(nice * power for nice in _NICE if nice * power >= least * (1 - 1e-9))


def _time_ticks(end_s: float) -> list[float]:
    """Return the times between the ends at which a grid line helps: about four."""
    least = end_s / 5
    step: float = next((nice for nice in _NICE_SECONDS if nice >= least), 0)
    if not step:
        step = _DAY_S * math.ceil(least / _DAY_S)
    return [step * number for number in range(1, math.ceil(end_s / step))]


def _grid(plot: _Plot, ticks: Sequence[float]) -> list[str]:
    parts = []
    for tick in ticks:
        y = plot.y(tick)
        parts.append(
            f'<line class="grid" x1="{_LEFT}" y1="{_number(y)}" '
            f'x2="{plot.width - _RIGHT}" y2="{_number(y)}"/>'
            f'<text class="y" x="{_LEFT - 6}" y="{_number(y + 4)}">{_short(tick)}</text>'
        )
    return parts


def _time_axis(plot: _Plot) -> list[str]:
    y = plot.height - _BOTTOM + 16
    times = [0.0, *_time_ticks(plot.end_s)]
    return [
        f'<text class="x" x="{_number(plot.x(at))}" y="{y}">{time_text(at)}</text>' for at in times
    ]


def _path(plot: _Plot, points: Sequence[Point], number: int) -> str:
    """Return a line with its gaps; a point between two gaps, or alone, is a dot."""
    runs: list[list[Point]] = [[]]
    for point in points:
        if point.value is None:
            runs.append([])
        else:
            runs[-1].append(point)
    drawn, dots = "", ""
    for run in filter(None, runs):
        places = [f"{_number(plot.x(at))} {_number(plot.y(value or 0))}" for at, value in run]
        if len(run) == 1:
            x, y = places[0].split()
            dots += f'<circle class="dot c{number}" cx="{x}" cy="{y}" r="2.5"/>'
        else:
            drawn += f"M{'L'.join(places)}"
    return (f'<path class="line c{number}" d="{drawn}"/>' if drawn else "") + dots


def _names(lines: Sequence[Line], width: int) -> list[str]:
    parts = []
    x = float(width - _RIGHT)
    for number, line in reversed(list(enumerate(lines, 1))):
        x -= 7 * len(line.name) + 30
        parts.append(
            f'<path class="line c{number}" d="M{_number(x)} 6h18"/>'
            f'<text class="name" x="{_number(x + 22)}" y="10">{_escape(line.name)}</text>'
        )
    return parts


def _bar(bar: Bar, end_s: float) -> str:
    x = min(max(bar.start_s / end_s, 0.0), 1.0) * _TIME_UNITS
    end = min(max(bar.end_s / end_s, 0.0), 1.0) * _TIME_UNITS
    height = (_LANE_UNITS - 3) * min(max(bar.share, 0.05), 1.0)
    y = (bar.lane + 1) * _LANE_UNITS - 1.5 - height
    rect = (
        f'<rect class="bar" x="{_number(x)}" y="{_number(y)}" '
        f'width="{_number(max(end - x, 0.7))}" height="{_number(height)}"/>'
    )
    if not bar.repeated:
        return rect
    top, bottom = bar.lane * _LANE_UNITS, (bar.lane + 1) * _LANE_UNITS
    return f'{rect}<path class="again" d="M{_number(end)} {_number(top)}V{_number(bottom)}"/>'


def _in_words(lines: Sequence[Line], unit: str) -> str:
    """Return the text alternative: the last, the least and the greatest value of each line."""
    words = []
    for line in lines:
        values = [point.value for point in line.points if point.value is not None]
        if values:
            words.append(
                f"{line.name}: {_short(min(values))} to {_short(max(values))} {unit}, "
                f"last {_short(values[-1])} {unit}."
            )
    return " ".join(words)


def _svg(title: str, words: str, width: int, height: int, inner: str) -> str:
    return (
        f'<svg class="chart" role="img" viewBox="0 0 {width} {height}">'
        f"<title>{_escape(title)}</title><desc>{_escape(words)}</desc>{inner}</svg>"
    )


def _nothing(width: int, height: int) -> str:
    return f'<text class="none" x="{width // 2}" y="{height // 2}">no figures were kept</text>'


def _short(value: float) -> str:
    """`241k`, `1.5M`, `0.4`."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"


def _number(value: float) -> str:
    """Return a coordinate, as short as a tenth of a pixel is exact."""
    return f"{value:.1f}".removesuffix(".0")


def _escape(text: str) -> str:
    return escape(as_line(text))
