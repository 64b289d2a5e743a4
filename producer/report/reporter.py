"""What a command that follows a job shows, and where."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from producer.figures.outcome import Closing
from producer.figures.summary import read_closing
from producer.notes import Note
from producer.options.job import Showing
from producer.outputs.stdout import json_text, print_message
from producer.outputs.whole_file import replacing
from producer.tables import screen_width, wrap_figures
from ringhaul.errors import EXIT_COMPLETE, OutputUnusable
from ringhaul.ledger.audit import JobDamaged
from ringhaul.plain_text import lines_of

if TYPE_CHECKING:
    from ringhaul.ledger.ledger import Ledger


@dataclass(frozen=True, kw_only=True)
class Shown:
    """How much is shown, and in which form."""

    progress: str = "auto"
    as_json: bool = False
    quiet: bool = False
    summary_file: Path | None = None
    report_place: Path | None = None  #: a file, or a folder that gets JOB.html

    @classmethod
    def from_options(cls, options: Showing) -> Shown:
        """Read it from the options; `--json` makes progress JSON as well, unless --progress is
        given."""
        auto = "json" if options.as_json else "auto"
        return cls(
            progress=auto if options.progress == "auto" else options.progress,
            as_json=options.as_json,
            quiet=options.quiet,
            summary_file=options.summary,
            report_place=options.report,
        )

    def show(self, notes: Iterable[Note]) -> None:
        """Print notes to stderr, a line each; a quiet command prints only warnings."""
        for note in notes:
            (self.warn if note.warns else self.say)(note.text)

    def say(self, text: str) -> None:
        """Print one line to stderr, unless the command is quiet."""
        if not self.quiet:
            self.warn(text)

    def warn(self, text: str) -> None:
        """Print one line to stderr that may require action."""
        print(text, file=sys.stderr, flush=True)


def close_job(ledger: Ledger, job_id: str, shown: Shown, *, interrupted: bool = False) -> int:
    """Say how a job ended, or how it stands, and write its report if the user wants it; return the
    exit code. `interrupted`: the job was cancelled by Ctrl-C in this command.

    Raises `OutputUnusable` if a file cannot be written; the outcome is reported before.
    """
    closing = read_closing(ledger, job_id, interrupted=interrupted)
    print_closing(closing, shown)
    if shown.report_place is not None:
        from producer.report.job_report import write_report  # what few commands need to import

        try:
            path = write_report(ledger, job_id, shown.report_place, closing=closing)
        except JobDamaged:
            shown.warn(" no report: the figures of the job are lost")
            return closing.exit_code
        shown.say(f" report   {path}")
    return closing.exit_code


def print_closing(closing: Closing, shown: Shown) -> None:
    """Print the closing table to stderr, or the summary as JSON to stdout; also write the summary
    to the `summary_file`, if any.

    A quiet command prints only how an unsuccessful job ended. Raises `OutputUnusable` if the file
    cannot be written (disk full).
    """
    if shown.as_json:
        print_message(json_text(closing.data))
    elif not shown.quiet:
        width = screen_width(sys.stderr)
        figures = (part for line in closing.figures for part in wrap_figures(line, width))
        shown.say(lines_of([*figures, *closing.verdict]))
    elif closing.exit_code != EXIT_COMPLETE:
        shown.warn(closing.alarm)
    if shown.summary_file is None:
        return
    try:
        with replacing(str(shown.summary_file)) as out:
            out.write(json_text(closing.data, indent=2).encode() + b"\n")
    except OSError as error:
        raise OutputUnusable(
            f"{shown.summary_file}: the summary cannot be written: {error.strerror or error}"
        ) from error
