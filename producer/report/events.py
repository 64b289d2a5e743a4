"""The history of a job, for people and for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from textwrap import wrap
from typing import Any

from ringhaul.ledger.history import JobEvent, Sample
from ringhaul.plain_text import as_line

#: Columns of the table: as many as a terminal of the usual size has.
WIDTH = 80
_INDENT = 4
#: Longer names are cut. Hosts and "schedule NAME" are mostly shorter.
_BY_MAX = 22


def event_lines(events: Sequence[JobEvent]) -> list[str]:
    """Return the lines of the table of events. A text that does not fit beside the other columns
    is on lines below them."""
    rows = [_cells(event) for event in events]
    widths = [max([len(name), *(len(row[i]) for row in rows)]) for i, name in enumerate(_NAMES)]
    lines = [_line(_NAMES, widths, "TEXT")]
    for event, row in zip(events, rows, strict=True):
        text = as_line(event.text)
        if event.count > 1:
            until = f"{event.count:,}x until {_time(event.last_ms)[11:]}"
            text = f"{until}: {text}" if text else until
        line = _line(row, widths, text)
        if len(line) <= WIDTH:
            lines.append(line)
            continue
        lines.append(_line(row, widths, ""))
        below = wrap(text, WIDTH - _INDENT, break_on_hyphens=False)
        lines += [" " * _INDENT + part for part in below]
    return lines


def history_json(events: Sequence[JobEvent], samples: Sequence[Sample]) -> dict[str, Any]:
    """Return events and samples as `status JOB --events --json` has them."""
    return {
        "events": [{**asdict(event), "kind": event.kind.value} for event in events],
        "samples": [asdict(sample) for sample in samples],
    }


_NAMES = ("TIME", "EVENT", "UNIT", "BY")


def _cells(event: JobEvent) -> tuple[str, str, str, str]:
    """Return what the columns show of an event, beside its text."""
    unit = "" if event.unit is None else str(event.unit)
    by = as_line(event.by)
    by = by if len(by) <= _BY_MAX else by[: _BY_MAX - 1] + "…"
    return _time(event.at_ms), event.kind.value, unit, by


def _time(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _line(cells: Sequence[str], widths: Sequence[int], text: str) -> str:
    time, kind, unit, by = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return f" {time}  {kind}  {unit.strip():>{widths[2]}}  {by}  {text}".rstrip()
