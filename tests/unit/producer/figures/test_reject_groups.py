"""Rejects by stage, column and reason: exact counts, and no value of a row unless requested."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import ringhaul.cql
from producer.figures.reject_groups import (
    GROUPS_MAX,
    SAMPLES_MAX,
    RejectGroups,
    group_rejects,
    reason_kind,
)
from ringhaul.records.rejects import Reject
from tests.cases import each

SECRET = "Kx9-secret"


def reject(number: int = 0, **facts: object) -> Reject:
    return Reject(
        **{
            "file": "/data/orders.csv",
            "offset": number * 10,
            "length": 9,
            "line": number + 2,
            "stage": "cast",
            "column": "total",
            "reason": f'"{SECRET}{number}" is not a whole number',
            "data": f"1,{SECRET}".encode(),
        }
        | facts  # type: ignore[arg-type]
    )


def test_a_million_values_make_one_group() -> None:
    found = group_rejects((reject(n) for n in range(1000)), "ld-1", show_data=False)
    (group,) = found.groups
    assert (group.stage, group.column, group.reason, group.count) == (
        *("cast", "total", "is not a whole number"),
        1000,
    )
    assert [one.place for one in group.samples] == [
        f"/data/orders.csv:{n + 2} byte {n * 10:,}" for n in range(SAMPLES_MAX)
    ]
    assert (found.read, found.others, found.whole) == (1000, 0, True)


@each(
    "reason",
    [
        f'"{SECRET}" is not a decimal number',
        f'"a "quoted" {SECRET} is outside of it" is not a date such as 2024-05-31',
        f"{SECRET} is outside -128..127",
        f"upper: ValueError: {SECRET}",
        f"Invalid STRING constant ({SECRET}) for total",
        SECRET,
        "",
    ],
)
@each("stage", ["cast", "write", "transform", "a later one"])
def test_no_value_is_shown_unless_asked_for(stage: str, reason: str) -> None:
    hostile = reject(reason=reason, stage=stage)
    assert SECRET not in repr(group_rejects([hostile], "ld-1", show_data=False))
    shown = group_rejects([hostile], "ld-1", show_data=True).groups[0]
    assert shown.samples[0].reason == reason
    assert shown.samples[0].record == f"1,{SECRET}"


def test_each_reason_of_the_types_has_a_name() -> None:
    """A new reason is named after its stage until it is among the phrases: this says so."""
    folder = Path(inspect.getfile(ringhaul.cql)).parent
    code = "".join(path.read_text() for path in folder.glob("*.py"))
    reasons = re.findall(r'ValueError\(f"\{quote\([^}]*\}([^"]*)"', code)
    assert len(reasons) > 15
    unnamed = [
        one for one in reasons if reason_kind("cast", f'"x"{one}') == reason_kind("cast", "")
    ]
    assert sorted(unnamed) == [" has month {month}", " has more than {largest} {part}"]


def test_what_is_shown_is_bounded() -> None:
    many = [reject(n, column=f"c{n % 100}", reason="x" * 10_000) for n in range(500)]
    many = [*many, *(reject(n, data=b"\xff\x1b" * 10_000) for n in range(600))]
    found: RejectGroups = group_rejects(many, "ld-1", show_data=True)
    assert len(found.groups) == GROUPS_MAX
    assert found.groups[0].count == 600
    assert found.others == 1100 - sum(group.count for group in found.groups) > 0
    assert len(repr(found)) < 100_000
    assert "\x1b" not in found.groups[0].samples[0].record
    first = group_rejects(many, "ld-1", show_data=False, rejects_max=10)
    assert (first.read, first.whole) == (10, False)
    assert group_rejects(many, "ld-1", show_data=False, rejects_max=1100).whole


def test_a_row_of_a_table_has_no_line() -> None:
    found = group_rejects([reject(line=0, file="shop.orders", data=None)], "ul-1", show_data=True)
    assert found.groups[0].samples[0].place == "shop.orders"
    assert found.groups[0].samples[0].record == ""
