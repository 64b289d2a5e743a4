"""`unload -o -`: the parts of an unload to standard output, as their units are committed.

Workers on this host write parts to a spool folder; this end copies each part once and removes it.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from producer.outputs.stdout import let_go_of_stdout
from ringhaul.cql.types import CqlType
from ringhaul.errors import EXIT_CANCELLED, OutputUnusable, Terminal
from ringhaul.formats.write import OutputFormat, open_writer
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.reading import JobStatus
from ringhaul.output.parts import PartInfo

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
        beginning: bytes,
        *,
        in_order: bool,
    ) -> None:
        """`parts_of`: the parts in `folder` that a unit left in the ledger. `beginning`: what
        comes before the first, see the function of that name."""
        self._folder, self._parts_of = folder, parts_of
        self._beginning, self._in_order = beginning, in_order
        self._copied: set[int] = set()
        self._next = 0

    def look(self, ledger: Ledger, status: JobStatus, *, last: bool = False) -> None:
        """Copy the units that were committed since the last look, in order as far as there is no
        gap; at the `last` look what is missing will not come any more, and the rest follows.

        Raises `StdoutClosed` and `OutputUnusable`, after cancelling the job that nobody reads any
        more.
        """
        try:
            if self._beginning:
                _write(self._beginning)
                self._beginning = b""
            for unit, extra in ledger.extras(status.job, exclude=self._copied):
                if self._in_order and unit != self._next and not last:
                    break
                for part in self._parts_of(extra):
                    self._copy(part)
                self._copied.add(unit)
                self._next = unit + 1
            _write(b"", flush=True)
        except (StdoutClosed, OutputUnusable):
            let_go_of_stdout()
            ledger.cancel(status.job)
            raise

    def end(self, ledger: Ledger, status: JobStatus) -> None:
        """Copy what is left, behind units that were given up, too."""
        self.look(ledger, status, last=True)

    def _copy(self, part: PartInfo) -> None:
        path = self._folder / part.name
        with path.open("rb") as file:
            while piece := file.read(COPY_BYTES):
                _write(piece)
        path.unlink()


def _write(data: bytes, *, flush: bool = False) -> None:
    try:
        sys.stdout.buffer.write(data)
        if flush:
            sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise StdoutClosed from None
    except OSError as error:
        raise OutputUnusable(
            f"standard output cannot be written: {error.strerror or error}; the job is cancelled"
        ) from error


def beginning(fmt: OutputFormat, columns: Sequence[tuple[str, CqlType]], *, header: bool) -> bytes:
    """What comes before the parts: a file of their format without rows, its columns' names where
    there is to be a `header`. Of a compressed format that is something in any case, so that a table
    without rows gives a file that can be read, too."""
    stream = io.BytesIO()
    names, types = zip(*columns, strict=True)
    open_writer(replace(fmt, header=True) if header else fmt, stream, names, types).close()
    return stream.getvalue()
