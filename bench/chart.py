"""Draw docs/pictures/speed.svg from the recorded figures in docs/explanation/benchmarks.md.

Run `python -m bench.chart` after the page's figures changed. A test compares the two.
"""

from __future__ import annotations

import re
from pathlib import Path

from bench.picture import Bar, Panel, picture

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "explanation" / "benchmarks.md"
PICTURE = ROOT / "docs" / "pictures" / "speed.svg"
OURS, OTHERS = "#1f6feb", "#9aa4af"
#: Begins the row of each system in the page's table of loads; its column "whole" is drawn.
_LOADS = {
    "ringhaul": "`ringhaul load`, broker and workers started for it",
    "DataStax Bulk Loader": "DataStax Bulk Loader 1.10, by replica set",
    "cqlsh COPY": "`cqlsh COPY FROM`, 2 processes",
}
_UNLOAD = "`ringhaul unload` of 1,000,000 such rows to CSV"


def draw(page: str) -> str:
    """Return the chart of the page's figures as SVG.

    Raises `ValueError` if one is missing.
    """
    unload = _row(page, _UNLOAD)
    against = dict(re.findall(r"(COPY TO|Bulk Loader)`? ([\d,]+)", unload[3]))
    panels = {
        "load, rows per second": [_number(_row(page, start)[2]) for start in _LOADS.values()],
        "unload to CSV, rows per second": [
            _number(unload[1]),
            _number(against["Bulk Loader"]),
            _number(against["COPY TO"]),
        ],
    }
    return picture(
        "1,000,000 rows of six columns, from start to exit",
        "Medians of five interleaved rounds on two cores, shared with the Cassandra node",
        [
            Panel(
                title,
                [
                    Bar(name, value, OURS if name == "ringhaul" else OTHERS)
                    for name, value in zip(_LOADS, values, strict=True)
                ],
            )
            for title, values in panels.items()
        ],
    )


def _row(page: str, start: str) -> list[str]:
    """The cells of the table row that begins with `start`."""
    for line in page.splitlines():
        if line.startswith(f"| {start}"):
            return [cell.strip() for cell in line.strip("|").split("|")]
    raise ValueError(f"the page has no row that begins with {start!r}")


def _number(cell: str) -> float:
    return float(cell.replace(",", ""))


if __name__ == "__main__":
    PICTURE.write_text(draw(PAGE.read_text()))
