"""`ringhaul load`: options in, exit code out. The work is in `producer.run_load`."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import rich_click as click

from producer.known_job import begins_job
from producer.options import connection_options, following_options, given_options, sharing_options


def _need_a_source(
    context: click.Context, parameter: click.Parameter, sources: tuple[str, ...]
) -> tuple[str, ...]:
    """Refuse a command that names none. `--urlfile` is eager: it is known by now."""
    if not sources and context.params["urlfile"] is None:
        words = "Give one, or --urlfile FILE"
        raise click.MissingParameter(words, ctx=context, param=parameter)
    return sources


@click.command("load")
@click.argument("sources", nargs=-1, metavar="SOURCE...", callback=_need_a_source)
@click.option(
    "--urlfile",
    is_eager=True,
    metavar="FILE",
    help="Sources, one on each line, after those that are given; -: from standard input.",
)
@click.option("-k", "--keyspace", metavar="NAME", help="Keyspace of the table.")
@click.option("-t", "--table", required=True, metavar="NAME", help="Table, or KEYSPACE.TABLE.")
@click.option(
    "--format",
    "file_format",
    type=click.Choice(["auto", "csv", "jsonl", "parquet"]),
    default="auto",
    show_default=True,
    help="Of the files; auto: by suffix (.jsonl .ndjson .json, .parquet, else csv).",
)
@click.option("--header/--no-header", default=True, help="The first record names the fields.")
@click.option("--columns", metavar="A,B,...", help="Names of the file's fields, in their order.")
@click.option(
    "-m",
    "--mapping",
    metavar="FIELD=COLUMN,...",
    help="Load these fields into these columns; FIELD is a name or a position from 0.",
)
@click.option("--skip-columns", metavar="A,B,...", help="Fields to leave out.")
@click.option(
    "--transform",
    "transforms",
    multiple=True,
    metavar="MODULE:FUNCTION",
    help="Put records through a function that the workers' settings allow; may be repeated.",
)
@click.option("--where", metavar="CONDITION", help="Which rows are loaded, as in SQL.")
@click.option("-d", "--delimiter", default=",", show_default=True, help="Between fields; \\t: tab.")
@click.option("--quote", default='"', show_default=True, help="Around fields; empty: none.")
@click.option("--escape", default="", help='Escape character besides doubled quotes, e.g. "\\".')
@click.option("--comment", default="", help="Lines that begin with it are left out.")
@click.option("--encoding", default="utf-8", show_default=True, help="Of the text in the files.")
@click.option(
    "--null", "null_strings", multiple=True, help="Unquoted text that means null [empty]."
)
@click.option(
    "--nulls",
    type=click.Choice(["unset", "tombstone"]),
    default="unset",
    show_default=True,
    help="unset: leave the column as it is; tombstone: delete its value.",
)
@click.option("--allow-extra-fields", is_flag=True, help="Drop fields beyond the last.")
@click.option("--allow-missing-fields", is_flag=True, help="Fields that are missing are null.")
@click.option("--allow-nul", is_flag=True, help="Take NUL bytes in text as they are.")
@click.option("--skip-rows", type=click.IntRange(0), default=0, help="Pass over the first N.")
@click.option("--max-rows", type=click.IntRange(1), help="Load at most N records.")
@click.option(
    "--timestamp-format",
    "timestamp_formats",
    multiple=True,
    metavar="PATTERN",
    help="strftime pattern of timestamps, tried before ISO 8601.",
)
@click.option(
    "--epoch-unit", default="", help="Of whole-number timestamps: s ms us ns [ms, no date-like]."
)
@click.option("--timezone", default="UTC", show_default=True, help="Of timestamps without a zone.")
@click.option("--true-words", metavar="A,B,...", help="Words for true [true,t,yes,y,1].")
@click.option("--false-words", metavar="A,B,...", help="Words for false [false,f,no,n,0].")
@click.option("--blob", default="hex", show_default=True, help="Blobs are hex (0x...) or base64.")
@click.option("--decimal-sep", default=".", show_default=True, help="Decimal point of numbers.")
@click.option("--thousands-sep", default="", help="Between groups of digits; empty: none.")
@click.option(
    "--max-errors", metavar="N|N%", help="Stop when more records are rejected [1000]; -1: never."
)
@click.option("--consistency", metavar="LEVEL", help="Of the writes [LOCAL_QUORUM].")
@click.option("--ttl", type=int, default=0, metavar="S", help="Seconds until rows expire.")
@click.option(
    "--timestamp",
    metavar="US|ISO",
    help="Write timestamp of the first record; each next is 1 us later.",
)
@click.option(
    "--timestamp-field",
    metavar="FIELD",
    help="Rows' write times stand in this field, a name or a position from 0.",
)
@click.option(
    "--ttl-field",
    metavar="FIELD",
    help="Seconds until each row expires stand in this field; empty: --ttl.",
)
@click.option(
    "--strategy",
    type=click.Choice(["pipeline", "token-batch", "concurrent"]),
    help="Single statements to the replicas, or two ways through the driver [pipeline].",
)
@click.option("--unit-size", metavar="BYTES", help="Of one unit of work, e.g. 16M [adaptive].")
@click.option("--dry-run", is_flag=True, help="Check a sample, print the plan, write nothing.")
@click.option("--detach", is_flag=True, help="Leave the job to the workers and return.")
@click.option(
    "--profile",
    "profile_dir",
    type=click.Path(file_okay=False, writable=True, path_type=Path),
    help="Write a profile of each embedded worker process here; tell where the time went.",
)
@sharing_options
@following_options
@connection_options
@begins_job("load")
def load_command(**options: Any) -> int:
    """Load CSV, JSON Lines or Parquet files into a table.

    SOURCE is a file, a glob, a directory or - for standard input; .gz, .zst, .bz2 and .xz are
    read as they are.
    """
    from producer.beginning import begin_load

    with ExitStack() as stack:
        begun = begin_load(stack, options)
        # Only now: its imports take as long as what was begun.
        from producer.run_load import run_load

        return run_load(options, begun, given_options())
