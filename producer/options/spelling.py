"""Options for how the text of an input is written, and which of its records are read.

`load`, `verify` and `tune` have them under their plain names, `lookup` and `exec` with a prefix.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from producer.options.groups import Group
from producer.options.kinds import FLAG, Choice, PathOf, Whole
from producer.options.option import option
from producer.options.values import ValueLeniency, ValueSpelling
from ringhaul.formats.dialect import LINE_ENDS, TRIMS
from ringhaul.formats.escapes import STYLES
from ringhaul.formats.json_layouts import JSON_LAYOUTS
from ringhaul.formats.presets import PRESETS

_format = partial(option, group=Group.FORMAT)
_rows = partial(option, group=Group.ROWS)


@dataclass(frozen=True, kw_only=True)
class Spelling(ValueSpelling, ValueLeniency):
    """How the input text is written, which of its records are read, and what their fields fill."""

    file_format: str = _format(
        "--format",
        Choice(("auto", "csv", "jsonl", "parquet", "fixed")),
        "auto",
        help="Format of the files; auto: by suffix (.jsonl .ndjson .json, .parquet, else csv).",
        brief="Format [by suffix].",
        common=True,
    )
    #: Its values are in the other fields, like the values of `dialect`.
    format_profile: str | None = _format(
        "--format-profile",
        metavar="NAME",
        help="Take options from [format.NAME] in ringhaul.toml; the command line wins.",
        how=True,
    )
    header: bool = _format(
        "--header/--no-header",
        FLAG,
        True,
        help="The first record names the fields [yes].",
        common=True,
        said="no header",
    )
    header_at: str | None = _format(
        "--header-at",
        metavar="N|auto",
        help="CSV: line number of the header in each file; auto: find it by the column names.",
    )
    delimiter: str = _format(
        "-d --delimiter",
        default=",",
        metavar="TEXT",
        help="Field delimiter: ; tab \\x01 ^A || ...",
        brief="Field delimiter: ; tab || ...",
        common=True,
        formats=("csv",),
        said="delimiter {!r}",
    )
    quote: str = _format(
        "--quote",
        default='"',
        metavar="CHAR",
        help="Quote character; '' turns quoting off.",
        formats=("csv",),
        said="quote {!r}",
    )
    null_strings: tuple[str, ...] = _format(
        "--null",
        repeated=True,
        metavar="TEXT",
        help="Unquoted text that means null [empty]; may be repeated.",
        brief="Unquoted text that means null [empty].",
        common=True,
        formats=("csv", "fixed", "jsonl"),
        said="null {0[0]!r}",
    )
    null_quoted: bool = _format(
        "--null-quoted",
        FLAG,
        help="Texts of --null mean null even in quotes.",
        formats=("csv", "jsonl"),
    )
    empty: str | None = _format(
        "--empty",
        metavar="text|null|COLUMN=text,...",
        help="What an empty field is in columns of text [null, unless --null says otherwise].",
    )
    empty_word: str | None = _format(
        "--empty-word",
        metavar="TEXT",
        help="Unquoted text that stands for an empty string.",
        formats=("csv",),
        said="empty text {!r}",
    )
    fill_empty: str | None = _format(
        "--fill-empty",
        metavar="TEXT",
        help="Read this text in place of an empty field.",
        formats=("csv",),
    )
    fill_quoted: str | None = _format(
        "--fill-quoted", metavar="TEXT", help='Read this text in place of "".', formats=("csv",)
    )
    encoding: str = _format(
        "--encoding",
        default="utf-8",
        metavar="NAME",
        help="Encoding of the text in the files.",
        formats=("csv", "fixed", "jsonl"),
        said="encoding {}",
    )
    escape: str = _format(
        "--escape",
        default="",
        metavar="CHAR",
        help='Escape character besides doubled quotes, e.g. "\\".',
        formats=("csv",),
        said="escape {!r}",
    )
    escape_style: str = _format(
        "--escape-style",
        Choice(tuple(STYLES)),
        "plain",
        help="How control characters are written after the escape character.",
        formats=("csv",),
        said="escape style {}",
    )
    dialect: str | None = _format(
        "--dialect",
        Choice(tuple(PRESETS)),
        help="CSV conventions of this program; explicit options override them.",
    )
    trim: str = _format(
        "--trim",
        Choice(TRIMS),
        "none",
        help="Drop blanks around fields; quoted: also within quotes.",
        formats=("csv",),
    )
    line_end: str = _format(
        "--line-end",
        Choice(LINE_ENDS),
        "any",
        help="What ends a record; lf: a CR is data.",
        formats=("csv", "fixed"),
    )
    comment: str = _format(
        "--comment",
        default="",
        metavar="CHAR",
        help="Skip lines that start with this character.",
        formats=("csv", "fixed"),
    )
    columns_at: str | None = _format(
        "--columns-at",
        metavar="NAME:FIRST-LAST,...",
        help="Fixed-width records: each field's characters, from 1, such as id:1-8,name:9-40.",
    )
    layout: Path | None = _format(
        "--layout",
        PathOf(folder=False),
        metavar="FILE",
        help="Read the field positions from a file of name,first,last lines.",
    )
    json_layout: str = _format(
        "--json-layout",
        Choice(tuple(JSON_LAYOUTS)),
        "lines",
        help="JSON: an object a line, any objects or arrays, with comments.",
        formats=("jsonl",),
        said="JSON layout {}",
    )
    allow_extra_fields: bool = _format(
        "--allow-extra-fields", FLAG, help="Drop fields beyond the last."
    )
    allow_missing_fields: bool = _format(
        "--allow-missing-fields", FLAG, help="Set missing fields to null."
    )
    allow_nul: bool = _format("--allow-nul", FLAG, help="Take NUL bytes in text as they are.")
    columns: str | None = _rows(
        "--columns",
        metavar="A,B,...",
        help="Names of the file's fields, in their order.",
        common=True,
    )
    mapping: str | None = _rows(
        "-m --mapping",
        metavar="FIELD=COLUMN,...",
        help="Columns that fields fill; FIELD is a name or a position from 0; *=*: all other "
        "fields by name.",
        brief="Fields and the columns that they fill.",
        common=True,
    )
    skip_columns: str | None = _rows(
        "--skip-columns", metavar="A,B,...", help="Fields to leave out."
    )
    skip_rows: int = _rows(
        "--skip-rows", Whole(0), 0, metavar="N", help="Skip the first N records."
    )
    max_rows: int | None = _rows("--max-rows", Whole(0), metavar="N", help="At most N records.")
    rows_per: str = _rows(
        "--rows-per",
        Choice(("input", "file")),
        "input",
        help="Skip and limit records in the whole input, or in each file.",
    )
