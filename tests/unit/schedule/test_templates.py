"""Dates and names in a step's arguments."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from ringhaul.schedule.templates import Facts, fill
from tests.cases import each


def facts(due: str = "2026-03-30 22:30", zone: str = "Europe/Berlin") -> Facts:
    due_ms = int(datetime.fromisoformat(due).replace(tzinfo=UTC).timestamp()) * 1000
    return Facts(name="nightly", due_ms=due_ms, zone=ZoneInfo(zone), files=("/a b.csv", "/c.csv"))


@each(
    ("template", "filled"),
    [
        ("{due}", "20260330T223000Z"),
        ("/in/{due:%Y-%m-%d}/*.csv", "/in/2026-03-31/*.csv"),  # 00:30 in Berlin
        ("{due-1d:%Y-%m-%d}", "2026-03-30"),
        ("{due+1h:%H:%M}", "01:30"),
        ("{due-90m:%Y%m%d-%H%M}", "20260330-2300"),
        ("{name}-{due:%j}", "nightly-090"),
        ("a{due:%Y}b{due:%m}c", "a2026b03c"),
        # braces of CQL stay
        ("{'a': 1}", "{'a': 1}"),
        ("UPDATE k.t SET m = {street: 'x', no: 1}", "UPDATE k.t SET m = {street: 'x', no: 1}"),
        ("{name: 'x'}", "{name: 'x'}"),
        ("{}", "{}"),
        ("{1, 2}", "{1, 2}"),
        ("100%", "100%"),
    ],
)
def test_templates_are_filled_in(template: str, filled: str) -> None:
    assert fill([template], facts()) == [filled]


def test_days_are_calendar_days_and_hours_are_elapsed_hours() -> None:
    # 12:00 in Berlin on the day of the jump: 11 hours after midnight
    noon = facts("2026-03-29 10:00")
    assert fill(["{due-1d:%H:%M}", "{due-24h:%H:%M}"], noon) == ["12:00", "11:00"]


def test_each_file_is_a_separate_argument() -> None:
    assert fill(["load", "{files}", "-t", "k.t"], facts()) == [
        *("load", "/a b.csv", "/c.csv", "-t", "k.t")
    ]


@pytest.mark.parametrize(
    "template",
    ["{deu}", "{Due}", "{due:Y}", "{due-1:%Y}", "{due-1d}", "{name:%Y}", "{ due }", "{date:%Y}"],
)
def test_invalid_templates_are_refused(template: str) -> None:
    with pytest.raises(ValueError, match=r"expected \{due\}|such as"):
        fill([template], facts())


@pytest.mark.parametrize("shift", ["-800000d", "-999999999d", "+99999999h", "+9999999d"])
def test_a_date_beyond_the_calendar_is_refused(shift: str) -> None:
    message = rf"due\{shift}:%Y\}}: the date is outside the years 1 to 9999"
    with pytest.raises(ValueError, match=message):
        fill([f"/x/{{due{shift}:%Y}}.csv"], facts())


def test_files_within_an_argument_are_refused() -> None:
    with pytest.raises(ValueError, match="must be a separate argument"):
        fill(["x{files}"], facts())
