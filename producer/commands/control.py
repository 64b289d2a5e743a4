"""`ringhaul cancel JOB` and `ringhaul resume JOB`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import rich_click as click

from producer.commands.load import PROGRESS_KINDS
from producer.options import config_option, connection_options


@click.command("cancel")
@click.argument("job")
@config_option
def cancel_command(job: str, config_file: Path | None) -> int:
    """End a running job. Its workers stop within seconds; `resume` goes on from there."""
    from producer.ledgers import reading_ledger
    from ringhaul.ledger.states import JobState

    with reading_ledger(config_file) as ledger:
        state = ledger.cancel(job)
    click.echo(f"{job} is {state}", err=True)
    return 0 if state is JobState.CANCELLED else 2


@click.command("resume")
@click.argument("job")
@click.option("--max-errors", metavar="N|N%", help="Rejects that are allowed from now on.")
@click.option("-c", "--workers", type=click.IntRange(1), help="Embedded worker processes [cores].")
@click.option(
    "--on-interrupt",
    type=click.Choice(["cancel", "detach"]),
    help="What Ctrl-C does [embedded: cancel, otherwise detach].",
)
@click.option(
    "--progress",
    type=click.Choice(PROGRESS_KINDS),
    default="auto",
    show_default=True,
    help="auto: a bar on a terminal, else a line every 30 s.",
)
@click.option("--json", "as_json", is_flag=True, help="JSON Lines on stdout.")
@click.option("-q", "--quiet", is_flag=True, help="Only errors.")
@click.option(
    "--summary", type=click.Path(dir_okay=False, path_type=Path), help="Write the summary as JSON."
)
@connection_options
def resume_command(**options: Any) -> int:
    """Run the units of an ended job that are not done. Its options live with the job."""
    from producer.run_resume import run_resume

    return run_resume(options)
