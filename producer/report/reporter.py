"""What a command that follows a job shows, and where."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from producer.outputs.stdout import json_text, print_message
from producer.report.outcome import Closing
from producer.request.options import Showing
from ringhaul.errors import EXIT_COMPLETE, OutputUnusable


@dataclass(frozen=True, kw_only=True)
class Shown:
    """How much is shown, and in which form."""

    progress: str = "auto"
    as_json: bool = False
    quiet: bool = False
    summary_file: Path | None = None

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
        )

    def say(self, text: str) -> None:
        """Print one line to stderr, unless the command is quiet."""
        if not self.quiet:
            self.warn(text)

    def warn(self, text: str) -> None:
        """Print one line to stderr that may require action."""
        print(text, file=sys.stderr, flush=True)


def print_closing(closing: Closing, shown: Shown) -> None:
    """Print the closing table to stderr, or the summary as JSON to stdout; and write it to a file
    if asked.

    A quiet command prints only how an unsuccessful job ended. Raises `OutputUnusable` if the file
    cannot be written (disk full).
    """
    if shown.as_json:
        print_message(json_text(closing.data))
    elif not shown.quiet:
        shown.say(closing.text)
    elif closing.exit_code != EXIT_COMPLETE:
        shown.warn(closing.alarm)
    if shown.summary_file is None:
        return
    from producer.outputs.whole_file import replacing  # few commands need it

    try:
        with replacing(str(shown.summary_file)) as out:
            out.write(json_text(closing.data, indent=2).encode() + b"\n")
    except OSError as error:
        raise OutputUnusable(
            f"{shown.summary_file}: the summary cannot be written: {error.strerror or error}"
        ) from error
