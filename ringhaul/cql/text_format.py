"""The spelling of values in text, as users can set it, for reading and for writing."""

import re
import zoneinfo
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from ringhaul.cql.calendar import DAY_MS, days_of, month_days
from ringhaul.cql.month_names import NAMES, language_of
from ringhaul.cql.patterns import compile_pattern, pattern_parts
from ringhaul.cql.value_words import (
    ACCEPTED,
    BLOB_FORMS,
    CLOCK_CHANGES,
    OVERFLOWS,
    ROUNDINGS,
    UNIT_NS,
)
from ringhaul.errors import UsageError
from ringhaul.option_names import input_option

_EPOCH = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)"
    r"(?:[Tt ](\d\d):(\d\d)(?::(\d\d))?(?:[Zz]|([+-])(\d\d):(\d\d))?)?",
    re.ASCII,
)


@dataclass(frozen=True, kw_only=True)
class TextFormat:
    """The spelling of values in text. Raises `UsageError` that names an invalid option."""

    #: Patterns of strftime or Java for timestamps, dates and times of day, tried in order before
    #: ISO 8601; or a unit of `UNIT_NS`, for whole numbers of it since `epoch`, or since midnight.
    timestamp_formats: tuple[str, ...] = ()
    date_formats: tuple[str, ...] = ()
    time_formats: tuple[str, ...] = ()
    #: Unit of a bare integer in a timestamp column, since `epoch`. Empty: ms, but numbers that look
    #: like a year or a date (2026, 20260131) are refused.
    epoch_unit: str = ""
    #: Moment from which numbers count: a date, or a date and a time, perhaps with its offset from
    #: UTC. Numbers in a date column count from the date and time as written.
    epoch: str = "1970-01-01"
    #: Language of the names of months and days: one of `month_names`, also as `fr_FR`.
    locale: str = "en"
    #: IANA name of the zone of timestamps that name no zone.
    timezone: str = "UTC"
    #: Meaning of local times that clocks skip or repeat: a key of `CLOCK_CHANGES`. Empty: as
    #: "first", and a load notes how many such times it has read.
    clock_changes: str = ""
    #: Words for booleans, in any case.
    true_words: tuple[str, ...] = ("true", "t", "yes", "y", "1")
    false_words: tuple[str, ...] = ("false", "f", "no", "n", "0")
    #: "hex" (0x...), "base64", or "any": hex after 0x, else base64.
    blob: str = "hex"
    #: Decimal separator of numbers, and separator of groups of three digits ("": none).
    decimal_sep: str = "."
    thousands_sep: str = ""
    #: Spellings beyond the usual ones: keys of `ACCEPTED`.
    accept: tuple[str, ...] = ()
    #: What becomes of numbers outside their column's range, and of fractions in whole numbers.
    overflow: str = "reject"
    rounding: str = "none"

    def __post_init__(self) -> None:
        if language_of(self.locale) is None:
            raise UsageError(
                f'{input_option("locale")} "{self.locale}" is unknown: use one of '
                f"{', '.join(NAMES)}"
            )
        self._check_formats()
        self._check_known("epoch-unit", self.epoch_unit or "ms", UNIT_NS)
        self._check_known("blob", self.blob, BLOB_FORMS)
        self._check_known("overflow", self.overflow, OVERFLOWS)
        self._check_known("clock-changes", self.clock_changes or "first", CLOCK_CHANGES)
        self._check_known("rounding", self.rounding, ROUNDINGS)
        for word in self.accept:
            self._check_known("accept", word, ACCEPTED)
        _ = self.epoch_ms
        try:
            zoneinfo.ZoneInfo(self.timezone)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise UsageError(
                f'{input_option("timezone")} "{self.timezone}" is unknown: use an IANA name such '
                "as Europe/Paris"
            ) from error
        both = {w.lower() for w in self.true_words} & {w.lower() for w in self.false_words}
        if both:
            options = " and ".join(map(input_option, ("true-words", "false-words")))
            raise UsageError(f'{options} both have "{min(both)}": drop it from one')
        for name, words in (("true-words", self.true_words), ("false-words", self.false_words)):
            if not words:
                raise UsageError(f"{input_option(name)} is empty: give at least one word")
        self._check_separators()

    def _check_known(self, name: str, value: str, known: Iterable[str]) -> None:
        if value not in known:
            raise UsageError(
                f'{input_option(name)} "{value}" is unknown: use one of {", ".join(known)}'
            )

    def _check_formats(self) -> None:
        for kind in ("timestamp", "date", "time"):
            units = []
            for pattern in getattr(self, f"{kind}_formats"):
                if pattern in UNIT_NS:
                    units.append(pattern)
                    continue
                try:
                    compile_pattern(pattern, kind=kind, language=self.language)
                except UsageError as error:
                    raise UsageError(f"{input_option(f'{kind}-format')} {error}") from error
            if kind == "timestamp" and self.epoch_unit and units not in ([], [self.epoch_unit]):
                units.append(self.epoch_unit)
            if len(units) > 1:
                raise UsageError(
                    f"{input_option(f'{kind}-format')} {units[0]} and {units[1]}: a whole number "
                    "has one unit; drop one"
                )

    def _check_separators(self) -> None:
        for name, separator in (
            ("decimal-sep", self.decimal_sep),
            ("thousands-sep", self.thousands_sep),
        ):
            if len(separator) > 1 or separator in tuple("0123456789+-eE"):
                raise UsageError(
                    f'{input_option(name)} "{separator}" cannot be used: give one character that '
                    "is neither a digit, a sign nor the letter e"
                )
        if not self.decimal_sep:
            raise UsageError(f"{input_option('decimal-sep')} is empty: give one character")
        if self.decimal_sep == self.thousands_sep:
            options = " and ".join(map(input_option, ("decimal-sep", "thousands-sep")))
            raise UsageError(f'{options} are both "{self.decimal_sep}": change one')

    @property
    def language(self) -> str:
        """The key of `month_names.NAMES` for `locale`."""
        return language_of(self.locale) or "en"

    @property
    def epoch_ms(self) -> int:
        """Milliseconds from 1970 to `epoch`. Raises `UsageError` if that is not a date and time."""
        return self._epoch[0] - self._epoch[1]

    @property
    def epoch_of_dates_ms(self) -> int:
        """Milliseconds from 1970 to `epoch` as its own clock shows it, since dates have no zone."""
        return self._epoch[0]

    @property
    def _epoch(self) -> tuple[int, int]:
        """Milliseconds from 1970 to `epoch` by its own clock, and this clock's offset from UTC."""
        match = _EPOCH.fullmatch(self.epoch.strip())
        if match is not None:
            year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
            ahead = int(match[8] or 0) * 60 + int(match[9] or 0)
            if 1 <= month <= 12 and 1 <= day <= month_days(year, month) and hour < 24:
                seconds = hour * 3600 + minute * 60 + second
                offset_ms = (-ahead if match[7] == "-" else ahead) * 60_000
                return days_of(year, month, day) * DAY_MS + seconds * 1000, offset_ms
        raise UsageError(
            f'{input_option("epoch")} "{self.epoch}" is not a date such as 2000-01-01, '
            "2000-01-01T00:00:00Z or 2000-01-01T00:00:00+01:00"
        )

    def patterns(self, kind: str) -> tuple[str, ...]:
        """Return the patterns for timestamp, date or time, without units."""
        formats: tuple[str, ...] = getattr(self, f"{kind}_formats")
        return tuple(pattern for pattern in formats if pattern not in UNIT_NS)

    def unit(self, kind: str) -> str:
        """Return the unit of whole numbers for timestamp, date or time; empty if none is given."""
        formats: tuple[str, ...] = getattr(self, f"{kind}_formats")
        given = next((pattern for pattern in formats if pattern in UNIT_NS), "")
        return given or (self.epoch_unit if kind == "timestamp" else "")

    def dropped_by(self, kind: str) -> str:
        """Return the pattern by which a timestamp or time is written, if it shows no fraction of a
        second, so that a written value may load back changed. Empty: all of a value is written."""
        formats: tuple[str, ...] = getattr(self, f"{kind}_formats")
        if not formats or formats[0] in UNIT_NS:
            return ""
        fields = {part.field for part in pattern_parts(formats[0], kind=kind)}
        return "" if {"minute", "second", "fraction"} <= fields else formats[0]

    def accepts(self, spelling: str) -> bool:
        """Whether a spelling, a key of `ACCEPTED`, is read."""
        return spelling in self.accept

    @property
    def plain_numbers(self) -> bool:
        return self.decimal_sep == "." and not self.thousands_sep

    def to_json(self) -> dict[str, Any]:
        """Return the format as JSON-able values, for `from_json`."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "TextFormat":
        known: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in values.items()
            if name != "option_prefix"  # in jobs of earlier versions
        }
        return cls(**known)


#: The format that applies where no option says otherwise.
USUAL = TextFormat()
