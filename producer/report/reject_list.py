"""The rejects of a job for `errors`: printed, or exported with words about what was written."""

from __future__ import annotations

import sys
from itertools import islice
from shutil import get_terminal_size
from textwrap import wrap

from producer.figures.rejects import export_rejects, not_kept, reject_lines, shown_rejects
from producer.outputs.stdout import json_text
from producer.text import count_text
from ringhaul.ledger.ledger import Ledger
from ringhaul.plain_text import as_line


def save_rejects(ledger: Ledger, job: str, export: str) -> int:
    """Write the records of a job's rejects to a file, or to standard output (-). Return the exit
    code. Raises as `export_rejects` does."""
    written = export_rejects(ledger, job, export)
    first, *further = written.files
    where = "standard output" if export == "-" else first
    text = f"{count_text(written.records, 'rejected record')} written to {where}"
    text += ", in place of an older file" if written.replaced else ""
    if further:
        text += f"; those with another header or format to {', '.join(further)}"
    _say(text)
    _say(not_kept(ledger, job))
    return 0


def print_rejects(ledger: Ledger, job: str, limit: int, *, limited: bool, as_json: bool) -> int:
    """Print a job's first rejects, at most `limit`, and return the exit code. `as_json`: print all
    rejects as JSON unless the user `limited` them."""
    if as_json:
        for reject in islice(shown_rejects(ledger, job), limit if limited else None):
            print(json_text(reject.to_json()))
        _say(not_kept(ledger, job))
        return 0
    for line in reject_lines(ledger, job, limit):
        for part in _fitted(as_line(line)):
            print(part)
    return 0


def _fitted(line: str) -> list[str]:
    """Break a line between words for a terminal; programs get it as one line."""
    if not sys.stdout.isatty():
        return [line]
    columns = get_terminal_size().columns
    return wrap(
        line, columns, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )


def _say(text: str) -> None:
    if text:
        print(text, file=sys.stderr)
