"""Options that several commands share, and the way from flags to settings.

Flags that are settings reach the embedded workers through the environment, the same road that
every other worker gets its settings by; so they are put into this process's environment before
anything of Celery is imported.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import rich_click as click
from click.core import ParameterSource

from config.names import ENV_CONFIG, ENV_EMPTY, env_name
from config.settings import Loaded, load_settings
from ringhaul.errors import UsageError
from ringhaul.formats.escapes import STYLES
from ringhaul.formats.presets import PRESETS
from ringhaul.ledger.pace import Limits, Pace
from ringhaul.ledger.shares import NORMAL, WEIGHTS
from tasks.connect import use_storage

Command = TypeVar("Command", bound=Callable[..., Any])

#: How progress can be shown.
PROGRESS_KINDS = ("auto", "bar", "plain", "json", "none")
#: Flag -> setting, for the flags of `connection_options`.
CONNECTION_FLAGS = {
    "contact_points": "cluster.contact_points",
    "port": "cluster.port",
    "local_dc": "cluster.local_dc",
    "user": "cluster.user",
    "password_file": "cluster.password_file",
    "broker": "broker.url",
}
#: The same, for flags of `load`.
LOAD_FLAGS = {
    "consistency": "cluster.consistency",
    "strategy": "load.strategy",
    "max_errors": "load.max_errors",
    "unit_size": "load.unit_bytes",
    "workers": "worker.concurrency",
}
#: The object of a context in which the command of a schedule's step is only parsed: it will run in
#: another folder, and at another time.
AS_STEP = object()
#: A `--broker` that turns off the one that is configured, with all that is of it alone.
NO_BROKER = "none"
_OF_THE_BROKER = (
    *("broker.url", "broker.password_file"),
    *("broker.tls_ca", "broker.tls_cert", "broker.tls_key"),
)
#: Setting -> how it is written on a command line, for messages.
_OPTIONS = {
    key: f"--{flag.replace('_', '-')}" for flag, key in (CONNECTION_FLAGS | LOAD_FLAGS).items()
} | {"worker.concurrency": "-c"}


def connection_options(command: Command) -> Command:
    """Where the cluster and the broker are. Passwords are never flags."""
    for option in reversed(
        [
            click.option("--contact-points", metavar="HOST,...", help="Nodes to ask first."),
            click.option("--port", type=int, help="Native protocol port (9042)."),
            click.option("--local-dc", metavar="NAME", help="Use the nodes of this data centre."),
            click.option("--user", metavar="NAME", help="User to log in as."),
            click.option(
                "--password-file", metavar="FILE", help="File whose first line is the password."
            ),
            _broker_option(
                "Redis of the workers, e.g. redis://host:6379/0; none: workers of our own."
            ),
            config_option,
        ]
    ):
        command = option(command)
    return command


def ledger_options(command: Command) -> Command:
    """Where a job is looked at or steered: `--config`, and `--broker`, which the command does not
    see: it is among the settings by then."""

    @wraps(command)
    def run(broker: str | None, config_file: Path | None, **options: Any) -> Any:
        if broker is not None:
            settle({"broker.url": broker}, config_file)
        return command(config_file=config_file, **options)

    option: Callable[[Any], Any] = _broker_option(
        "Redis of the job, e.g. redis://host:6379/0; none: that of our own."
    )
    decorated: Command = option(config_option(run))
    return decorated


def _broker_option(help_text: str) -> Callable[[Command], Command]:
    option: Callable[[Command], Command] = click.option(
        "--broker", metavar=f"URL|{NO_BROKER}", help=help_text
    )
    return option


def following_options(command: Command) -> Command:
    """How a command that runs a job follows it, and shows it."""
    for option in reversed(
        [
            click.option(
                "-c",
                "--workers",
                type=click.IntRange(1),
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
        ]
    ):
        command = option(command)
    return command


def _in_a_folder(context: click.Context, option: click.Parameter, path: Path | None) -> Path | None:
    """Refuse a file that cannot be made, before there is a job. One that is there is click's."""
    if context.obj is AS_STEP:
        return path
    if path is not None and not path.exists():
        if not path.parent.is_dir():
            raise click.BadParameter(f"there is no folder {path.parent}")
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise click.BadParameter(f"folder {path.parent} is not writable")
    return path


def skip_failed_option(command: Command) -> Command:
    """What becomes of token ranges that no replica can read."""
    option = click.option(
        "--skip-failed-ranges",
        "skip_failed",
        is_flag=True,
        help="Leave out what no replica can read, list it, and exit with 1.",
    )
    return option(command)


def sharing_options(command: Command) -> Command:
    """How much of the cluster and of the workers a job takes; see `sharing`."""
    for option in reversed(
        [
            click.option(
                "--rate",
                type=click.IntRange(1),
                metavar="ROWS/S",
                help="Limit of the whole job; `ringhaul throttle` changes it.",
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


def sharing(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of `sharing_options`, as `Ledger.create` takes them."""
    return {
        "pace": Pace(limits=Limits(rows_per_s=options["rate"] or 0)),
        "priority": options["priority"],
    }


def output_options(command: Command) -> Command:
    """The form in which rows are written."""
    for option in reversed(
        [
            click.option(
                "--format",
                type=click.Choice(["csv", "jsonl", "parquet"]),
                help="Of the files [csv].",
            ),
            click.option(
                "--compression",
                metavar="NAME",
                help="csv, jsonl: none gzip zstd bz2 xz [none]; parquet: zstd snappy none [zstd].",
            ),
            click.option(
                "--header/--no-header",
                default=None,
                help="CSV: the columns' names in front of each file [yes].",
            ),
            click.option("-d", "--delimiter", metavar="CHAR", help="CSV: between fields [,]."),
            click.option("--quote", metavar="CHAR", help='CSV: around fields that need it ["].'),
            click.option("--null", metavar="TEXT", help="CSV: stands for null [empty]."),
            click.option(
                "--escape",
                metavar="CHAR",
                help="CSV: before what has a meaning, not quotes [none].",
            ),
            click.option(
                "--escape-style",
                type=click.Choice(list(STYLES)),
                help="CSV: how control characters are spelt behind it [plain].",
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
    """`--config FILE`, for commands that read settings."""
    option = click.option(
        "--config",
        "config_file",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Read this file instead of ringhaul.toml.",
    )
    decorated: Command = option(command)
    return decorated


def settle(flags: Mapping[str, Any], config_file: Path | None) -> Loaded:
    """The settings with these flags (dotted key -> value), also put into the environment.

    An empty text is the setting's empty value, whatever is configured. Raises `ConfigError` or
    `UsageError` for a flag that cannot be used.
    """
    given = {key: value for key, value in flags.items() if value is not None}
    if given.get("broker.url") == "":
        raise UsageError(
            "--broker is empty: give redis://host:port/database, or none for workers of our own"
        )
    if given.get("broker.url") == NO_BROKER:
        given |= dict.fromkeys(_OF_THE_BROKER, "")
    if _has_password(str(given.get("broker.url", ""))):
        raise UsageError(
            "--broker holds a password, which every user of this host can see; put the URL into "
            "RINGHAUL_BROKER_URL or the password into a file (broker.password_file)"
        )
    loaded = load_settings(given, config_file, _OPTIONS)
    use_storage(loaded.settings)
    _leave_to_workers(given)
    if config_file is not None:
        os.environ[ENV_CONFIG] = str(config_file.absolute())
    return loaded


def _leave_to_workers(given: Mapping[str, Any]) -> None:
    """Put flags into the environment, empty ones by name."""
    empty = set(comma_list(os.environ.get(ENV_EMPTY)))
    for key, value in given.items():
        text = ",".join(value) if isinstance(value, (list, tuple)) else str(value)
        os.environ[env_name(key)] = text
        empty = empty - {key} if text else empty | {key}
    if empty:
        os.environ[ENV_EMPTY] = ",".join(sorted(empty))
    else:
        os.environ.pop(ENV_EMPTY, None)


def _has_password(url: str) -> bool:
    try:
        return bool(urlsplit(url).password)
    except ValueError:  # no URL at all: the settings' own check says so
        return "@" in url


def connection_flags(options: Mapping[str, Any]) -> dict[str, Any]:
    """The flags of `connection_options` by their setting."""
    return {key: options[flag] for flag, key in CONNECTION_FLAGS.items()}


def settings_with(options: Mapping[str, Any]) -> Loaded:
    """The settings of a command with these options; nothing is changed, as `settle` does.

    Raises `ConfigError` for one that cannot be used.
    """
    flags = {key: options.get(flag) for flag, key in (CONNECTION_FLAGS | LOAD_FLAGS).items()}
    return load_settings(flags, None, _OPTIONS)


def given_options(context: click.Context | None = None) -> set[str]:
    """The options that the user gave, by their names in `options`: of a command that was parsed, or
    of the running one."""
    context = context or click.get_current_context()
    assert context is not None
    return {
        name
        for name in context.params
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT
    }


def refuse_blank(option: str, text: str | None, wanted: str) -> None:
    """Raise `UsageError` for an option that is given without a text, as by a shell's variable that
    is not set: it would mean what leaving it out means. `wanted`: what to give."""
    if text is not None and not text.strip(" \t\r\n,"):
        raise UsageError(f"{option} is empty: give {wanted}, or leave it out")


def comma_list(text: str | None) -> list[str]:
    """`a, b,c` as a list; empty parts are dropped."""
    return [part.strip() for part in (text or "").split(",") if part.strip()]
