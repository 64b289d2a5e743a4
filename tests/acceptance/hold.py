"""Hold a job half way: its workers keep units back until the test lets them go."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Self

VARIABLE = "_RINGHAUL_FAILPOINT"
POINT = "hold::"


class Hold:
    """The switch of the failpoint `hold` (tasks/child/failpoints.py) of some workers."""

    def __init__(self, file: Path) -> None:
        """`file`: the path that the workers look at; it must not exist."""
        self._file = file

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Self:
        """Return the switch that workers with this environment obey."""
        return cls(Path(environment[VARIABLE].removeprefix(POINT)))

    @property
    def env(self) -> dict[str, str]:
        """Return the environment of workers that obey this switch."""
        return {VARIABLE: f"{POINT}{self._file}"}

    def from_unit(self, first: int) -> None:
        """Hold every unit whose number is at least `first` (the first unit is 0)."""
        # The workers must not read a file without its number.
        new = self._file.with_suffix(".new")
        new.write_text(str(first))
        new.replace(self._file)

    def release(self) -> None:
        """Let all units go on."""
        self._file.unlink(missing_ok=True)
