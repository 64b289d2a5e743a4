"""Help pages: their colours, their groups of options, an example for each.

rich_click draws them, and prints them like any other text.
"""

from __future__ import annotations

import rich_click as click

from producer.outputs.plain_streams import Drawn

#: How records are written to files, for those of rows and for those of a statement's values.
_RECORDS = (
    *(
        "--format",
        "--format-profile",
        "--header",
        "--header-at",
        "--delimiter",
        "--quote",
        "--quote-all",
    ),
    *("--escape", "--null", "--null-quoted", "--empty", "--empty-word", "--fill-empty"),
    *("--fill-quoted", "--trim", "--dialect", "--escape-style"),
    *("--line-end", "--comment", "--encoding", "--compression", "--columns-at", "--layout"),
    *(
        "--json-layout",
        "--json-nulls",
        "--decimal-type",
        "--allow-extra-fields",
        "--allow-missing-fields",
    ),
    "--allow-nul",
)
#: How values are spelt in them.
_SPELLING = (
    *("--timestamp-format", "--date-format", "--time-format", "--epoch-unit", "--epoch"),
    *("--timezone", "--clock-changes", "--locale", "--true-words", "--false-words", "--blob"),
    *("--decimal-sep", "--thousands-sep", "--accept", "--overflow", "--rounding"),
)
#: How records are written, but never read.
_ONLY_WRITTEN = ("--quote-all", "--compression", "--json-nulls", "--decimal-type")
#: Which fields of a statement's values are used, and of which records.
_OF_VALUES = ("--columns", "--mapping", "--skip-columns", "--skip-rows", "--max-rows", "--rows-per")

#: Heading -> options of any command; other options come last, under "Options".
OPTION_GROUPS = {
    "Rows": (
        *(
            "--urlfile",
            "--keyspace",
            "--table",
            "--hive-partitioning",
            "--query",
            "--columns",
            "--where",
        ),
        *("--keys", "--key", "--params", "--range", "--by", "--top", "--times", "--mapping"),
        *("--skip-columns", "--transform", "--skip-rows", "--max-rows", "--rows-per", "--nulls"),
        *("--ttl", "--ttl-field", "--timestamp", "--timestamp-field", "--exact-timestamps"),
        *("--preserve-timestamp", "--preserve-ttl"),
    ),
    "New table": ("--create-table", "--primary-key", "--type", "--yes"),
    "SSTables": ("--to-sstables", "--via", "--sstable-size", "--sstable-version"),
    "Trials": ("--budget", "--in-place", "--write", "--no-write", "--overwrite"),
    "Output": (
        *("--output", "--single-file", "--file-name-format", "--max-rows-per-file"),
        *("--max-file-size", "--partition-by", "--order"),
    ),
    "Format": _RECORDS,
    "Values": _SPELLING,
    "Format of the input": tuple(
        name.replace("--", "--values-")
        for name in (*_OF_VALUES, *_RECORDS, *_SPELLING)
        if name not in _ONLY_WRITTEN
    ),
    "Job": (
        *("--consistency", "--strategy", "--unit-size", "--max-errors", "--rate", "--priority"),
        *("--skip-failed-ranges", "--workers", "--dry-run", "--detach", "--job-id"),
        "--on-interrupt",
    ),
    "Display": ("--progress", "--json", "--quiet", "--summary", "--report"),
    "Cluster and broker": (
        *("--contact-points", "--port", "--secure-connect-bundle", "--local-dc"),
        *("--user", "--password"),
        *("--password-file", "--broker", "--config", "--cqlshrc"),
    ),
}
#: Commands that run a job have enough options for groups.
GROUPED = ("load", "verify", "unload", "count", "query", "lookup", "exec", "resume", "tune")


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
    for command in GROUPED:
        click.rich_click.OPTION_GROUPS[f"ringhaul {command}"] = [
            {"name": heading, "options": list(options)}
            for heading, options in OPTION_GROUPS.items()
        ]
