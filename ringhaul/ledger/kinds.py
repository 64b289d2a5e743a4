"""The kinds of job, and what each can do."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from ringhaul.ledger.labels import KIND_LABEL


class ClosingStep(StrEnum):
    """The step that publishes a complete job; a command takes it, once."""

    NOTHING = "nothing"  #: there is none to take
    RESULT = "result"  #: a count's or query's, printed or written to a file
    MANIFEST = "manifest"  #: the list of the files with rows, or one file made of them
    DESTINATION = "destination"  #: SSTables are moved, or folders of imports removed


class JobKind(StrEnum):
    """What a job does. Its value is in the job's spec and labels, and is the command's name."""

    LOAD = "load"
    VERIFY = "verify"
    UNLOAD = "unload"
    COUNT = "count"
    QUERY = "query"
    LOOKUP = "lookup"
    EXEC = "exec"

    @classmethod
    def of_labels(cls, labels: Mapping[str, str]) -> JobKind:
        """The kind of a job with these labels. Jobs of early versions were loads, and said nothing.

        Raises ValueError for a kind of a later version.
        """
        return cls(labels.get(KIND_LABEL, cls.LOAD))

    @property
    def is_load(self) -> bool:
        """Whether it reads files as a load does: its rows are written or compared."""
        return self in (JobKind.LOAD, JobKind.VERIFY)

    @property
    def scans(self) -> bool:
        """Whether its units are token ranges, all known when it is created."""
        return self in (JobKind.UNLOAD, JobKind.COUNT, JobKind.QUERY)

    @property
    def runs_statements(self) -> bool:
        """Whether it runs one statement for each record of values."""
        return self in (JobKind.LOOKUP, JobKind.EXEC)

    @property
    def has_result(self) -> bool:
        """Whether the job ends with one result, folded from its units' results."""
        return self in (JobKind.COUNT, JobKind.QUERY)

    @property
    def writes_rows(self) -> bool:
        """Whether the job writes rows to files or to its command's standard output."""
        return self is JobKind.UNLOAD or self.runs_statements


#: All kinds, also as texts: an `in` of an enum takes no text before Python 3.12.
KINDS = frozenset(JobKind)
