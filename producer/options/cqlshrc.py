"""What a cqlshrc says, as far as it applies here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Cqlshrc:
    """What a cqlshrc says that applies here."""

    path: Path
    settings: Mapping[str, str] = field(default_factory=dict)  #: dotted key -> value
    password: str | None = field(default=None, repr=False)
    keyspace: str | None = None
    #: Section of COPY in lower case -> NAME in upper case -> value.
    sections: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def user(self) -> str | None:
        return self.settings.get("cluster.user")

    def __fspath__(self) -> str:
        return str(self.path)

    def options_of(self, table: str, *, reads: bool) -> dict[str, str]:
        """Return the options of COPY FROM, or of COPY TO, for a table. As in cqlsh, a section for a
        table wins over one for all, and one for a direction over one for both."""
        direction = "copy-from" if reads else "copy-to"
        found: dict[str, str] = {}
        for section in ("copy", direction, f"copy:{table}", f"{direction}:{table}"):
            found |= self.sections.get(section, {})
        return found
