"""The spelling of values in the text of a load, as users can set it."""

import zoneinfo
from dataclasses import asdict, dataclass
from typing import Any

from ringhaul.cql.patterns import compile_pattern
from ringhaul.errors import UsageError
from ringhaul.option_names import option_name

#: Cassandra's own unit is milliseconds; values in a finer unit are floored.
EPOCH_UNITS = ("s", "ms", "us", "ns")
BLOB_FORMS = ("hex", "base64")


@dataclass(frozen=True, kw_only=True)
class TextFormat:
    """The spelling of values in text. Raises `UsageError` that names an invalid option."""

    #: strftime patterns for timestamps, tried in order before ISO 8601.
    timestamp_formats: tuple[str, ...] = ()
    #: Unit of a bare integer in a timestamp column: s, ms, us or ns since 1970 UTC. Empty: ms, but
    #: numbers that look like a year or a date (2026, 20260131) are refused.
    epoch_unit: str = ""
    #: IANA name of the zone of timestamps without one.
    timezone: str = "UTC"
    #: Words for booleans, in any case.
    true_words: tuple[str, ...] = ("true", "t", "yes", "y", "1")
    false_words: tuple[str, ...] = ("false", "f", "no", "n", "0")
    #: "hex" (0x...) or "base64".
    blob: str = "hex"
    #: Decimal separator of numbers, and the one between groups of three digits ("": none).
    decimal_sep: str = "."
    thousands_sep: str = ""
    #: Prefix of the options that set this format, for messages: see `option_names`.
    option_prefix: str = ""

    def __post_init__(self) -> None:
        for pattern in self.timestamp_formats:
            try:
                compile_pattern(pattern)
            except UsageError as error:
                raise UsageError(f"{self.option('timestamp-format')} {error}") from error
        if self.epoch_unit and self.epoch_unit not in EPOCH_UNITS:
            raise UsageError(
                f'{self.option("epoch-unit")} "{self.epoch_unit}" is unknown: use one of '
                f"{', '.join(EPOCH_UNITS)}"
            )
        if self.blob not in BLOB_FORMS:
            raise UsageError(f'{self.option("blob")} "{self.blob}" is unknown: use hex or base64')
        try:
            zoneinfo.ZoneInfo(self.timezone)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise UsageError(
                f'{self.option("timezone")} "{self.timezone}" is unknown: use an IANA name such as '
                "Europe/Paris"
            ) from error
        both = {w.lower() for w in self.true_words} & {w.lower() for w in self.false_words}
        if both:
            options = " and ".join(map(self.option, ("true-words", "false-words")))
            raise UsageError(f'{options} both have "{min(both)}": drop it from one')
        for name, words in (("true-words", self.true_words), ("false-words", self.false_words)):
            if not words:
                raise UsageError(f"{self.option(name)} is empty: give at least one word")
        self._check_separators()

    def _check_separators(self) -> None:
        for name, separator in (
            ("decimal-sep", self.decimal_sep),
            ("thousands-sep", self.thousands_sep),
        ):
            if len(separator) > 1 or separator in tuple("0123456789+-eE"):
                raise UsageError(
                    f'{self.option(name)} "{separator}" cannot be used: give one character that is '
                    "neither a digit, a sign nor the letter e"
                )
        if not self.decimal_sep:
            raise UsageError(f"{self.option('decimal-sep')} is empty: give one character")
        if self.decimal_sep == self.thousands_sep:
            options = " and ".join(map(self.option, ("decimal-sep", "thousands-sep")))
            raise UsageError(f'{options} are both "{self.decimal_sep}": change one')

    @property
    def plain_numbers(self) -> bool:
        return self.decimal_sep == "." and not self.thousands_sep

    def option(self, name: str) -> str:
        """Return the running command's name of an option about input, such as ``epoch-unit``."""
        return option_name(name, self.option_prefix)

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
        }
        return cls(**known)
