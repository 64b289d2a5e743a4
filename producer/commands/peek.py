"""`ringhaul peek`: options in, exit code out. The work is in `producer.run.rows`."""

from __future__ import annotations

from typing import Any

from producer.commands.record_command import record_command
from producer.options.reads import PeekOptions


@record_command("peek", PeekOptions)
def peek_command(**params: Any) -> int:
    """Show a few rows of a table, now.

    They come directly from the nodes, in the order of their tokens, without a job. On a terminal, a
    table that is too wide is shown with a line for each value.
    """
    from producer.run.rows import run_peek

    return run_peek(PeekOptions(**params))
