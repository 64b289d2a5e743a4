"""Help pages in colours: rich_click draws them, and prints them as it would print any text."""

from __future__ import annotations

import rich_click as click

from producer.outputs.plain_streams import Drawn


class HelpContext(click.RichContext):
    """A context whose help page keeps its colours. Nothing in it comes from outside."""

    def get_help(self) -> str:
        return Drawn(super().get_help())


def draw_help() -> None:
    """Call this before a command line is parsed. Every command makes a context of its own."""
    click.RichCommand.context_class = HelpContext
