"""`ringhaul doctor`: check that everything is ready for jobs."""

from __future__ import annotations

import time
from typing import Any

import rich_click as click

from producer.commands.options import connection_options


@click.command("doctor")
@click.option("--keyspace", metavar="NAME", help="Check the replication of this keyspace [all].")
@click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="PATH|URL",
    help="A file, glob, folder or URL that workers must see. May be repeated.",
)
@click.option(
    "-o", "--output", metavar="FOLDER|URL", help="A folder or URL that workers must write to."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@connection_options
def doctor_command(
    keyspace: str | None,
    inputs: tuple[str, ...],
    output: str | None,
    as_json: bool,
    config_file: Any,
    **flags: Any,
) -> int:
    """Check broker, cluster, workers and this host, and say what to do.

    Changes nothing."""
    started_at = time.monotonic()
    from producer.doctor.run import run_doctor

    return run_doctor(
        flags, config_file, keyspace, inputs, output, as_json=as_json, started_at=started_at
    )
