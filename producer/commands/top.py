"""`ringhaul top`: jobs, hosts and the slowest units, live."""

from __future__ import annotations

import rich_click as click

from producer.commands.options import ledger_options
from producer.options.connection import LedgerPlace


@click.command("top")
@click.option("--once", is_flag=True, help="Watch for a second, print the figures, and end.")
@click.option("--json", "as_json", is_flag=True, help="JSON Lines, one document per refresh.")
@ledger_options
def top_command(once: bool, as_json: bool, place: LedgerPlace) -> int:
    """Watch jobs, hosts and the slowest units, every second.

    q or Ctrl-C ends it.
    """
    from producer.run.top import run_top

    return run_top(place, once=once, as_json=as_json)
