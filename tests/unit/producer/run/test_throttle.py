"""From the options of `ringhaul throttle` to limits."""

from __future__ import annotations

from dataclasses import fields

import pytest

from producer.commands.control import throttle_command
from producer.options.control import ThrottleOptions
from producer.run.throttle import wanted_pace
from ringhaul.errors import UsageError
from ringhaul.ledger.pace import NO_PACE, Limits, Pace
from tests.cases import each


def wanted(*arguments: str) -> Pace | None:
    context = throttle_command.make_context("throttle", ["ld-1", *arguments])
    own = {field.name for field in fields(ThrottleOptions)}
    return wanted_pace(
        ThrottleOptions(**{name: value for name, value in context.params.items() if name in own})
    )


@each(
    ("arguments", "pace"),
    [
        ([], None),
        (["--off"], NO_PACE),
        (["--rows-per-second", "500"], Pace(limits=Limits(500))),
        (["--rate", "500"], Pace(limits=Limits(500))),
        (["--rate", "1.5MB/s"], Pace(limits=Limits(bytes_per_s=1_500_000))),
        (
            ["--rate", "500", "--mb-per-second", "1", "--between", "08:00-18:00"],
            Pace.of(Limits(500, 1_000_000), ("08:00-18:00",)),
        ),
        (["--mb-per-second", "1.5"], Pace(limits=Limits(bytes_per_s=1_500_000))),
        (["--mb-per-second", "1e-9"], Pace(limits=Limits(bytes_per_s=1))),
        (
            ["--in-flight", "8", "--between", "08:00-18:00", "--between", "22:00-02:00"],
            Pace.of(Limits(in_flight=8), ("08:00-18:00", "22:00-02:00")),
        ),
        (
            ["--rows-per-second", "1", "--between", "0:00-6:00", "--timezone", "Asia/Tokyo"],
            Pace.of(Limits(1), ("00:00-06:00",), "Asia/Tokyo"),
        ),
    ],
)
def test_limits(arguments: list[str], pace: Pace | None) -> None:
    assert wanted(*arguments) == pace


@each(
    ("arguments", "words"),
    [
        (["--off", "--in-flight", "1"], "--off removes all limits"),
        (["--off", "--rate", "1"], "--off removes all limits"),
        (["--rate", "1", "--rows-per-second", "1"], "--rate and --rows-per-second both limit"),
        (["--rate", "1MB/s", "--mb-per-second", "1"], "--rate and --mb-per-second both limit"),
        (["--off", "--between", "08:00-18:00"], "--off removes all limits"),
        (["--between", "08:00-18:00"], "give --rate, --rows-per-second"),
        (["--timezone", "UTC"], "give --rate, --rows-per-second"),
        (["--in-flight", "1", "--timezone", "UTC"], "give some"),
        (["--in-flight", "1", "--between", "8-18"], "give HH:MM-HH:MM"),
        (["--in-flight", "1", "--between", "8:00-9:00", "--timezone", "X"], "no time zone"),
    ],
)
def test_senseless_options_are_refused(arguments: list[str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        wanted(*arguments)
