"""The schedule file: where it is, what is in it, and whether `ringhaul` takes its steps."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rich_click as click
from click.exceptions import Exit

from config.settings import Settings
from config.trust import is_taken, warn_of_writable
from producer.options import AS_STEP, given_options
from producer.schedule_files import find_strange
from producer.schedule_notify import doubt
from producer.schedule_output import FOLDERS, check_output
from producer.step_options import check_step_options
from ringhaul.errors import UsageError
from ringhaul.schedule.parse import STEP_COMMANDS, parse_schedules
from ringhaul.schedule.runs import Run, step_arguments
from ringhaul.schedule.schedules import Schedule, Schedules
from ringhaul.schedule.times import FAR_MS
from ringhaul.sources.find import local_path
from ringhaul.storage.remote import is_remote

#: Of a step's command, parsed: what would leave the run without a job to follow, and why.
_REFUSED = {
    "detach": "a step ends with its job",
    "dry_run": "a step does something",
    "job_id": "the id follows from the schedule and the due time",
    "on_interrupt": "beat lets go of a job when it is stopped",
    "config_file": "the settings are beat's own",
    "broker": "the broker is beat's own",
    "profile_dir": "it looks at embedded workers",
    "workers": "it is of embedded workers",
}


@dataclass(frozen=True, kw_only=True)
class ScheduleFile:
    """A file as it was read."""

    path: Path
    schedules: Schedules
    #: What tells it from another version: time of change, size, inode.
    version: tuple[int, int, int]
    #: By schedule: what is no error, and may go wrong later all the same; each with its place.
    warnings: Mapping[str, Sequence[str]]

    @property
    def folder(self) -> Path:
        """Where relative paths in it begin."""
        return self.path.parent

    def schedule(self, name: str) -> Schedule:
        """Raises `UsageError` if there is none of this name."""
        found = self.schedules.get(name)
        if found is None:
            names = ", ".join(self.schedules) or "none"
            raise UsageError(f"{self.path} has no schedule {name}; there are: {names}")
        return found


def find_schedule_file(settings: Settings) -> Path | None:
    """`schedule.file`, or the first that is there of `./config/schedule.toml` and the user's own.

    That of the current folder is passed over where it may be somebody else's: see `config.trust`.
    Raises `UsageError` if the one that the setting names is not there.
    """
    named = settings.schedule.file
    if named is not None:
        if not named.is_file():
            raise UsageError(f"no such schedule file: {named} (schedule.file)")
        warn_of_writable(named)
        return named
    here = Path.cwd() / "config" / "schedule.toml"
    if is_taken(here, "schedule.file (RINGHAUL_SCHEDULE_FILE)"):
        return here
    base = os.environ.get("XDG_CONFIG_HOME", "")
    users = Path(base) if os.path.isabs(base) else Path("~/.config").expanduser()
    own = users / "ringhaul" / "schedule.toml"
    return own if own.is_file() else None


def need_schedule_file(settings: Settings) -> ScheduleFile:
    """The schedule file, read and checked. Raises `UsageError` if there is none."""
    path = find_schedule_file(settings)
    if path is None:
        raise UsageError(
            "there is no schedule file: write config/schedule.toml (config/schedule.example.toml "
            "shows how), or set schedule.file"
        )
    return read_schedule_file(path)


def read_schedule_file(path: Path) -> ScheduleFile:
    """Raises `UsageError` that names the file, the schedule, the key, and what was expected."""
    try:
        version = file_version(path)
        text = path.read_text(encoding="utf-8").removeprefix("\ufeff")  # a byte order mark
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text (byte {error.start})") from error
    schedules = parse_schedules(text, str(path))
    warnings: dict[str, list[str]] = {name: [] for name in schedules}
    for schedule in schedules.values():
        _check_patterns(schedule, path)
        for number, step in enumerate(schedule.steps, start=1):
            place = f"{path}: schedule {schedule.name}: steps, step {number} ({step[0]})"
            try:
                warning = _check_step(schedule, step, number, path.absolute().parent)
            except UsageError as error:
                raise UsageError(f"{place}: {error}") from None
            if warning is not None:
                warnings[schedule.name].append(f"{place}: {warning}")
        for notify in schedule.notify:
            told = doubt(notify)
            if told is not None:
                place = f"{path}: schedule {schedule.name}, notify: {told}"
                warnings[schedule.name].append(f"{place}; nobody would be told from here")
    return ScheduleFile(
        path=path.absolute(), schedules=schedules, version=version, warnings=warnings
    )


def run_arguments(schedule: Schedule, run: Run, index: int, folder: Path) -> list[str]:
    """The command line of a step of a run: from the schedule file, and checked again as it is with
    what the run put into its templates.

    `folder`: where relative paths begin. Raises `UsageError` for a file that is none of those that
    the schedule looks for, and for what a step must not be.
    """
    strange = find_strange(schedule.arrive, str(folder), [file.path for file in run.files])
    if strange is not None:
        raise UsageError(f"{strange!r} is not among the files of arrive: it is not taken")
    try:
        arguments = step_arguments(schedule, run, index)
    except ValueError as error:
        raise UsageError(str(error)) from None
    _refuse(_parsed(arguments).params)
    return arguments


def _parsed(arguments: Sequence[str]) -> click.Context:
    """A step's command line, parsed and not run. Raises `UsageError`."""
    from producer.__main__ import COMMANDS, cli

    name = arguments[0]
    if name not in STEP_COMMANDS or name not in COMMANDS:
        raise UsageError(f"{name} is no command of a step")
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    try:
        return command.make_context(name, list(arguments[1:]), obj=AS_STEP)
    except Exit:
        raise UsageError("a step is no call for help") from None
    except click.ClickException as error:
        raise UsageError(error.format_message()) from None


def _refuse(params: Mapping[str, Any]) -> None:
    """Raise `UsageError` for options that no step may have."""
    for name, why in _REFUSED.items():
        if params.get(name):
            flag = {"config_file": "config", "profile_dir": "profile"}.get(name, name)
            raise UsageError(f"--{flag.replace('_', '-')}: {why}")


def file_version(path: Path) -> tuple[int, int, int]:
    """What tells one version of a file from another. Raises OSError."""
    status = path.stat()
    return status.st_mtime_ns, status.st_size, status.st_ino


def _check_patterns(schedule: Schedule, path: Path) -> None:
    try:
        for pattern in schedule.arrive:
            if not is_remote(pattern):
                local_path(pattern)
    except UsageError as error:
        raise UsageError(f"{path}: schedule {schedule.name}: arrive: {error}") from None


def _check_step(schedule: Schedule, step: tuple[str, ...], number: int, folder: Path) -> str | None:
    """A warning, if there is cause for one. Raises `UsageError` for what the command of a step
    would refuse, or a step must not do.

    `folder`: where it runs.
    """

    def parsed(due_ms: int) -> click.Context:
        return _parsed(schedule.arguments(due_ms, ("/file",))[number - 1])

    first = parsed(0)
    params = first.params
    _refuse(params)
    _check_input(step[0], params)
    warning = None
    if step[0] in FOLDERS:
        given, _, _ = first.command.make_parser(first).parse_args(list(step[1:]))
        output = given.get("output", params["output"])
        warning = check_output(schedule, step[0], params, output, time.time_ns() // 1_000_000)
    _check_values(step[0], [first, parsed(FAR_MS)], folder)
    return warning


def _check_values(command: str, runs: Sequence[click.Context], folder: Path) -> None:
    """`runs`: the step, parsed, in runs that are far from each other. What is wrong in some of them
    alone, such as a range from a fixed day to the due time, is told when it is."""
    found: list[UsageError] = []
    for run in runs:
        try:
            check_step_options(command, run.params, given_options(run), folder)
        except UsageError as error:
            found.append(error)
    if len(found) == len(runs):
        raise found[-1]


def _check_input(command: str, params: Mapping[str, Any]) -> None:
    sources = (params.get("keys"),) if command == "lookup" else params.get("sources") or ()
    if "-" in (*sources, params.get("params"), params.get("urlfile")):
        raise UsageError("-: a step has no standard input")
