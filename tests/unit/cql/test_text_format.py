"""Options of a text format: each refusal names the option."""

import json
from typing import Any

import pytest

from ringhaul.cql.text_format import TextFormat
from ringhaul.errors import UsageError
from tests.cases import each


@each(
    ("options", "message"),
    [
        ({"epoch_unit": "min."}, '--epoch-unit "min." is unknown: use one of s, ms, us, ns'),
        ({"blob": "raw"}, '--blob "raw" is unknown: use one of hex, base64, any'),
        (
            {"timezone": "Europe/Pariss"},
            '--timezone "Europe/Pariss" is unknown: use an IANA name such as Europe/Paris',
        ),
        ({"timezone": "../etc"}, '--timezone "../etc" is unknown'),
        (
            {"true_words": ("Y", "1"), "false_words": ("y",)},
            '--true-words and --false-words both have "y": drop it from one',
        ),
        ({"true_words": ()}, "--true-words is empty: give at least one word"),
        ({"false_words": ()}, "--false-words is empty: give at least one word"),
        ({"decimal_sep": ""}, "--decimal-sep is empty: give one character"),
        ({"decimal_sep": "5"}, '--decimal-sep "5" cannot be used'),
        ({"thousands_sep": "''"}, "--thousands-sep \"''\" cannot be used"),
        (
            {"decimal_sep": ",", "thousands_sep": ","},
            '--decimal-sep and --thousands-sep are both ",": change one',
        ),
        (
            {"timestamp_formats": ("%Y-%m-%d %Q",)},
            '--timestamp-format "%Y-%m-%d %Q": %Q is not known, use %Y',
        ),
        ({"timestamp_formats": ("%H:%M",)}, '--timestamp-format "%H:%M" must have one year'),
        (
            {"timestamp_formats": ("%F %d",)},
            '--timestamp-format "%F %d" has the day twice',
        ),
        (
            {"timestamp_formats": ("%F %I:%M",)},
            '--timestamp-format "%F %I:%M": %I and %p need each other',
        ),
        ({"timestamp_formats": ("%F %",)}, '--timestamp-format "%F %": % is not known'),
    ],
)
def test_refused_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as raised:
        TextFormat(**options)
    assert str(raised.value).startswith(message)


def test_json_round_trip() -> None:
    fmt = TextFormat(timestamp_formats=("%d/%m/%Y",), timezone="Asia/Kathmandu", decimal_sep=",")

    assert TextFormat.from_json(json.loads(json.dumps(fmt.to_json()))) == fmt
    assert TextFormat.from_json({}) == TextFormat()
