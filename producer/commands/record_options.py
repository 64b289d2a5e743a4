"""Options of commands that read records of a table (`load` and `verify`): which records, and how
they are written."""

from __future__ import annotations

from collections.abc import Callable

import rich_click as click

from producer.commands.options import Command
from producer.commands.value_options import reading_options
from ringhaul.formats.escapes import STYLES
from ringhaul.formats.json_layouts import JSON_LAYOUTS
from ringhaul.formats.presets import PRESETS


def _need_a_source(
    context: click.Context, parameter: click.Parameter, sources: tuple[str, ...]
) -> tuple[str, ...]:
    """Refuse a command without a source. `--urlfile` is eager, so its value is known here."""
    if not sources and context.params["urlfile"] is None:
        words = "Give one, or --urlfile FILE"
        raise click.MissingParameter(words, ctx=context, param=parameter)
    return sources


def dialect_options(prefix: str = "", about: str = "") -> Callable[[Command], Command]:
    """Add `--dialect`, `--escape-style` and `--line-end` of input. `about`: precedes help texts."""

    def decorate(command: Command) -> Command:
        for option in reversed(
            [
                click.option(
                    f"--{prefix}dialect",
                    type=click.Choice(list(PRESETS)),
                    help=f"{about}As this program writes it; other options win.",
                ),
                click.option(
                    f"--{prefix}escape-style",
                    type=click.Choice(list(STYLES)),
                    default="plain",
                    show_default=True,
                    help=f"{about}What stands behind the escape character.",
                ),
                click.option(
                    f"--{prefix}json-layout",
                    type=click.Choice(list(JSON_LAYOUTS)),
                    default="lines",
                    show_default=True,
                    help=f"{about}JSON: an object a line, any objects or arrays, with comments.",
                ),
                click.option(
                    f"--{prefix}line-end",
                    type=click.Choice(["any", "lf"]),
                    default="any",
                    show_default=True,
                    help=f"{about}What ends a record; lf: a CR is data.",
                ),
            ]
        ):
            command = option(command)
        return command

    return decorate


def record_options(command: Command) -> Command:
    """Add SOURCE, the table, and how records become its rows."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


_OPTIONS = [
    click.argument("sources", nargs=-1, metavar="SOURCE...", callback=_need_a_source),
    click.option(
        "--urlfile",
        is_eager=True,
        metavar="FILE",
        help="Sources, one on each line, after those that are given; -: from standard input.",
    ),
    click.option("-k", "--keyspace", metavar="NAME", help="Keyspace of the table."),
    click.option("-t", "--table", required=True, metavar="NAME", help="Table, or KEYSPACE.TABLE."),
    click.option(
        "--format",
        "file_format",
        type=click.Choice(["auto", "csv", "jsonl", "parquet"]),
        default="auto",
        show_default=True,
        help="Format of the files; auto: by suffix (.jsonl .ndjson .json, .parquet, else csv).",
    ),
    click.option(
        "--header/--no-header", default=True, help="The first record names the fields [--header]."
    ),
    click.option(
        "--columns", metavar="A,B,...", help="Names of the file's fields, in their order."
    ),
    click.option(
        "-m",
        "--mapping",
        metavar="FIELD=COLUMN,...",
        help="These fields are these columns; FIELD is a name or a position from 0.",
    ),
    click.option("--skip-columns", metavar="A,B,...", help="Fields to leave out."),
    click.option(
        "--transform",
        "transforms",
        multiple=True,
        metavar="MODULE:FUNCTION",
        help="Put records through a function that the workers' settings allow; may be repeated.",
    ),
    click.option("--where", metavar="CONDITION", help="Only rows for which this holds, as in SQL."),
    click.option(
        "-d",
        "--delimiter",
        default=",",
        show_default=True,
        help="Between fields, such as ; tab \\x01 ^A.",
    ),
    click.option("--quote", default='"', show_default=True, help="Around fields; empty: none."),
    click.option(
        "--escape", default="", help='Escape character besides doubled quotes, e.g. "\\".'
    ),
    dialect_options(),
    click.option("--comment", default="", help="Lines that begin with it are left out."),
    click.option(
        "--encoding", default="utf-8", show_default=True, help="Encoding of the text in the files."
    ),
    click.option(
        "--null", "null_strings", multiple=True, help="Unquoted text that means null [empty]."
    ),
    click.option("--allow-extra-fields", is_flag=True, help="Drop fields beyond the last."),
    click.option("--allow-missing-fields", is_flag=True, help="Fields that are missing are null."),
    click.option("--allow-nul", is_flag=True, help="Take NUL bytes in text as they are."),
    click.option("--skip-rows", type=click.IntRange(0), default=0, help="Pass over the first N."),
    click.option("--max-rows", type=click.IntRange(1), help="At most N records."),
    reading_options(),
]
