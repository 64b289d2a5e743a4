"""Record where this process is in its work, in memory that outlives it.

A process that hangs in compiled code or is killed cannot report where it was. So before each step
it leaves a breadcrumb (stage, file, records and column) in memory shared with the worker's parent.
A crumb costs a microsecond or two. Each block and column leaves a crumb, or each record if an
earlier attempt was lost.

Without shared memory (`ringhaul` as a library) nothing is recorded.
"""

from __future__ import annotations

import json
import struct
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

CRUMB_BYTES = 2048
#: Time of the last progress (monotonic seconds); seconds spent waiting for rate limits; whether the
#: step only computes; whether the parent killed the process.
_HEAD = struct.Struct("<dd??")
_WAITED_AT = struct.calcsize("<d")
_FILE_CHARS_MAX = 300
_COLUMN_CHARS_MAX = 100

#: Steps that only compute. Others wait for disks, networks or servers, and may take long.
COMPUTING = ("convert", "transform", "decode")


class Crumb(NamedTuple):
    """A breadcrumb, as read from a process's memory."""

    since_s: float  #: time of the last progress, monotonic
    waited_s: float  #: time that the process has waited for rate limits since its start
    computing: bool
    killed: bool  #: whether the parent killed it because it made no progress
    where: dict[str, Any]


class Loss(NamedTuple):
    """A lost attempt, and where it was in its work."""

    stage: str
    file: str
    column: str
    line: int  #: line of the first record; 0: unknown
    first: int  #: ordinals [first, end) of the records; equal: unknown
    end: int
    stalled_s: int  #: time without progress that its process was killed for; 0: killed otherwise

    @classmethod
    def unpack(cls, text: str) -> Loss:
        return cls(**json.loads(text))

    def pack(self) -> str:
        return json.dumps(self._asdict())

    @property
    def together(self) -> int:
        """The number of records being processed together; 0 if the stage has no records."""
        return self.end - self.first if self.stage in COMPUTING else 0

    @property
    def alone(self) -> bool:
        """Whether exactly one record was being processed."""
        return self.together == 1

    @property
    def words(self) -> str:
        """Describe for people where and how the attempt was lost."""
        what = {"convert": "converting", "transform": "transforming", "decode": "decoding"}.get(
            self.stage, f"at stage {self.stage} of"
        )
        records = ""
        if self.end > self.first and self.line:
            last = self.line + self.end - self.first - 1
            records = f"line {self.line:,}" if last == self.line else f"lines {self.line:,} to "
            records += "" if last == self.line else f"about {last:,}"
            records = f" {records} of"
        elif self.line:
            records = f" line {self.line:,} and later of"
        column = f", column {self.column}" if self.column else ""
        place = f"{what}{records} {self.file}{column}"
        if self.stalled_s:
            return f"no progress for {self.stalled_s} s while {place}"
        return f"its process was killed while {place}"


class Trail:
    """The breadcrumbs of this process."""

    def __init__(self) -> None:
        self._memory: Any = None
        self._where: dict[str, Any] = {}
        self._waited_s = 0.0

    def keep_in(self, memory: Any) -> None:
        """Leave crumbs in `memory` from now on: a writable buffer of `CRUMB_BYTES`."""
        self._memory = memory

    def progress(self) -> None:
        """Record that the unit made progress now."""
        if self._memory is not None:
            struct.pack_into("<d", self._memory, 0, time.monotonic())

    def waited(self, seconds: float) -> None:
        """Record time spent waiting for a rate limit."""
        self._waited_s += seconds
        if self._memory is not None:
            struct.pack_into("<d", self._memory, _WAITED_AT, self._waited_s)

    def at(self, stage: str, file: str, line: int = 0, first: int = 0, end: int = 0) -> None:
        """Record that a stage begins for records with ordinals [first, end), from `line` on."""
        if self._memory is not None:
            file = file[-_FILE_CHARS_MAX:]
            self._where = {
                "stage": stage, "file": file, "line": line, "first": first, "end": end
            }  # fmt: skip
            self._leave()

    def stage(self, stage: str) -> None:
        """Record that the same records enter another stage."""
        if self._memory is not None and self._where:
            self._where = {**self._where, "stage": stage, "column": ""}
            self._leave()

    def column(self, name: str) -> None:
        """Record that conversion of this column's values begins."""
        if self._memory is not None and self._where:
            self._where["stage"] = "convert"
            self._where["column"] = name[:_COLUMN_CHARS_MAX]
            self._leave()

    def end(self) -> None:
        """Record that the unit has ended."""
        if self._memory is not None:
            self._where = {}
            self._leave()

    def _leave(self) -> None:
        text = json.dumps(self._where).encode()[: CRUMB_BYTES - _HEAD.size - 1] + b"\0"
        computing = self._where.get("stage") in COMPUTING
        self._memory[_HEAD.size : _HEAD.size + len(text)] = text
        _HEAD.pack_into(self._memory, 0, time.monotonic(), self._waited_s, computing, False)


def read_crumb(memory: Any) -> Crumb:
    """Read the crumb a process left. `where` is empty if it died while writing the crumb."""
    since_s, waited_s, computing, killed = _HEAD.unpack_from(memory, 0)
    text = bytes(memory[_HEAD.size :]).split(b"\0", 1)[0]
    try:
        where = json.loads(text)
    except ValueError:
        where = {}
    return Crumb(since_s, waited_s, computing, killed, where)


def mark_killed(memory: Any) -> None:
    """Record in the crumb that the parent kills the process for lack of progress."""
    struct.pack_into("<?", memory, _HEAD.size - 1, True)


def suspects_of(losses: Sequence[Loss]) -> list[tuple[int, int]]:
    """Return ranges of ordinals [first, end) with a record that crashed or stalled a process."""
    return [
        (loss.first, loss.end)
        for loss in losses
        if loss.stage in COMPUTING and loss.end > loss.first and not loss.alone
    ]


def culprits_of(losses: Sequence[Loss]) -> dict[int, Loss]:
    """Return the records that crashed or stalled two processes, at least once of them alone."""
    suspects, alone = suspects_of(losses), [loss for loss in losses if loss.alone]
    seen = Counter(loss.first for loss in alone)
    return {
        loss.first: loss
        for loss in alone
        if seen[loss.first] > 1 or any(first <= loss.first < end for first, end in suspects)
    }


#: The breadcrumbs of this process.
TRAIL = Trail()
