"""Format numbers: which jobs a version of ringhaul can read.

A command writes the format of its job into the job's spec. A worker says in its heartbeat which
formats it reads, and leaves jobs of other formats to other workers. A format covers the spec, the
job's units and what commits leave of them in the ledger.

The number rises with a change that workers of earlier versions would misread: a rule that they
would not apply, a key with another meaning. A new key that older workers may ignore does not count.
Formats of messages need no number: a message holds a job, a unit and an epoch, and a new kind of
message is a task with a new name, which older workers hand back. Pure.
"""

from __future__ import annotations

from typing import NamedTuple

from ringhaul.errors import EXIT_FATAL, Terminal

#: The format of the jobs that this version creates.
JOB_FORMAT = 1
#: The format of versions that did not write its number yet.
FIRST = 1
#: The key of a job's format in its spec.
FORMAT_KEY = "job_format"


class Readable(NamedTuple):
    """The formats of jobs that a worker can read, both bounds included."""

    oldest: int = FIRST
    newest: int = FIRST

    def has(self, job_format: int) -> bool:
        """Return whether a job of this format can be read."""
        return self.oldest <= job_format <= self.newest

    def __str__(self) -> str:
        return str(self.newest) if self.oldest == self.newest else f"{self.oldest}-{self.newest}"

    @classmethod
    def parse(cls, text: str) -> Readable:
        """Return the formats that `str` wrote. Raises ValueError for other texts."""
        oldest, _, newest = text.partition("-")
        return cls(int(oldest), int(newest or oldest))


#: What this version reads.
READABLE = Readable(FIRST, JOB_FORMAT)


class OtherFormat(Terminal):
    """A job was created by a version whose format this version cannot read. Nothing is wrong with
    the job: others may read it."""

    exit_code = EXIT_FATAL

    def __init__(self, job_format: int) -> None:
        self.job_format = job_format
        newer = job_format > READABLE.newest
        which = "newer" if newer else "older"
        remedy = "upgrade ringhaul here" if newer else "use the version that created it"
        super().__init__(
            f"the job has format {job_format}, of {'a' if newer else 'an'} {which} version of "
            f"ringhaul; this version reads {READABLE}: {remedy}"
        )


def check_format(spec: object) -> None:
    """Raise `OtherFormat` unless this version reads the format that a job's spec states.

    Raises `ValueError` for a spec that states none as a number.
    """
    found = spec.get(FORMAT_KEY, FIRST) if isinstance(spec, dict) else FIRST
    if type(found) is not int or found < FIRST:
        raise ValueError(f"{found!r} is no format of a job")
    if not READABLE.has(found):
        raise OtherFormat(found)
