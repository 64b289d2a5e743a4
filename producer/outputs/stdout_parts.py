"""Copy the parts of an `unload -o -` to standard output as their units are committed.

Workers on this host write the parts to a spool folder; the command copies each part once and
removes it.
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
from ringhaul.formats.write.options import OutputFormat
from ringhaul.ledger.job_status import JobStatus
from ringhaul.ledger.ledger import Ledger
from ringhaul.optional_pandas import put_off_pandas
from ringhaul.output.parts import PartInfo

COPY_BYTES = 1 << 20


class StdoutClosed(Terminal):
    """The reader of our standard output, such as `head`, closed it."""

    exit_code = EXIT_CANCELLED

    def __init__(self) -> None:
        super().__init__("standard output was closed before all rows were written: cancelled")


class StdoutParts:
    """Copies the parts of committed units, each unit once, and in token order if required."""

    def __init__(
        self,
        folder: Path,
        parts_of: Callable[[bytes], list[PartInfo]],
        beginning: bytes,
        *,
        in_order: bool,
    ) -> None:
        """`parts_of` returns the parts in `folder` that a unit's entry in the ledger names.
        `beginning`: the bytes before the first part, see the function of that name."""
        self._folder, self._parts_of = folder, parts_of
        self._beginning, self._in_order = beginning, in_order
        self._copied: set[int] = set()
        self._next = 0

    def look(self, ledger: Ledger, status: JobStatus, *, last: bool = False) -> None:
        """Copy the units committed since the last call; if in order, only up to the first gap. The
        `last` call copies the rest too, since missing units will not be committed any more.

        Raises `StdoutClosed` and `OutputUnusable`, after cancelling the job, whose output can no
        longer be written.
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
        """Copy the rest, including the units that follow a given-up unit."""
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
    """Return the bytes before the parts: a file of the format without rows, with the column names
    if `header`. In a compressed format it is never empty, so that the output for a table without
    rows is a valid file too."""
    from ringhaul.formats.write.writer import open_writer  # most commands write no rows

    put_off_pandas()
    stream = io.BytesIO()
    names, types = zip(*columns, strict=True)
    open_writer(replace(fmt, header=True) if header else fmt, stream, names, types).close()
    return stream.getvalue()
