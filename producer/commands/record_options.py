"""Options of commands that read records: which records, how they are written, what they fill.

`load` and `verify` have them under their plain names, `lookup` and `exec` with a prefix.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import rich_click as click

from producer.commands.options import Command
from producer.commands.value_options import value_options
from ringhaul.formats.dialect import TRIMS
from ringhaul.formats.escapes import STYLES
from ringhaul.formats.json_layouts import JSON_LAYOUTS
from ringhaul.formats.presets import PRESETS
from tasks.command_line import VALUES_PREFIX, option_name


def _need_a_source(
    context: click.Context, parameter: click.Parameter, sources: tuple[str, ...]
) -> tuple[str, ...]:
    """Refuse a command without a source. `--urlfile` is eager, so its value is known here."""
    if not sources and context.params["urlfile"] is None:
        words = "Give one, or --urlfile FILE"
        raise click.MissingParameter(words, ctx=context, param=parameter)
    return sources


def record_options(command: Command) -> Command:
    """Add SOURCE, the table, and how records become its rows."""
    for option in reversed([*_SOURCES, *spelling_options(), *_ROWS]):
        command = option(command)
    return command


def values_options(command: Command) -> Command:
    """Add the same options about records for the file of keys or values, with a prefix."""
    for option in reversed(spelling_options(VALUES_PREFIX, "Input: ")):
        command = option(command)
    return command


_SOURCES = [
    click.argument("sources", nargs=-1, metavar="SOURCE...", callback=_need_a_source),
    click.option(
        "--urlfile",
        is_eager=True,
        metavar="FILE",
        help="Sources, one on each line, after those that are given; -: from standard input.",
    ),
    click.option("-k", "--keyspace", metavar="NAME", help="Keyspace of the table."),
    click.option("-t", "--table", required=True, metavar="NAME", help="Table, or KEYSPACE.TABLE."),
]
_ROWS = [
    click.option(
        "--transform",
        "transforms",
        multiple=True,
        metavar="MODULE:FUNCTION",
        help="Put records through a function that the workers' settings allow; may be repeated.",
    ),
    click.option(
        "--hive-partitioning",
        is_flag=True,
        help="Folders such as year=2023/region=north give these columns, as Hive and Spark do.",
    ),
    click.option("--where", metavar="CONDITION", help="Only rows for which this holds, as in SQL."),
]


def spelling_options(prefix: str = "", about: str = "") -> list[Callable[[Command], Command]]:
    """Return the options about records. `about`: precedes help texts."""

    def option(name: str, *names: str, **given: Any) -> Callable[[Command], Command]:
        # Short names are those of load, whose options have no prefix.
        short = [] if prefix else [one for one in names if one.startswith("-")]
        own = [one for one in names if not one.startswith("-")]
        renamed = [f"{prefix}{one}".replace("-", "_") for one in own]
        full = "/".join(option_name(part.removeprefix("--"), prefix) for part in name.split("/"))
        text = given.pop("help")
        first = text[0] if text[:2].isupper() else text[0].lower()  # not of JSON
        shown = f"{about}{first}{text[1:]}" if about else text
        return click.option(*short, full, *renamed, help=shown, **given)

    return [
        option(
            "--format",
            *([] if prefix else ["file_format"]),
            type=click.Choice(["auto", "csv", "jsonl", "parquet", "fixed"]),
            default="auto",
            show_default=True,
            help="Format of the files; auto: by suffix (.jsonl .ndjson .json, .parquet, else csv).",
        ),
        option(
            "--format-profile",
            metavar="NAME",
            help="Options of [format.NAME] in ringhaul.toml; those on the command line win.",
        ),
        option(
            "--header/--no-header", default=True, help="The first record names the fields [yes]."
        ),
        option(
            "--header-at",
            metavar="N|auto",
            help="CSV: the header is line N of each file, behind titles; auto: that of its names.",
        ),
        option("--columns", metavar="A,B,...", help="Names of the file's fields, in their order."),
        option(
            "--columns-at",
            metavar="NAME:FIRST-LAST,...",
            help="Fixed-width records: each field's characters, from 1, such as id:1-8,name:9-40.",
        ),
        option(
            "--layout",
            type=click.Path(dir_okay=False, path_type=Path),
            metavar="FILE",
            help="The same from a file with name,first,last on each line.",
        ),
        option(
            "--mapping",
            "-m",
            metavar="FIELD=COLUMN,...",
            help="These fields are these columns; FIELD is a name or a position from 0; *=*: the "
            "others by name.",
        ),
        option("--skip-columns", metavar="A,B,...", help="Fields to leave out."),
        option(
            "--delimiter",
            "-d",
            default=",",
            show_default=True,
            metavar="TEXT",
            help="Between fields, such as ; tab \\x01 ^A or ||.",
        ),
        option(
            "--quote",
            default='"',
            show_default=True,
            metavar="CHAR",
            help="Around fields; empty: none.",
        ),
        option(
            "--escape",
            default="",
            metavar="CHAR",
            help='Escape character besides doubled quotes, e.g. "\\".',
        ),
        option(
            "--dialect",
            type=click.Choice(list(PRESETS)),
            help="As this program writes it; other options win.",
        ),
        option(
            "--escape-style",
            type=click.Choice(list(STYLES)),
            default="plain",
            show_default=True,
            help="How control characters are written after the escape character.",
        ),
        option(
            "--json-layout",
            type=click.Choice(list(JSON_LAYOUTS)),
            default="lines",
            show_default=True,
            help="JSON: an object a line, any objects or arrays, with comments.",
        ),
        option(
            "--line-end",
            type=click.Choice(["any", "lf"]),
            default="any",
            show_default=True,
            help="What ends a record; lf: a CR is data.",
        ),
        option(
            "--comment", default="", metavar="CHAR", help="Lines that begin with it are left out."
        ),
        option(
            "--encoding",
            default="utf-8",
            show_default=True,
            metavar="NAME",
            help="Encoding of the text in the files.",
        ),
        option(
            "--null",
            "null_strings",
            multiple=True,
            metavar="TEXT",
            help="Unquoted text that means null [empty]; may be repeated.",
        ),
        option("--null-quoted", is_flag=True, help="The texts of --null mean null in quotes, too."),
        option(
            "--empty",
            metavar="text|null|COLUMN=text,...",
            help="What an empty field is in columns of text [null, unless --null says otherwise].",
        ),
        option(
            "--empty-word",
            metavar="TEXT",
            help="Unquoted text that means the empty text, as --null has those for null.",
        ),
        option("--fill-empty", metavar="TEXT", help="Read this text in place of an empty field."),
        option("--fill-quoted", metavar="TEXT", help='Read this text in place of "".'),
        option(
            "--trim",
            type=click.Choice(list(TRIMS)),
            default="none",
            show_default=True,
            help="Drop blanks around fields; quoted: within quotes, too.",
        ),
        option("--allow-extra-fields", is_flag=True, help="Drop fields beyond the last."),
        option("--allow-missing-fields", is_flag=True, help="Fields that are missing are null."),
        option("--allow-nul", is_flag=True, help="Take NUL bytes in text as they are."),
        option(
            "--skip-rows",
            type=click.IntRange(0),
            metavar="N",
            default=0,
            help="Skip the first N records.",
        ),
        option("--max-rows", type=click.IntRange(0), metavar="N", help="At most N records."),
        option(
            "--rows-per",
            type=click.Choice(["input", "file"]),
            default="input",
            show_default=True,
            help="Whether these two count in the complete input, or in each file.",
        ),
        *value_options(prefix, about),
    ]
