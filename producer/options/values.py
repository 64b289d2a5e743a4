"""Options for how values are spelled in text, whether it is read or written."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from producer.options.groups import Group
from producer.options.option import option
from ringhaul.cql.value_words import ACCEPTED, CLOCK_CHANGES, ROUNDINGS

_option = partial(option, group=Group.VALUES)
_PATTERN = "Pattern of {}, strftime or Java, or a unit; tried before ISO 8601."


@dataclass(frozen=True, kw_only=True)
class ValueSpelling:
    """How values are spelled in text, whether it is read or written; see `TextFormat`."""

    timestamp_formats: tuple[str, ...] = _option(
        "--timestamp-format",
        repeated=True,
        metavar="PATTERN",
        help=_PATTERN.format("timestamps"),
        brief="Pattern of timestamps, such as %d.%m.%Y.",
        common=True,
        said="timestamps {0[0]}",
    )
    date_formats: tuple[str, ...] = _option(
        "--date-format",
        repeated=True,
        metavar="PATTERN",
        help=_PATTERN.format("dates"),
        said="dates {0[0]}",
    )
    time_formats: tuple[str, ...] = _option(
        "--time-format",
        repeated=True,
        metavar="PATTERN",
        help=_PATTERN.format("times of day"),
        said="times {0[0]}",
    )
    epoch_unit: str = _option(
        "--epoch-unit",
        default="",
        metavar="UNIT",
        help="Unit of whole-number timestamps: ns us ms s min h d "
        "[ms, except what reads as a date].",
        said="epoch unit {}",
    )
    epoch: str = _option(
        "--epoch",
        default="1970-01-01",
        metavar="TIME",
        help="Moment from which whole-number timestamps count.",
        said="epoch {}",
    )
    timezone: str = _option(
        "--timezone",
        default="UTC",
        metavar="NAME",
        help="Time zone of timestamps without a zone.",
        said="time zone {}",
    )
    clock_changes: str = _option(
        "--clock-changes",
        default="",
        metavar="|".join(CLOCK_CHANGES),
        help="Local times that clocks repeat or skip [repeated: first; skipped: reject].",
        said="clock changes {}",
    )
    locale: str = _option(
        "--locale",
        default="en",
        metavar="NAME",
        help="Language of months and days: en fr de es it pt nl sv da pl.",
        said="locale {}",
    )
    true_words: str | None = _option(
        "--true-words",
        metavar="A,B,...",
        help="Words for true; the first is written [true,t,yes,y,1].",
        said="true {}",
    )
    false_words: str | None = _option(
        "--false-words",
        metavar="A,B,...",
        help="Words for false; the first is written [false,f,no,n,0].",
        said="false {}",
    )
    blob: str = _option(
        "--blob",
        default="hex",
        metavar="hex|base64|any",
        help="How blobs are spelt: 0x and pairs of digits, base64, or either.",
        said="blob {}",
    )
    decimal_sep: str = _option(
        "--decimal-sep",
        default=".",
        metavar="CHAR",
        help="Decimal point of numbers.",
        said="decimal separator {!r}",
    )
    thousands_sep: str = _option(
        "--thousands-sep",
        default="",
        metavar="CHAR",
        help="Thousands separator.",
        said="thousands separator {!r}",
    )


@dataclass(frozen=True, kw_only=True)
class ValueLeniency:
    """Which spellings of values are read, but never written; see `TextFormat`."""

    accept: str = _option(
        "--accept",
        default="",
        metavar="A,B,...",
        help=f"Also read these spellings: {' '.join(ACCEPTED)}, or all.",
    )
    overflow: str = _option(
        "--overflow",
        default="reject",
        metavar="reject|clamp",
        help="Numbers out of range; clamp: the nearest number of the type.",
    )
    rounding: str = _option(
        "--rounding",
        default="none",
        metavar="MODE",
        help=f"Fractions in whole-number columns: {' '.join(ROUNDINGS)}.",
    )
