"""A job's history as people and programs see it."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from producer.report.events import event_lines, history_json
from ringhaul.ledger.history import EventKind, JobEvent, Sample

REFERENCE = Path(__file__).parents[4] / "docs" / "reference"
AT_MS = 1_700_000_000_999
EVENTS = [
    JobEvent(at_ms=AT_MS, kind=EventKind.CREATED, by="command"),
    JobEvent(at_ms=AT_MS + 2000, kind=EventKind.RETRIED, text="too slow", by="h1", unit=12),
    JobEvent(
        at_ms=AT_MS + 90_000,
        kind=EventKind.NODE_REST,
        text="10.0.0.1: no answer came from it, \x1b[31mtwice\n" * 4,
        by="schedule of the night and of all mornings thereafter",
        count=1234,
        last_ms=AT_MS + 95_000,
    ),
]


def test_events_are_a_table_of_80_columns() -> None:
    assert event_lines(EVENTS[:2]) == [
        " TIME                  EVENT         UNIT  BY       TEXT",
        " 2023-11-14T22:13:20Z  created             command",
        " 2023-11-14T22:13:22Z  unit retried    12  h1       too slow",
    ]
    lines = event_lines(EVENTS)
    assert max(map(len, lines)) <= 80
    assert all(line.isprintable() for line in lines)
    assert lines[3].rstrip().endswith("node left alone        schedule of the night…")
    below = " ".join(line.strip() for line in lines[4:])
    assert (
        below
        == "1,234x until 22:14:55Z: " + r"10.0.0.1: no answer came from it, \x1b[31mtwice\n" * 4
    )


def test_fields_for_programs_are_documented() -> None:
    sample = Sample(at_ms=AT_MS, rows=7, p50_ms=None)
    found = history_json(EVENTS, [sample])
    assert found["events"][1] == {
        "at_ms": AT_MS + 2000,
        "kind": "unit retried",
        "text": "too slow",
        "by": "h1",
        "unit": 12,
        "count": 1,
        "last_ms": AT_MS + 2000,
    }
    assert Sample(**found["samples"][0]) == sample
    page = (REFERENCE / "json.md").read_text()
    section = page.split("\n## Status of a job with its events\n")[1].split("\n## ")[0]
    documented = {*re.findall(r"`(\w+)`", section)}
    assert {field.name for record in (JobEvent, Sample) for field in fields(record)} <= documented
    kinds = {
        *re.findall(
            r"^\| `([a-z ]+)` \|", (REFERENCE / "commands" / "status.md").read_text(), re.MULTILINE
        )
    }
    assert {kind.value for kind in EventKind} <= kinds
