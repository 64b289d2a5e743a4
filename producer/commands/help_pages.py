"""Help pages: their colours, an example for each.

rich_click draws them, and prints them like any other text.
"""

from __future__ import annotations

import rich_click as click

from producer.outputs.plain_streams import Drawn


class HelpContext(click.RichContext):
    """A context whose help page keeps its colours. Nothing in the page comes from outside."""

    def get_help(self) -> str:
        return Drawn(super().get_help())


def draw_help() -> None:
    """Set up help pages. Call this before a command line is parsed."""
    click.RichCommand.context_class = HelpContext
    # A column of metavars would leave a third of 80 columns for the text.
    click.rich_click.OPTIONS_TABLE_COLUMN_TYPES = ["required", "opt_long", "opt_short", "help"]
    click.rich_click.OPTIONS_TABLE_HELP_SECTIONS = ["help", "default", "required", "metavar"]
