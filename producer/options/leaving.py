"""Options that are to go: they warn for two minor versions, then are refused, with what replaces
them.

    escape: str = option("--old", ..., leaving=Leaving(since="1.2", instead="--new"))
"""

from __future__ import annotations

import re
from typing import NamedTuple

#: Minor versions in which an option still works, from the version on that first warns.
MINORS_KEPT = 2
_VERSION = re.compile(r"(\d+)\.(\d+)")


class Leaving(NamedTuple):
    """When an option first warned, and what to use instead."""

    since: str  #: A minor version, such as `1.2`.
    instead: str  #: What to write, such as `--new`, or `leave it out`.

    @property
    def goes_with(self) -> str:
        """The minor version that refuses the option, as the next major version does."""
        major, minor = _parts(self.since)
        return f"{major}.{minor + MINORS_KEPT}"

    def is_gone(self, version: str) -> bool:
        """Whether a version of ringhaul refuses the option."""
        return _parts(version) >= _parts(self.goes_with) or (
            _parts(version)[0] > _parts(self.since)[0]
        )

    def words(self, flag: str, version: str) -> str:
        """Return the warning, or the refusal, for an option that was given."""
        if self.is_gone(version):
            return f"{flag} is gone since {self.goes_with}: use {self.instead}"
        return f"{flag} goes with {self.goes_with}: use {self.instead}"


def _parts(version: str) -> tuple[int, int]:
    """Return major and minor version. Raises ValueError for a text that has none."""
    found = _VERSION.match(version)
    if found is None:
        raise ValueError(f"no version such as 1.2: {version!r}")
    return int(found[1]), int(found[2])
