"""Values of a run's record in Redis, which anybody with write access may have changed. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ringhaul.schedule.times import FAR_MS

#: More characters than any record of ringhaul's has.
CHARS_MAX = 100_000


class BadRecord(ValueError):
    """A record in Redis that ringhaul cannot have written. The message says what is wrong."""


class Record:
    """A JSON object of a record; a value of an unexpected type raises `BadRecord`."""

    def __init__(self, data: Any) -> None:
        if not isinstance(data, dict):
            raise BadRecord("it is not a JSON object")
        self._data: Mapping[str, Any] = data

    def text(self, key: str) -> str:
        value = self._data.get(key, "")
        if not is_text(value):
            raise BadRecord(f"{key} is not a text")
        return str(value)

    def whole(self, key: str, default: int | None = None) -> int:
        """Return a number from 0 to the year 2100 in milliseconds."""
        value = self._data.get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= FAR_MS:
            raise BadRecord(f"{key} is not a valid number")
        return value

    def maybe(self, key: str) -> int | None:
        return None if self._data.get(key) is None else self.whole(key)

    def code(self, key: str) -> int | None:
        """Return an exit code; a signal is below 0."""
        value = self._data.get(key)
        if value is not None and (type(value) is not int or not -256 <= value <= 255):
            raise BadRecord(f"{key} is not an exit code")
        return value

    def flag(self, key: str) -> bool:
        value = self._data.get(key, False)
        if not isinstance(value, bool):
            raise BadRecord(f"{key} is neither true nor false")
        return value

    def list(self, key: str, length_max: int) -> Sequence[Any]:
        value = self._data.get(key, [])
        if not isinstance(value, list) or len(value) > length_max:
            raise BadRecord(f"{key} is not a valid list")
        return value

    def command(self) -> str:
        """Return a step's command. Older records hold a whole command line, which is not run."""
        before = self.list("arguments", CHARS_MAX)
        return before[0] if before and is_text(before[0]) else self.text("command")


def is_text(value: object) -> bool:
    """Whether a value is text that can be shown and be part of a command line."""
    if not isinstance(value, str) or len(value) > CHARS_MAX or "\0" in value:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON allows
        return False
    return True
