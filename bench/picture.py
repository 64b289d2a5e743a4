"""A bar chart as SVG: panels side by side, a bar for each system."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

BAR_PX = 18
STEP_PX = 26
NAME_PX = 290  #: width of the names to the left of the first panel
PANEL_PX = 300
VALUE_PX = 70  #: space for the number after the longest bar
TOP_PX = 84


class Bar(NamedTuple):
    """One system in a panel."""

    name: str
    value: float
    colour: str


class Panel(NamedTuple):
    """Bars of one quantity. All panels of a picture have the same systems in the same order."""

    title: str
    bars: Sequence[Bar]


def picture(title: str, note: str, panels: Sequence[Panel]) -> str:
    """Return the SVG text."""
    names = panels[0].bars
    width = NAME_PX + len(panels) * (PANEL_PX + VALUE_PX) + 10
    height = TOP_PX + STEP_PX * len(names) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12" fill="#222">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        f'<text x="10" y="24" font-size="16" font-weight="bold">{escape(title)}</text>',
        f'<text x="10" y="44" fill="#666">{escape(note)}</text>',
    ]
    for row, bar in enumerate(names):
        parts.append(
            f'<text x="{NAME_PX - 10}" y="{_middle(row)}" text-anchor="end">'
            f"{escape(bar.name)}</text>"
        )
    for number, panel in enumerate(panels):
        left = NAME_PX + number * (PANEL_PX + VALUE_PX)
        parts.append(
            f'<text x="{left}" y="{TOP_PX - 12}" font-weight="bold">{escape(panel.title)}</text>'
        )
        longest = max(bar.value for bar in panel.bars) or 1.0
        for row, bar in enumerate(panel.bars):
            length = PANEL_PX * bar.value / longest
            parts.append(
                f'<rect x="{left}" y="{TOP_PX + STEP_PX * row}" width="{length:.1f}" '
                f'height="{BAR_PX}" fill="{bar.colour}"/>'
            )
            parts.append(
                f'<text x="{left + length + 6:.1f}" y="{_middle(row)}">{_number(bar.value)}</text>'
            )
    return "\n".join([*parts, "</svg>", ""])


def _middle(row: int) -> int:
    return TOP_PX + STEP_PX * row + BAR_PX - 5


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"
