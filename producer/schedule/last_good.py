"""Copies of schedule files as they were when they could last be read, in the state folder.

A file that an editor broke at night must not end the schedules: a beat that starts then, after the
host was restarted, goes on with the copy. It says so, as do lists and pages.
"""

from __future__ import annotations

import hashlib
import logging
from dataclasses import replace
from pathlib import Path

from config.settings import Settings
from producer.schedule.file import (
    ScheduleFile,
    find_schedule_file,
    parse_schedule_file,
    read_schedule_file,
)
from ringhaul.errors import UsageError
from ringhaul.new_file import replace_file

log = logging.getLogger(__name__)

_FOLDER = "schedule-files"
#: Only the user of the beats may change what they run.
_MODE = 0o600


def keep_good(file: ScheduleFile, state_dir: Path) -> None:
    """Keep a copy of a file that could be read. A failure is only logged."""
    copy = _copy_of(file.path, state_dir)
    try:
        copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with replace_file(copy, mode=_MODE) as out:
            out.write(file.text.encode())
    except OSError as error:
        log.warning(
            "no copy of %s is kept, for a beat that starts while the file is broken: %s",
            *(file.path, error.strerror or error),
        )


def last_good(path: Path, state_dir: Path) -> ScheduleFile | None:
    """Return the copy of a schedule file, with the path of the file itself; None if there is none,
    or this version of ringhaul cannot read it."""
    copy = _copy_of(path, state_dir)
    try:
        text = copy.read_text(encoding="utf-8")
        return parse_schedule_file(path, text)
    except (OSError, ValueError, UsageError):
        return None


def load_schedule_file(settings: Settings) -> ScheduleFile | None:
    """Return the schedule file of this host; if it cannot be read, its copy with the `problem`.
    None: there is no file. Raises `UsageError` if neither can be read."""
    try:
        path = find_schedule_file(settings)
        return None if path is None else read_schedule_file(path)
    except UsageError as error:
        path = settings.schedule.file or find_schedule_file(settings)
        copy = None if path is None else last_good(path, settings.state_dir)
        if copy is None:
            raise
        return replace(copy, problem=str(error))


def _copy_of(path: Path, state_dir: Path) -> Path:
    name = hashlib.sha256(str(path.absolute()).encode("utf-8", "surrogateescape")).hexdigest()
    return state_dir / _FOLDER / f"{name[:16]}.toml"
