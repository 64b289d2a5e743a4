"""A finding: what was checked, what was seen, and what to do. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from ringhaul.errors import EXIT_COMPLETE, EXIT_FATAL, EXIT_REJECTS


class State(StrEnum):
    """How a check came out."""

    OK = "ok"
    WARNING = "warn"  #: jobs may run, but something should be changed
    FAULT = "fail"  #: jobs fail, or may lose or hide rows
    UNCHECKED = "unchecked"  #: it could not be seen; `text` says why


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One check and its result."""

    about: str  #: `machine`, `broker`, `cluster`, `workers` or `files`
    check: str
    state: State
    text: str  #: what was seen
    advice: str = ""  #: what to do; empty: nothing


@dataclass(frozen=True)
class Section:
    """What a group of checks is about; makes their findings."""

    about: str

    def ok(self, check: str, text: str) -> Finding:
        return self._finding(check, State.OK, text)

    def warning(self, check: str, text: str, advice: str) -> Finding:
        return self._finding(check, State.WARNING, text, advice)

    def fault(self, check: str, text: str, advice: str = "") -> Finding:
        """`advice`: empty if the text says what to do, as messages of errors do."""
        return self._finding(check, State.FAULT, text, advice)

    def unchecked(self, check: str, text: str, advice: str = "") -> Finding:
        return self._finding(check, State.UNCHECKED, text, advice)

    def _finding(self, check: str, state: State, text: str, advice: str = "") -> Finding:
        return Finding(about=self.about, check=check, state=state, text=text, advice=advice)


MACHINE = Section("machine")
BROKER = Section("broker")
CLUSTER = Section("cluster")
WORKERS = Section("workers")
FILES = Section("files")
#: In the order in which they are shown.
SECTIONS = (MACHINE, BROKER, CLUSTER, WORKERS, FILES)


def exit_code(findings: Iterable[Finding]) -> int:
    """Return 4 with a fault, 1 with a warning, otherwise 0. What is not checked does not count."""
    states = {finding.state for finding in findings}
    if State.FAULT in states:
        return EXIT_FATAL
    return EXIT_REJECTS if State.WARNING in states else EXIT_COMPLETE
