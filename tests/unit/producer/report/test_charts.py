"""Charts: they never crash or show an invalid number, and each has a text alternative."""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree

import pytest

from producer.figures.timeline import Bar
from producer.report.charts import (
    Line,
    Point,
    line_chart,
    progress_bar,
    rates,
    timeline,
)
from tests.cases import each

TRICKY = [math.nan, math.inf, -math.inf, None, -5.0, 0.0, 1e-12, 1e18]


def checked(svg: str) -> ElementTree.Element:
    """The element, after a look at what every chart must have."""
    element = ElementTree.fromstring(svg)
    image = element if element.tag == "svg" else element.find(".//svg")
    assert image is not None
    assert image.get("role") == "img" and image.get("viewBox")
    assert image.findtext("title") and image.findtext("desc")
    assert not re.search(r"\b(nan|inf)\b", svg, re.IGNORECASE)
    assert "style" not in {name for one in element.iter() for name in one.attrib}
    return element


def coordinates(path: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"([\d.-]+) ([\d.-]+)", path)]


@pytest.mark.parametrize("count", [0, 1, 2, 500])
def test_a_line_of_any_length_is_drawn(count: int) -> None:
    points = [Point(10.0 * n, 1000.0 + n) for n in range(count)]
    chart = checked(line_chart([Line(name="p99", points=points)], title="t", unit="ms"))
    paths = [coordinates(one.get("d", "")) for one in chart.findall("path")]
    dots = chart.findall("circle")
    assert (len(paths), len(dots)) == {0: (0, 0), 1: (0, 1)}.get(count, (1, 0))
    for path in paths:
        assert len(path) == count
        assert all(0 <= x <= 420 and 0 <= y <= 170 for x, y in path)
        assert path == sorted(path, key=lambda at: at[0])
        assert path[0][1] > path[-1][1]  # more is higher


@each("value", TRICKY)
@each("others", [0, 3])
def test_no_value_breaks_a_chart(value: float | None, others: int) -> None:
    points = [Point(float(n), 2.0) for n in range(others)]
    points = [*points, Point(9.0, value), Point(math.nan, 1.0), *points]
    checked(line_chart([Line(name="a", points=points)], title="t", unit="u"))


def test_a_gap_is_a_gap() -> None:
    points = [Point(0, 1.0), Point(1, 2.0), Point(2, None), Point(3, 1.0), Point(4, 1.0)]
    chart = checked(line_chart([Line(name="a", points=points)], title="t", unit="u"))
    (path,) = chart.findall("path")
    assert (path.get("d") or "").count("M") == 2


def test_two_lines_differ_by_more_than_colour() -> None:
    lines = [Line(name=name, points=[Point(0, 1.0), Point(1, 2.0)]) for name in ("p99", "p50")]
    chart = checked(line_chart(lines, title="t", unit="ms"))
    assert [one.text for one in chart.findall("text[@class='name']")] == ["p50", "p99"]
    assert chart.findtext("desc") == "p99: 1 to 2 ms, last 2 ms. p50: 1 to 2 ms, last 2 ms."


def test_texts_are_escaped() -> None:
    hostile = '<script>"&\x1b[31m'
    shown = line_chart([Line(name=hostile, points=[Point(0, 1.0)])] * 2, title=hostile, unit="u")
    lanes = timeline([Bar(lane=0, start_s=0, end_s=1)], [hostile], title=hostile, seconds=1)
    for svg in (shown, lanes, progress_bar(0.5, title=hostile)):
        checked(svg)
        assert "<script" not in svg and "\x1b" not in svg
    assert "\\x1b[31m" in lanes


@pytest.mark.parametrize("seconds", [0.0, 0.2, 61.0, 30 * 86_400.0])
def test_bars_stay_on_their_lanes(seconds: float) -> None:
    bars = [
        Bar(lane=0, start_s=0, end_s=seconds / 2),
        Bar(lane=1, start_s=seconds / 2, end_s=seconds * 9, share=0.3, repeated=True),
        Bar(lane=7, start_s=0, end_s=1),  # there is no such lane
    ]
    found = checked(timeline(bars, ["a", "b"], title="t", seconds=seconds))
    rects = [{k: float(v) for k, v in one.items() if k != "class"} for one in found.iter("rect")]
    assert len(rects) == 2
    for lane, rect in enumerate(rects):
        assert 10 * lane <= rect["y"] and rect["y"] + rect["height"] <= 10 * (lane + 1)
        assert rect["x"] + rect["width"] <= 1001
    assert rects[1]["height"] < rects[0]["height"]
    assert len(found.findall(".//path[@class='again']")) == 1  # a mark, not only a colour
    assert [one.text for one in found.iter("li")] == ["a", "b"]


@pytest.mark.parametrize(
    ("share", "words"),
    [(0.0, "0%"), (0.254, "25%"), (1.0, "100%"), (7.0, "100%"), (-1.0, "0%"), (math.nan, "0%")],
)
def test_the_bar_says_its_share(share: float, words: str) -> None:
    bar = checked(progress_bar(share, title="Progress"))
    assert bar.findtext("desc") == words
    done = bar.find("rect[@class='done']")
    assert done is not None and 0 <= float(done.get("width", "-1")) <= 100


def test_rates_are_changes_per_second() -> None:
    points = [Point(0, 0), Point(10, 1000), Point(10, 1000), Point(20, 400), Point(30, None)]
    fast, still = [Point(0, 100.0), Point(10, 100.0)], [Point(10, 0.0), Point(20, 0.0)]
    assert rates(points) == [*fast, *still]
    assert rates([]) == rates([Point(0, 1)]) == []
