"""Options that several commands share."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import rich_click as click

from producer.request.options import NO_BROKER, LedgerPlace
from producer.request.password import PROMPT, note_password_flag
from producer.request.rate import Rate
from ringhaul.formats.dialect import TRIMS
from ringhaul.formats.escapes import STYLES
from ringhaul.formats.presets import PRESETS
from ringhaul.ledger.shares import NORMAL, WEIGHTS

Command = TypeVar("Command", bound=Callable[..., Any])


#: How progress can be shown.
PROGRESS_KINDS = ("auto", "bar", "plain", "json", "none")


#: Object of a context in which a schedule's step is only parsed: it will run in
#: another folder, at another time.
AS_STEP = object()


def connection_options(command: Command) -> Command:
    """Add options for where the cluster and the broker are. Passwords are never flags."""
    for option in reversed(
        [
            click.option("--contact-points", metavar="HOST,...", help="Nodes to ask first."),
            click.option("--port", type=int, help="Native protocol port (9042)."),
            click.option(
                "--secure-connect-bundle",
                metavar="FILE",
                help="Zip file of a managed cluster, instead of nodes and port.",
            ),
            click.option("--local-dc", metavar="NAME", help="Use the nodes of this data centre."),
            click.option("-u", "--user", metavar="NAME", help="User to log in as."),
            click.option(
                "-p",
                "--password",
                "ask_password",
                is_flag=False,
                flag_value=PROMPT,
                metavar="",
                expose_value=False,
                callback=note_password_flag,
                help="Ask for the password on the terminal; takes no value.",
            ),
            click.option(
                "--password-file", metavar="FILE", help="File whose first line is the password."
            ),
            _broker_option(
                "Redis of the workers, e.g. redis://host:6379/0; none: the command's own workers."
            ),
            config_option,
        ]
    ):
        command = option(command)
    return command


def ledger_options(command: Command) -> Command:
    """Add options for commands that look at or control a job, `--broker` and `--config`. The
    command gets them as a `LedgerPlace`, its parameter `place`."""

    @wraps(command)
    def run(broker: str | None, config_file: Path | None, **options: Any) -> Any:
        return command(place=LedgerPlace(broker=broker, config_file=config_file), **options)

    option: Callable[[Any], Any] = _broker_option(
        "Redis of the job, e.g. redis://host:6379/0; none: that of embedded jobs."
    )
    decorated: Command = option(config_option(run))
    return decorated


def _broker_option(help_text: str) -> Callable[[Command], Command]:
    option: Callable[[Command], Command] = click.option(
        "--broker", metavar=f"URL|{NO_BROKER}", help=help_text
    )
    return option


def following_options(command: Command) -> Command:
    """Add options for how a command follows its job and shows it."""
    for option in reversed(
        [
            click.option(
                "-c",
                "--workers",
                type=click.IntRange(1),
                metavar="N",
                help="Embedded worker processes [the cores it may use].",
            ),
            click.option(
                "--on-interrupt",
                type=click.Choice(["cancel", "detach"]),
                help="What Ctrl-C does [embedded: cancel, otherwise detach].",
            ),
            click.option(
                "--progress",
                type=click.Choice(PROGRESS_KINDS),
                default="auto",
                show_default=True,
                help="auto: a bar on a terminal, else a line every 30 s.",
            ),
            click.option("--json", "as_json", is_flag=True, help="JSON Lines on stdout."),
            click.option("-q", "--quiet", is_flag=True, help="Only errors."),
            click.option(
                "--summary",
                type=click.Path(dir_okay=False, writable=True, path_type=Path),
                callback=_in_a_folder,
                help="Write the summary as JSON.",
            ),
            report_option,
        ]
    ):
        command = option(command)
    return command


def report_option(command: Command) -> Command:
    """`--report FILE|DIR`, for commands that follow or show a job."""
    option = click.option(
        "--report",
        type=click.Path(writable=True),
        metavar="FILE|DIR",
        callback=_report_place,
        help="Write a report as HTML, without data of rows; into a folder as JOB.html.",
    )
    decorated: Command = option(command)
    return decorated


def _report_place(context: click.Context, option: click.Parameter, text: str | None) -> Path | None:
    if text is None:
        return None
    if text == "-":
        raise click.BadParameter(
            "standard output is for data; `ringhaul report JOB -o -` prints a report"
        )
    if context.obj is not AS_STEP:
        refuse_missing_folder(text)
    path = Path(text)
    return path if path.is_dir() else _in_a_folder(context, option, path)


def refuse_missing_folder(text: str) -> None:
    """Raise `BadParameter` for a path that ends like a folder's, but is not a folder: each job
    would overwrite a file of that name."""
    if text.endswith(os.sep) and not os.path.isdir(text):
        raise click.BadParameter(f"there is no folder {text}")


def _in_a_folder(context: click.Context, option: click.Parameter, path: Path | None) -> Path | None:
    """Refuse a file that cannot be created, before there is a job. Click checks existing ones."""
    if context.obj is AS_STEP:
        return path
    if path is not None and not path.exists():
        if not path.parent.is_dir():
            raise click.BadParameter(f"there is no folder {path.parent}")
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise click.BadParameter(f"folder {path.parent} is not writable")
    return path


def skip_failed_option(command: Command) -> Command:
    """Add the option for token ranges that no replica can read."""
    option = click.option(
        "--skip-failed-ranges",
        "skip_failed",
        is_flag=True,
        help="Skip and list token ranges that no replica can read; exit with 1.",
    )
    return option(command)


def preserving_options(command: Command) -> Command:
    """Add the options that keep the write time and TTL of each column."""
    for option in reversed(
        [
            click.option(
                "--preserve-timestamp",
                is_flag=True,
                help="Keep each column's write time, in a field named writetime(COLUMN).",
            ),
            click.option(
                "--preserve-ttl",
                is_flag=True,
                help="Keep each column's TTL, in a field named ttl(COLUMN).",
            ),
        ]
    ):
        command = option(command)
    return command


def sharing_options(command: Command) -> Command:
    """Add options for how much of the cluster and of the workers a job may use; see `Sharing`."""
    for option in reversed(
        [
            click.option(
                "--rate",
                type=Rate(),
                metavar="ROWS/S",
                help="Limit of the job, or bytes as 50MB/s; `ringhaul throttle` changes it.",
            ),
            click.option(
                "--priority",
                type=click.Choice(list(WEIGHTS)),
                default=NORMAL,
                show_default=True,
                help="Share of the workers, beside other jobs.",
            ),
        ]
    ):
        command = option(command)
    return command


def output_options(command: Command) -> Command:
    """Add options for the format of written rows."""
    for option in reversed(
        [
            click.option(
                "--format",
                type=click.Choice(["csv", "jsonl", "parquet"]),
                help="Format of the files [csv].",
            ),
            click.option(
                "--compression",
                metavar="NAME",
                help="Text: none gzip zstd bz2 xz lz4 brotli [none]; Parquet: zstd snappy none.",
            ),
            click.option(
                "--header/--no-header",
                default=None,
                help="CSV: the columns' names in front of each file [yes].",
            ),
            click.option(
                "-d",
                "--delimiter",
                metavar="CHAR",
                help="CSV: between fields, such as ; tab ^A [,].",
            ),
            click.option("--quote", metavar="CHAR", help='CSV: around fields that need it ["].'),
            click.option("--null", metavar="TEXT", help="CSV: stands for null [empty]."),
            click.option(
                "--quote-all", is_flag=True, help="CSV: quotes around all values but null."
            ),
            click.option(
                "--empty-word", metavar="TEXT", help='CSV: stands for the empty text [""].'
            ),
            click.option(
                "--comment",
                metavar="CHAR",
                help="CSV: values that begin with this comment character are quoted [none].",
            ),
            click.option(
                "--trim",
                type=click.Choice(list(TRIMS)),
                help="CSV: drop blanks around texts; text and quoted both do [none].",
            ),
            click.option(
                "--line-end",
                type=click.Choice(["lf", "crlf"]),
                help="CSV: what ends a record [lf].",
            ),
            click.option(
                "--encoding", metavar="NAME", help="CSV and JSON: encoding of the text [utf-8]."
            ),
            click.option(
                "--json-layout",
                type=click.Choice(["lines", "array", "pretty"]),
                help="JSON: an object a line, an array a file, or that in more lines [lines].",
            ),
            click.option(
                "--json-nulls/--no-json-nulls",
                default=None,
                help="JSON: members that are null [yes].",
            ),
            click.option(
                "--decimal-type",
                metavar="P,S",
                help="Parquet: decimals have P digits, S of them after the point [they are text].",
            ),
            click.option(
                "--escape",
                metavar="CHAR",
                help="CSV: escape character, instead of doubled quotes [none].",
            ),
            click.option(
                "--escape-style",
                type=click.Choice(list(STYLES)),
                help="CSV: how control characters are written after it [plain].",
            ),
            click.option(
                "--dialect",
                type=click.Choice(list(PRESETS)),
                help="CSV: as this program reads it; other options win.",
            ),
        ]
    ):
        command = option(command)
    return command


def config_option(command: Command) -> Command:
    """Add `--config FILE`, for commands that read settings."""
    option = click.option(
        "--config",
        "config_file",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Read this file instead of ringhaul.toml.",
    )
    decorated: Command = option(command)
    return decorated
