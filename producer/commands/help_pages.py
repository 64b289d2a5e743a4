"""Help pages: their colours, their groups of options, an example for each.

rich_click draws them, and prints them like any other text.
"""

from __future__ import annotations

import rich_click as click

from producer.outputs.plain_streams import Drawn

#: Heading -> options of any command; other options come last, under "Options".
OPTION_GROUPS = {
    "Rows": (
        *(
            "--urlfile",
            "--keyspace",
            "--table",
            "--query",
            "--columns",
            "--where",
            "--keys",
            "--key",
        ),
        *("--params", "--range", "--by", "--top", "--mapping", "--skip-columns", "--transform"),
        *("--skip-rows", "--max-rows", "--nulls", "--ttl", "--ttl-field"),
        *("--timestamp", "--timestamp-field"),
    ),
    "New table": ("--create-table", "--primary-key", "--yes"),
    "Output": ("--output", "--max-rows-per-file", "--max-file-size", "--order"),
    "Format": (
        *("--format", "--header", "--delimiter", "--quote", "--escape", "--null"),
        *("--dialect", "--escape-style", "--line-end", "--comment", "--encoding", "--compression"),
        *("--allow-extra-fields", "--allow-missing-fields", "--allow-nul"),
        *("--timestamp-format", "--epoch-unit", "--timezone", "--true-words", "--false-words"),
        *("--blob", "--decimal-sep", "--thousands-sep"),
    ),
    "Format of the input": (
        *("--values-format", "--values-header", "--values-delimiter", "--values-quote"),
        *("--values-escape", "--values-dialect", "--values-escape-style", "--values-line-end"),
        *("--values-comment", "--values-null", "--values-encoding", "--values-allow-nul"),
        *("--values-timestamp-format", "--values-epoch-unit", "--values-timezone"),
    ),
    "Job": (
        *("--consistency", "--strategy", "--unit-size", "--max-errors", "--rate", "--priority"),
        *("--skip-failed-ranges", "--workers", "--dry-run", "--detach", "--job-id"),
        *("--on-interrupt", "--profile"),
    ),
    "Display": ("--progress", "--json", "--quiet", "--summary", "--report"),
    "Cluster and broker": (
        *("--contact-points", "--port", "--local-dc", "--user", "--password"),
        *("--password-file", "--broker", "--config"),
    ),
}
#: Commands that run a job have enough options for groups.
_GROUPED = ("load", "verify", "unload", "count", "query", "lookup", "exec", "resume")


class HelpContext(click.RichContext):
    """A context whose help page keeps its colours. Nothing in the page comes from outside."""

    def get_help(self) -> str:
        return Drawn(super().get_help())


def draw_help() -> None:
    """Set up help pages. Call this before a command line is parsed."""
    click.RichCommand.context_class = HelpContext
    # A column of metavars would leave a third of 80 columns for the text.
    click.rich_click.SHOW_METAVARS_COLUMN = False
    click.rich_click.APPEND_METAVARS_HELP = True
    for command in _GROUPED:
        click.rich_click.OPTION_GROUPS[f"ringhaul {command}"] = [
            {"name": heading, "options": list(options)}
            for heading, options in OPTION_GROUPS.items()
        ]
