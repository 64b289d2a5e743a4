"""`ringhaul errors JOB`: list the rejected records, and export them so that they load again."""

from __future__ import annotations

import sys
from itertools import islice

import rich_click as click

from producer.commands.options import ledger_options
from producer.outputs.stdout import json_text
from producer.request.conflicts import refuse_together
from producer.request.options import LedgerPlace
from producer.request.values import given_options


@click.command("errors")
@click.argument("job", required=False)
@click.option(
    "--limit",
    type=click.IntRange(0),
    metavar="N",
    default=20,
    show_default=True,
    help="Show at most N.",
)
@click.option(
    "--export",
    type=click.Path(dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="Write the original records to FILE; -: stdout.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object per reject on stdout.")
@ledger_options
def errors_command(
    job: str | None, limit: int, export: str | None, as_json: bool, place: LedgerPlace
) -> int:
    """List or export rejected records: file, line, column and reason.

    Without JOB, those of the newest load, verify, lookup or exec. --export writes their original
    bytes, under the header of the source, so that the file can be mended and loaded again with the
    same options; records with another header go to a further file.
    """
    from producer.report.newest import newest_job
    from producer.report.rejects import export_rejects, not_kept, reject_lines, shown_rejects
    from producer.services.ledger import reading_ledger
    from producer.text import count_text
    from ringhaul.plain_text import as_line

    given = given_options()
    refuse_together(given)
    with reading_ledger(place) as ledger:
        if job is None:
            job = newest_job(
                ledger,
                wanted=lambda kind: kind.is_load or kind.runs_statements,
                none="no job of this broker has rejects: only loads, verify, lookup and exec do",
            )
        if export is not None:
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
        if as_json:
            for reject in islice(shown_rejects(ledger, job), limit if "limit" in given else None):
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
    from shutil import get_terminal_size
    from textwrap import wrap

    columns = get_terminal_size().columns
    return wrap(
        line, columns, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )


def _say(text: str) -> None:
    if text:
        print(text, file=sys.stderr)
