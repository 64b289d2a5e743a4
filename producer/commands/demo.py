"""`ringhaul demo`: start a local stack, load a sample file, and compare the table with the file."""

from __future__ import annotations

import rich_click as click


@click.command("demo")
@click.option(
    "--rows",
    type=click.IntRange(1),
    metavar="N",
    default=200_000,
    show_default=True,
    help="Rows of the sample.",
)
@click.option(
    "-c",
    "--workers",
    type=click.IntRange(2),
    metavar="N",
    default=2,
    show_default=True,
    help="Embedded worker processes.",
)
def demo_command(rows: int, workers: int) -> int:
    """Load a generated sample into a throw-away Cassandra and verify every row of it."""
    from producer.commands.demo_run import run_demo

    return run_demo(rows, workers)
