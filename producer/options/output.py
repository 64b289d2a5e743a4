"""Options for where rows and results go, and how they are written."""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from functools import partial

from producer.options.groups import Group
from producer.options.kinds import FLAG, PLACE, Choice, Whole
from producer.options.option import option
from producer.options.values import ValueSpelling
from ringhaul.formats.dialect import TRIMS
from ringhaul.formats.escapes import STYLES
from ringhaul.formats.presets import PRESETS

#: Formats of a result. `table` is for people.
RESULT_FORMATS = ("auto", "table", "csv", "json", "parquet")

_format = partial(option, group=Group.FORMAT)


@dataclass(frozen=True, kw_only=True)
class RowsOutput(ValueSpelling):
    """Where rows are written, and how. None: the format's default."""

    output: str = option(  # a folder, its URL, or - for standard output
        "-o --output",
        PLACE,
        MISSING,
        metavar="DIR|URL|-",
        help="An empty or new folder, its URL, or - for standard output.",
        group=Group.OUTPUT,
        common=True,
    )
    max_rows_per_file: int | None = option(
        "--max-rows-per-file",
        Whole(1),
        metavar="N",
        help="Start a new file after N rows.",
        group=Group.OUTPUT,
    )
    max_file_size: str | None = option(
        "--max-file-size",
        metavar="BYTES",
        help="Start a new file after about this size, e.g. 256M.",
        group=Group.OUTPUT,
    )
    order: str = option(
        "--order",
        Choice(("input", "any")),
        "input",
        help="Answers in the order of the input, or as they come.",
        group=Group.OUTPUT,
    )
    format: str | None = _format(
        "--format",
        Choice(("csv", "jsonl", "parquet")),
        help="Format of the files [csv].",
        common=True,
    )
    compression: str | None = _format(
        "--compression",
        metavar="NAME",
        help="Text: none gzip zstd bz2 xz lz4 brotli [none]; Parquet: zstd snappy none.",
        brief="Compression, such as gzip or zstd.",
        common=True,
    )
    header: bool | None = _format(
        "--header/--no-header",
        FLAG,
        help="CSV: start each file with the columns' names [yes].",
        brief="CSV: column names first [yes].",
        common=True,
    )
    delimiter: str | None = _format(
        "-d --delimiter",
        metavar="CHAR",
        help="CSV: field delimiter: ; tab ^A ... [,].",
        common=True,
    )
    quote: str | None = _format(
        "--quote", metavar="CHAR", help='CSV: around fields that need it ["].'
    )
    null: str | None = _format(
        "--null", metavar="TEXT", help="CSV: text for null [empty].", common=True
    )
    quote_all: bool = _format("--quote-all", FLAG, help="CSV: quotes around all values but null.")
    empty_word: str | None = _format(
        "--empty-word", metavar="TEXT", help='CSV: stands for the empty text [""].'
    )
    comment: str | None = _format(
        "--comment",
        metavar="CHAR",
        help="CSV: values that begin with this comment character are quoted [none].",
    )
    trim: str | None = _format(
        "--trim",
        Choice(TRIMS),
        help="CSV: drop blanks around texts; text and quoted both do [none].",
    )
    line_end: str | None = _format(
        "--line-end", Choice(("lf", "crlf")), help="CSV: what ends a record [lf]."
    )
    encoding: str | None = _format(
        "--encoding", metavar="NAME", help="CSV and JSON: encoding of the text [utf-8]."
    )
    json_layout: str | None = _format(
        "--json-layout",
        Choice(("lines", "array", "pretty")),
        help="JSON: an object a line, an array a file, or an indented array [lines].",
    )
    json_nulls: bool | None = _format(
        "--json-nulls/--no-json-nulls", FLAG, help="JSON: members that are null [yes]."
    )
    decimal_type: str | None = _format(
        "--decimal-type",
        metavar="P,S",
        help="Parquet: decimals have P digits, S of them after the point [they are text].",
    )
    escape: str | None = _format(
        "--escape", metavar="CHAR", help="CSV: escape character, instead of doubled quotes [none]."
    )
    escape_style: str | None = _format(
        "--escape-style",
        Choice(tuple(STYLES)),
        help="CSV: how control characters are written after the escape character [plain].",
    )
    dialect: str | None = _format(
        "--dialect",
        Choice(tuple(PRESETS)),
        help="CSV: conventions of this program; explicit options override them.",
    )


@dataclass(frozen=True, kw_only=True)
class ResultPlace:
    """Where a result goes, and in which format. None: not given."""

    result_format: str | None = option(
        "--format",
        Choice(RESULT_FORMATS),
        "auto",
        help="auto: a table on a terminal, else csv; in a file what its suffix says.",
        brief="auto: a table on a terminal.",
        group=Group.FORMAT,
        common=True,
        how=True,
    )
    output: str | None = option(  # each command decides where its result goes
        "-o --output",
        metavar="FILE",
        help="File for the result [standard output].",
        group=Group.OUTPUT,
        common=True,
        how=True,
    )
