"""`unload -o -`: the parts of an unload to standard output, as their units are committed.

Workers on this host write parts to a spool folder; this end copies each part once and removes it.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from ringhaul.cql.types import CqlType
from ringhaul.errors import EXIT_CANCELLED, Terminal
from ringhaul.formats.write import OutputFormat, open_writer
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.reading import JobStatus
from ringhaul.read.parts import PartInfo

COPY_BYTES = 1 << 20


class StdoutClosed(Terminal):
    """Whoever read our standard output went away, `head` for instance."""

    exit_code = EXIT_CANCELLED

    def __init__(self) -> None:
        super().__init__("standard output was closed before all rows were written: cancelled")


class StdoutParts:
    """Copies what is committed, each unit once; in token order if the job asks for it."""

    def __init__(
        self,
        folder: Path,
        parts_of: Callable[[bytes], list[PartInfo]],
        header: bytes,
        *,
        in_order: bool,
    ) -> None:
        """`parts_of`: the parts in `folder` that a unit left in the ledger. `header`: what comes
        before the first; the parts have none."""
        self._folder, self._parts_of = folder, parts_of
        self._header, self._in_order = header, in_order
        self._copied: set[int] = set()
        self._next = 0

    def look(self, ledger: Ledger, status: JobStatus) -> None:
        """Copy the units that were committed since the last look.

        Raises `StdoutClosed`, after cancelling the job that nobody reads any more.
        """
        try:
            if self._header:
                sys.stdout.buffer.write(self._header)
                self._header = b""
            for unit, extra in ledger.extras(status.job, exclude=self._copied):
                if self._in_order and unit != self._next:
                    break
                for part in self._parts_of(extra):
                    self._copy(part)
                self._copied.add(unit)
                self._next = unit + 1
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            # The interpreter flushes standard output at its end: that would fail once more.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ledger.cancel(status.job)
            raise StdoutClosed from None

    def end(self, ledger: Ledger, status: JobStatus) -> None:
        """Copy what is left."""
        self.look(ledger, status)

    def _copy(self, part: PartInfo) -> None:
        path = self._folder / part.name
        with path.open("rb") as file:
            while piece := file.read(COPY_BYTES):
                sys.stdout.buffer.write(piece)
        path.unlink()


def header_bytes(fmt: OutputFormat, names: Sequence[str], types: Sequence[CqlType]) -> bytes:
    """A file of this format without rows: nothing but the names of its columns."""
    stream = io.BytesIO()
    open_writer(fmt, stream, names, types).close()
    return stream.getvalue()
