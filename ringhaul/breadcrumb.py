"""Where this process is in its work, kept in memory that outlives it.

A process that hangs in compiled code or is killed can say nothing any more. So before each step it
leaves a breadcrumb: the stage, the file, the records and the column, in memory that is shared with
the worker's parent. A crumb costs a microsecond or two, and is left for each block and column, or
for each record where an attempt before was lost.

Without shared memory (`ringhaul` as a library) nothing is kept.
"""

from __future__ import annotations

import json
import struct
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

CRUMB_BYTES = 2048
#: Seconds (monotonic) of the last progress; 1: the step only computes; 1: the parent killed it.
_HEAD = struct.Struct("<d??")
_FILE_CHARS_MAX = 300
_COLUMN_CHARS_MAX = 100

#: Steps that compute alone: those that wait for disks, networks and servers may take long.
COMPUTING = ("convert", "transform", "decode")


class Crumb(NamedTuple):
    """What was read out of a process's memory."""

    since_s: float  #: monotonic
    computing: bool
    killed: bool  #: by the parent, because it made no progress
    where: dict[str, Any]


class Loss(NamedTuple):
    """An attempt that was lost, and where it was."""

    stage: str
    file: str
    column: str
    line: int  #: of the first record; 0: unknown
    first: int  #: ordinals [first, end) of the records; equal: unknown
    end: int
    stalled_s: int  #: without progress until its process was killed; 0: something else killed it

    @classmethod
    def unpack(cls, text: str) -> Loss:
        return cls(**json.loads(text))

    def pack(self) -> str:
        return json.dumps(self._asdict())

    @property
    def together(self) -> int:
        """How many records were at work together; 0: it was not about records."""
        return self.end - self.first if self.stage in COMPUTING else 0

    @property
    def alone(self) -> bool:
        """One record was at work, and no other."""
        return self.together == 1

    @property
    def words(self) -> str:
        """Where and how, for people."""
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

    def keep_in(self, memory: Any) -> None:
        """Leave crumbs in `memory` from now on: a writable buffer of `CRUMB_BYTES`."""
        self._memory = memory

    def progress(self) -> None:
        """Something was done."""
        if self._memory is not None:
            struct.pack_into("<d", self._memory, 0, time.monotonic())

    def at(self, stage: str, file: str, line: int = 0, first: int = 0, end: int = 0) -> None:
        """A stage begins for the records with the ordinals [first, end), from `line` on."""
        if self._memory is not None:
            file = file[-_FILE_CHARS_MAX:]
            self._where = {
                "stage": stage, "file": file, "line": line, "first": first, "end": end
            }  # fmt: skip
            self._leave()

    def stage(self, stage: str) -> None:
        """The same records are at another stage."""
        if self._memory is not None and self._where:
            self._where = {**self._where, "stage": stage, "column": ""}
            self._leave()

    def column(self, name: str) -> None:
        """The values of a column are converted now."""
        if self._memory is not None and self._where:
            self._where["stage"] = "convert"
            self._where["column"] = name[:_COLUMN_CHARS_MAX]
            self._leave()

    def end(self) -> None:
        """The unit is over."""
        if self._memory is not None:
            self._where = {}
            self._leave()

    def _leave(self) -> None:
        text = json.dumps(self._where).encode()[: CRUMB_BYTES - _HEAD.size - 1] + b"\0"
        computing = self._where.get("stage") in COMPUTING
        self._memory[_HEAD.size : _HEAD.size + len(text)] = text
        _HEAD.pack_into(self._memory, 0, time.monotonic(), computing, False)


def read_crumb(memory: Any) -> Crumb:
    """What a process left; nothing of where it was if it died while it wrote that down."""
    since_s, computing, killed = _HEAD.unpack_from(memory, 0)
    text = bytes(memory[_HEAD.size :]).split(b"\0", 1)[0]
    try:
        where = json.loads(text)
    except ValueError:
        where = {}
    return Crumb(since_s, computing, killed, where)


def mark_killed(memory: Any) -> None:
    """Note that the parent kills the process because of what its crumb says."""
    struct.pack_into("<?", memory, _HEAD.size - 1, True)


def suspects_of(losses: Sequence[Loss]) -> list[tuple[int, int]]:
    """Ordinals [first, end) of records among which one is that cost a process."""
    return [
        (loss.first, loss.end)
        for loss in losses
        if loss.stage in COMPUTING and loss.end > loss.first and not loss.alone
    ]


def culprits_of(losses: Sequence[Loss]) -> dict[int, Loss]:
    """Records that cost two processes: one among others, or alone, and one alone."""
    suspects, alone = suspects_of(losses), [loss for loss in losses if loss.alone]
    seen = Counter(loss.first for loss in alone)
    return {
        loss.first: loss
        for loss in alone
        if seen[loss.first] > 1 or any(first <= loss.first < end for first, end in suspects)
    }


#: Of this process.
TRAIL = Trail()
