"""The chart of README: ours beside other tools, from the saved results of `load_small` and
`unload_small`. `python -m bench.page` writes it."""

from __future__ import annotations

from pathlib import Path

from bench.picture import Bar, Panel, picture
from bench.record import Record

PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "speed.svg"
OURS, OTHERS = "#1f6feb", "#9aa4af"
#: Name in the chart -> how the system's name begins in the results of loads, and of unloads.
_SYSTEMS = {
    "ringhaul": ("ringhaul embedded", "ringhaul unload, csv"),
    "DataStax Bulk Loader": ("Bulk Loader", "Bulk Loader"),
    "cqlsh COPY": ("cqlsh COPY", "cqlsh COPY"),
}


def draw(load: Record, unload: Record) -> str:
    """Return the chart as SVG: whole commands. Raises `KeyError` if a system is missing."""
    panels = []
    for number, (title, record) in enumerate(
        (("load, rows per second", load), ("unload to CSV, rows per second", unload))
    ):
        bars = [
            Bar(name, record.named(starts[number]).rate, OURS if name == "ringhaul" else OTHERS)
            for name, starts in _SYSTEMS.items()
        ]
        panels.append(Panel(title, bars))
    line = load.named(_SYSTEMS["ringhaul"][0])
    return picture(
        f"{line.rows:,} rows of six columns, from start to exit",
        f"Medians of {line.rounds} interleaved rounds; {load.machine.partition(',')[0]}",
        panels,
    )
