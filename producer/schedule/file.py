"""The schedule file: find it, read it, and check that `ringhaul` accepts its steps."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from config.settings import Settings
from config.trust import is_taken, warn_of_writable
from producer.schedule.notify import find_problem
from producer.schedule.steps import check_step
from ringhaul.errors import UsageError
from ringhaul.schedule.parse import parse_schedules
from ringhaul.schedule.schedules import Schedule, Schedules
from ringhaul.sources.find import local_path
from ringhaul.storage.remote import is_remote


@dataclass(frozen=True, kw_only=True)
class ScheduleFile:
    """A schedule file at the time it was read."""

    path: Path
    schedules: Schedules
    #: Distinguishes it from other versions: time of change, size, inode. All 0: a copy.
    version: tuple[int, int, int]
    #: By schedule: possible mistakes that are no errors, each with its place in the file.
    warnings: Mapping[str, Sequence[str]]
    text: str = field(repr=False)
    #: Why the file cannot be read now, so that the schedules are from its copy; empty if it can.
    problem: str = ""

    @property
    def folder(self) -> Path:
        """The folder at which relative paths in the file start."""
        return self.path.parent

    def schedule(self, name: str) -> Schedule:
        """Return the schedule `name`. Raises `UsageError` if the file has none of this name."""
        found = self.schedules.get(name)
        if found is None:
            names = ", ".join(self.schedules) or "none"
            raise UsageError(f"{self.path} has no schedule {name}; there are: {names}")
        return found


def find_schedule_file(settings: Settings) -> Path | None:
    """Return the path of `schedule.file`; without that setting, `./config/schedule.toml` or else
    the user's file, whichever exists. None if there is no file.

    The file in the current folder is ignored if it may belong to another user: see `config.trust`.
    Raises `UsageError` if the setting names a missing file.
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
    """Read and check the schedule file. Raises `UsageError` if there is none."""
    path = find_schedule_file(settings)
    if path is None:
        raise UsageError(
            "there is no schedule file: write config/schedule.toml (config/schedule.example.toml "
            "shows how), or set schedule.file"
        )
    return read_schedule_file(path)


def read_schedule_file(path: Path) -> ScheduleFile:
    """Read and check a schedule file. Raises `UsageError`, which names the file, the schedule, the
    key and what was expected."""
    try:
        version = file_version(path)
        text = path.read_text(encoding="utf-8").removeprefix("\ufeff")  # a byte order mark
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text (byte {error.start})") from error
    return parse_schedule_file(path, text, version)


def parse_schedule_file(
    path: Path, text: str, version: tuple[int, int, int] = (0, 0, 0)
) -> ScheduleFile:
    """Check the text of the schedule file `path`. Raises as `read_schedule_file` does."""
    schedules = parse_schedules(text, str(path))
    warnings: dict[str, list[str]] = {name: [] for name in schedules}
    for schedule in schedules.values():
        _check_patterns(schedule, path)
        for number, step in enumerate(schedule.steps, start=1):
            place = f"{path}: schedule {schedule.name}: steps, step {number} ({step[0]})"
            try:
                warning = check_step(schedule, step, number, path.absolute().parent)
            except UsageError as error:
                raise UsageError(f"{place}: {error}") from None
            if warning is not None:
                warnings[schedule.name].append(f"{place}: {warning}")
        for notify in schedule.notify:
            problem = find_problem(notify)
            if problem is not None:
                place = f"{path}: schedule {schedule.name}, notify: {problem}"
                warnings[schedule.name].append(f"{place}; this host would send no notification")
    return ScheduleFile(
        path=path.absolute(), schedules=schedules, version=version, warnings=warnings, text=text
    )


def file_version(path: Path) -> tuple[int, int, int]:
    """Return what distinguishes one version of a file from another. Raises OSError."""
    status = path.stat()
    return status.st_mtime_ns, status.st_size, status.st_ino


def _check_patterns(schedule: Schedule, path: Path) -> None:
    try:
        for pattern in schedule.arrive:
            if not is_remote(pattern):
                local_path(pattern)
    except UsageError as error:
        raise UsageError(f"{path}: schedule {schedule.name}: arrive: {error}") from None
