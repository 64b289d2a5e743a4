"""`--rate` in rows and in bytes."""

from __future__ import annotations

import click
import pytest

from producer.request.rate import parse_rate
from ringhaul.ledger.pace import NO_PACE, Limits, Pace
from tests.cases import each
from tests.options import parse_options

LOAD = ("load", "in.csv", "-t", "shop.orders")


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        ("1", Limits(rows_per_s=1)),
        ("20000", Limits(rows_per_s=20_000)),
        ("50MB/s", Limits(bytes_per_s=50_000_000)),
        ("1.5 mb/s", Limits(bytes_per_s=1_500_000)),
        ("200kB/s", Limits(bytes_per_s=200_000)),
        ("2GB/s", Limits(bytes_per_s=2_000_000_000)),
        ("0.000001MB/s", Limits(bytes_per_s=1)),
    ],
)
def test_a_rate_is_in_rows_or_in_bytes(text: str, limits: Limits) -> None:
    assert parse_rate(text) == limits
    assert parse_options(*LOAD, "--rate", text).pace == Pace(limits=limits)


def test_without_a_rate_there_is_no_limit() -> None:
    assert parse_options(*LOAD).pace == NO_PACE


@each(
    "text",
    ["0", "-1", "1.5", "50M", "50MB", "50 MiB/s", "0MB/s", "0.0000001MB/s", "MB/s", "", "1e6", "٣"],
)
def test_other_rates_are_refused_with_what_to_give(text: str) -> None:
    with pytest.raises(click.BadParameter, match="give rows a second, such as 20000, or bytes"):
        parse_options(*LOAD, "--rate", text)
