"""Due times as people write them."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest

from ringhaul.schedule.times import due_ms_of, read_due, run_id
from tests.cases import each

UTC, BERLIN, LONDON = map(ZoneInfo, ("UTC", "Europe/Berlin", "Europe/London"))
DUE = due_ms_of("20261119T003000Z")


@each(
    ("text", "zone"),
    [
        ("2026-11-19T00:30Z", BERLIN),
        ("2026-11-19T00:30:00Z", BERLIN),
        ("2026-11-19T01:30+01:00", UTC),
        ("20261119T003000Z", BERLIN),
        (" 2026-11-19 00:30Z ", BERLIN),
        ("2026-11-19T00:30", UTC),
        ("2026-11-19T00:30", LONDON),  # in winter both are the same
    ],
)
def test_a_due_time_is_read(text: str, zone: ZoneInfo) -> None:
    assert run_id(read_due(text, zone)) == run_id(DUE)


@each(
    ("text", "zone", "words"),
    [
        ("2026-11-19T00:30", BERLIN, "write 2026-11-19T00:30Z or 2026-11-19T00:30\\+01:00$"),
        (
            "2026-07-01T00:30:05",
            LONDON,
            "write 2026-07-01T00:30:05Z or 2026-07-01T00:30:05\\+01:00",
        ),
        ("2026-11-19", BERLIN, "may be UTC or Europe/Berlin: write 2026-11-19T00:00Z or"),
        ("soon", UTC, "'soon' is no time such as 2026-11-20T00:30Z"),
        ("", UTC, "'' is no time"),
        ("2026-02-30T00:30Z", UTC, "is no time"),
        ("9" * 100_000, UTC, "is no time"),
    ],
)
def test_a_text_that_is_no_due_time_is_refused(text: str, zone: ZoneInfo, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read_due(text, zone)
