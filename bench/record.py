"""The saved results of the benches, read back for the page. `harness.keep` writes them.

A record is `bench/results/NAME.json`: what was run, where and when, and either the medians of
systems (`harness.save`) or a table (`harness.save_table`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.harness import DRIVER, RESULTS


@dataclass(frozen=True, kw_only=True)
class Line:
    """Medians of one system. None for what was not recorded, or what a system does not report."""

    name: str
    family: str
    rows: int  #: 0 if it was not recorded
    rounds: int
    rows_s: float
    rows_s_whole: float | None = None  #: start to exit
    cpu_us_per_row: float | None = None  #: of all client processes
    worker_cpu_us_per_row: float | None = None

    @property
    def rate(self) -> float:
        """Rows a second from start to exit; of the driver's ways, of the work alone: they are
        functions, and their start would be too large a share."""
        if self.family == DRIVER or self.rows_s_whole is None:
            return self.rows_s
        return self.rows_s_whole

    def rate_beside(self, other: Line) -> float:
        """Rows a second in the terms of another system: of the work alone beside the driver's."""
        return self.rows_s if other.family == DRIVER else self.rate

    def cpu_beside(self, other: Line) -> float | None:
        """CPU in us a row in the terms of another system: without the start of a command beside
        the driver's ways, whose start is not counted either."""
        if other.family == DRIVER and self.worker_cpu_us_per_row is not None:
            return self.worker_cpu_us_per_row
        return self.cpu_us_per_row


@dataclass(frozen=True, kw_only=True)
class Record:
    """A saved result."""

    name: str
    title: str
    machine: str
    date: str
    command: str
    load_before: float | None = None  #: load average of a minute, before the bench added its own
    load_after: float | None = None
    note: str = ""
    lines: tuple[Line, ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str | float, ...], ...] = ()

    def named(self, start: str) -> Line:
        """Return the fastest system whose name begins so. Raises `KeyError` if there is none."""
        found = [line for line in self.lines if line.name.startswith(start)]
        if not found:
            raise KeyError(f"{self.name} has no system that begins with {start!r}")
        return max(found, key=lambda line: line.rows_s)


def read_record(name: str, folder: Path = RESULTS) -> Record | None:
    """Return the saved result of a bench, or None if there is none."""
    path = folder / f"{name}.json"
    if not path.exists():
        return None
    content = json.loads(path.read_text())
    return Record(
        name=name,
        title=content["title"],
        machine=content["machine"],
        date=content["date"],
        command=content["command"],
        load_before=content.get("load_before"),
        load_after=content.get("load_after"),
        note=content.get("note", ""),
        lines=tuple(map(_line, content.get("medians", ()))),
        columns=tuple(content.get("columns", ())),
        rows=tuple(map(tuple, content.get("rows", ()))),
    )


def _line(median: dict[str, Any]) -> Line:
    return Line(**{key: median[key] for key in Line.__dataclass_fields__ if key in median})
