"""`ringhaul cancel JOB` and `ringhaul resume JOB`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import rich_click as click

from producer.options import config_option, connection_options, following_options


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
@following_options
@connection_options
def resume_command(**options: Any) -> int:
    """Run the units of an ended job that are not done. Its options live with the job."""
    from producer.run_resume import run_resume

    return run_resume(options)
