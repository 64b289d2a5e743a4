"""How the text of a load spells values: what a user may set beyond the defaults."""

import zoneinfo
from dataclasses import asdict, dataclass
from typing import Any

from ringhaul.cql.patterns import compile_pattern
from ringhaul.errors import UsageError
from ringhaul.option_names import option_name

#: Milliseconds are Cassandra's own unit; a unit finer than that is floored.
EPOCH_UNITS = ("s", "ms", "us", "ns")
BLOB_FORMS = ("hex", "base64")


@dataclass(frozen=True, kw_only=True)
class TextFormat:
    """Spelling of values in text. Raises `UsageError` that names the option it cannot use."""

    #: strftime patterns for timestamps, tried in order before ISO 8601.
    timestamp_formats: tuple[str, ...] = ()
    #: Unit of a bare integer in a timestamp column: s, ms, us or ns since 1970 UTC. Empty: ms, but
    #: what reads as a year or a date (2026, 20260131) is refused.
    epoch_unit: str = ""
    #: IANA name of the zone of timestamps that name none.
    timezone: str = "UTC"
    #: Words for booleans, in any case.
    true_words: tuple[str, ...] = ("true", "t", "yes", "y", "1")
    false_words: tuple[str, ...] = ("false", "f", "no", "n", "0")
    #: "hex" (0x...) or "base64".
    blob: str = "hex"
    #: Decimal separator of numbers, and the one between groups of three digits ("": none).
    decimal_sep: str = "."
    thousands_sep: str = ""
    #: Of the options that set all this, for messages: see `option_names`.
    option_prefix: str = ""

    def __post_init__(self) -> None:
        for pattern in self.timestamp_formats:
            compile_pattern(pattern)
        if self.epoch_unit and self.epoch_unit not in EPOCH_UNITS:
            raise UsageError(
                f'{self.option("epoch-unit")} "{self.epoch_unit}" is unknown: use one of '
                f"{', '.join(EPOCH_UNITS)}"
            )
        if self.blob not in BLOB_FORMS:
            raise UsageError(f'blob form "{self.blob}" is unknown: use hex or base64')
        try:
            zoneinfo.ZoneInfo(self.timezone)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise UsageError(
                f'{self.option("timezone")} "{self.timezone}" is unknown: use an IANA name such as '
                "Europe/Paris"
            ) from error
        both = {w.lower() for w in self.true_words} & {w.lower() for w in self.false_words}
        if both:
            raise UsageError(f'boolean word "{min(both)}" means both true and false: drop one')
        if not self.true_words or not self.false_words:
            raise UsageError("boolean words: give at least one for true and one for false")
        self._check_separators()

    def _check_separators(self) -> None:
        for name, separator in (
            ("decimal", self.decimal_sep),
            ("thousands", self.thousands_sep),
        ):
            if len(separator) > 1 or separator in tuple("0123456789+-eE"):
                raise UsageError(
                    f'{name} separator "{separator}" cannot be used: give one character that is '
                    "neither a digit, a sign nor the letter e"
                )
        if not self.decimal_sep:
            raise UsageError("decimal separator is empty: give one character")
        if self.decimal_sep == self.thousands_sep:
            raise UsageError(
                f'decimal and thousands separator are both "{self.decimal_sep}": change one'
            )

    @property
    def plain_numbers(self) -> bool:
        return self.decimal_sep == "." and not self.thousands_sep

    def option(self, name: str) -> str:
        """How the running command calls an option about its input, such as ``epoch-unit``."""
        return option_name(name, self.option_prefix)

    def to_json(self) -> dict[str, Any]:
        """As JSON-able values; `from_json` reads them back."""
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
