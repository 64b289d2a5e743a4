"""Read and check a schedule file: TOML, one table `[schedule.NAME]` for each.

This module checks all keys that the file may hold. The caller checks that the steps are valid
`ringhaul` commands.
"""

import difflib
import re
import tomllib
from collections.abc import Callable
from datetime import time
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from ringhaul.errors import UsageError
from ringhaul.schedule.cron import Cron
from ringhaul.schedule.schedules import CatchUp, Notify, Overlap, Schedule, Schedules
from ringhaul.schedule.templates import FILES
from ringhaul.schedule.times import FAR_MS, parse_duration_s
from ringhaul.schedule.timing import Timing
from ringhaul.schedule.windows import Window

#: Commands that a step may run.
STEP_COMMANDS = ("load", "verify", "unload", "count", "query", "lookup", "exec")
#: A job id has room for a name of this length, the due time and the number of the step.
NAME_CHARS_MAX = 32
_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9_-]{{0,{NAME_CHARS_MAX - 1}}}")
_DAY_S = 86_400
_SCHEMES = ("https", "http")
#: More digits than Python converts to a number.
_MANY_DIGITS = re.compile(r"[0-9][0-9_]{4300,}")

Check = Callable[[Any], Any]


def parse_schedules(text: str, file: str) -> Schedules:
    """Parse a file's schedules and return them by name, in the file's order.

    Raises `UsageError` that names the file, the schedule, the key and what was expected.
    """
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{file} is not valid TOML: {error}") from error
    except ValueError as error:  # int() limits the number of digits
        digits = _MANY_DIGITS.search(text)
        line = "" if digits is None else f", line {text.count(chr(10), 0, digits.start()) + 1}"
        raise UsageError(f"{file}{line}: a number has thousands of digits") from error
    except RecursionError as error:
        raise UsageError(f"{file}: brackets or braces are nested hundreds deep") from error
    unknown = [key for key in tables if key != "schedule"]
    if unknown:
        raise UsageError(f"{file}: unknown key {unknown[0]}: expected tables [schedule.NAME]")
    found = tables.get("schedule", {})
    if not isinstance(found, dict):
        raise UsageError(f"{file}: schedule: expected tables [schedule.NAME]")
    return {name: _schedule(_Table(file, name, table), name) for name, table in found.items()}


class _Table:
    """A table of the file; its errors name the file and the table."""

    def __init__(self, file: str, place: str, values: object) -> None:
        self.file, self.place = file, place
        if not isinstance(values, dict):
            raise self.wrong("expected a table")
        self._values: dict[str, Any] = values
        self._known: list[str] = []

    def take(self, key: str, check: Check, default: Any = None) -> Any:
        """Return the checked value of a key, or the default if the key is absent."""
        self._known.append(key)
        if key not in self._values:
            return default
        try:
            return check(self._values[key])
        except ValueError as error:
            raise self.wrong(f"{key} = {_shown(self._values[key])}: {error}") from None

    def finish(self) -> None:
        """Raise `UsageError` if the table has a key that no `take` named."""
        for key in self._values:
            if key not in self._known:
                close = difflib.get_close_matches(key, self._known, n=1)
                guess = f"; did you mean {close[0]}?" if close else ""
                raise self.wrong(f"unknown key {key}{guess}")

    def given(self, key: str) -> bool:
        return key in self._values

    def wrong(self, what: str) -> UsageError:
        return UsageError(f"{self.file}: schedule {self.place}: {what}")


def _schedule(table: _Table, name: str) -> Schedule:
    if not _NAME.fullmatch(name):
        raise table.wrong(
            f"a name has letters, digits, - and _, at most {NAME_CHARS_MAX}, and begins with a "
            "letter or a digit"
        )
    arrive = table.take("arrive", _texts, ())
    timing = _timing(table, arrives=bool(arrive))
    schedule = Schedule(
        name=name,
        timing=timing,
        steps=table.take("steps", _steps, ()),
        arrive=arrive,
        settle_s=table.take("settle", _duration, 10),
        files_max=table.take("files_max", _whole(1, 1000), 100),
        overlap=table.take("overlap", _one_of(Overlap), Overlap.SKIP),
        catch_up=table.take("catch_up", _one_of(CatchUp), CatchUp.LATEST),
        late_max_s=table.take("late_max", _late_max, 0),
        retries=table.take("retries", _whole(0, 100), 0),
        backoff_s=table.take("backoff", _duration, 60),
        rejects_ok=table.take("rejects_ok", _true_or_false, False),
        notify=_notify(table),
    )
    table.finish()
    if not schedule.steps:
        raise table.wrong('steps is missing: for example [["load", "/in/a.csv", "-t", "k.t"]]')
    _check_arrival(table, schedule)
    try:
        for due_ms in (0, FAR_MS):
            schedule.arguments(due_ms, ("/a",))
    except ValueError as error:
        raise table.wrong(f"steps: {error}") from None
    return schedule


def _timing(table: _Table, *, arrives: bool) -> Timing:
    """Return when the schedule is due; every 10 s by default if it waits for arriving files."""
    zone = table.take("timezone", _zone, ZoneInfo("UTC"))
    window = table.take("window", _text_of(Window.parse))
    cron = table.take("cron", _text_of(Cron.parse))
    every_s = table.take("every", _every, 10 if arrives else 0)
    if arrives and cron is not None:
        raise table.wrong("cron: a schedule with arrive checks at intervals: give every instead")
    if not arrives and (cron is None) == (every_s == 0):
        raise table.wrong("give either cron or every")
    if window is not None and cron is not None:
        times = ((hour, minute) for hour in cron.hours for minute in cron.minutes)
        if not any(window.holds(time(hour, minute)) for hour, minute in times):
            raise table.wrong(f'cron = "{cron.text}": no due time is within the window')
    if window is not None and every_s > window.length_s:
        raise table.wrong("every: longer than the window, so some windows would have no due time")
    return Timing(zone=zone, cron=cron, every_s=every_s, window=window)


def _check_arrival(table: _Table, schedule: Schedule) -> None:
    takes = [step for step in schedule.steps if FILES in step]
    if not schedule.arrive:
        if takes:
            raise table.wrong(f"steps: {FILES} needs arrive, which says which files")
        for key in ("settle", "files_max"):
            if table.given(key):
                raise table.wrong(f"{key} applies to files that arrive: give arrive too")
        return
    # The first step that takes the files loads them; later steps may verify them.
    commands = [step[0] for step in takes]
    once = all(step.count(FILES) == 1 for step in takes)
    if commands[:1] != ["load"] or not {"verify"}.issuperset(commands[1:]) or not once:
        raise table.wrong(
            f'steps: expected one load of the files: ["load", "{FILES}", ...], then optionally '
            f'["verify", "{FILES}", ...] to compare them with the table'
        )
    for key in ("overlap", "catch_up", "late_max"):
        if table.given(key):
            raise table.wrong(f"{key} applies to due times, which a schedule with arrive lacks")


def _notify(table: _Table) -> tuple[Notify, ...]:
    def parse(value: object) -> tuple[Notify, ...]:
        if not isinstance(value, list):
            raise ValueError(f"expected tables [[schedule.{table.place}.notify]]")
        return tuple(_notify_one(_Table(table.file, f"{table.place}, notify", v)) for v in value)

    found: tuple[Notify, ...] = table.take("notify", parse, ())
    return found


def _notify_one(table: _Table) -> Notify:
    notify = Notify(
        on=table.take("on", _ends, frozenset({"failure"})),
        command=table.take("command", _texts, ()),
        webhook=table.take("webhook", _webhook, ""),
        webhook_file=table.take("webhook_file", _path, ""),
        authorization_file=table.take("authorization_file", _path, ""),
        timeout_s=table.take("timeout", _timeout, 10),
    )
    table.finish()
    ways = [bool(notify.command), bool(notify.webhook), bool(notify.webhook_file)]
    if sum(ways) != 1:
        raise table.wrong("give one of command, webhook and webhook_file")
    if notify.authorization_file and notify.command:
        raise table.wrong("authorization_file is only for webhooks")
    return notify


def check_webhook(url: str) -> str:
    """Return the address if it is valid for a POST. Raises `ValueError` without the address in its
    message."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in _SCHEMES and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable or any(ord(character) <= 32 for character in url):
        raise ValueError("expected an address that begins with https:// or http://")
    if parts.username is not None or parts.password is not None:
        raise ValueError("contains a user or a password: give authorization_file instead")
    return url


def _webhook(value: object) -> str:
    return check_webhook(_text(value))


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise ValueError("expected a text")
    return value


def _path(value: object) -> str:
    path = _text(value)
    if not PurePosixPath(path).is_absolute():
        raise ValueError("expected a path that begins with /")
    return path


def _texts(value: object) -> tuple[str, ...]:
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not values:
        raise ValueError("expected a list of texts")
    return tuple(map(_text, values))


def _steps(value: object) -> tuple[tuple[str, ...], ...]:
    if not isinstance(value, list) or not value or not all(isinstance(s, list) for s in value):
        raise ValueError("expected a list of steps, each a list of texts")
    steps = tuple(tuple(_argument(word) for word in step) for step in value)
    for number, step in enumerate(steps, start=1):
        if not step or step[0] not in STEP_COMMANDS:
            raise ValueError(f"step {number}: expected one of {', '.join(STEP_COMMANDS)} first")
    return steps


def _argument(value: object) -> str:
    """Return a step's argument as text; the file may write numbers without quotes."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return str(value)
        except ValueError:  # a hexadecimal number
            raise ValueError("a number has thousands of digits") from None
    if not isinstance(value, str) or "\0" in value:
        raise ValueError("expected texts and numbers as arguments")
    return value


def _ends(value: object) -> frozenset[str]:
    ends = frozenset(_texts(value))
    if not ends <= {"success", "failure"}:
        raise ValueError('expected "success", "failure", or a list of both')
    return ends


def _duration(value: object) -> int:
    return parse_duration_s(value)


def _late_max(value: object) -> int:
    seconds = parse_duration_s(value)
    if seconds < 1:  # 0 means no limit, and no poll would be quick enough for less than 1 s
        raise ValueError('expected "1s" or more; without late_max there is no limit')
    return seconds


def _timeout(value: object) -> int:
    seconds = parse_duration_s(value)
    if not 1 <= seconds <= 60:
        raise ValueError('expected "1s" to "60s"')
    return seconds


def _every(value: object) -> int:
    seconds = parse_duration_s(value)
    if not 1 <= seconds <= _DAY_S:
        raise ValueError('expected "1s" to "1d"; for more use cron')
    return seconds


def _zone(value: object) -> ZoneInfo:
    try:
        return ZoneInfo(_text(value))
    except (OSError, ValueError, KeyError):
        raise ValueError('expected a time zone such as "UTC" or "Europe/Berlin"') from None


def _whole(low: int, high: int) -> Check:
    def check(value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise ValueError(f"expected a whole number from {low} to {high}")
        return value

    return check


def _true_or_false(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("expected true or false")
    return value


def _one_of(kind: type[Overlap] | type[CatchUp]) -> Check:
    def check(value: object) -> Any:
        try:
            return kind(_text(value))
        except ValueError:
            names = " or ".join(f'"{item}"' for item in kind)
            raise ValueError(f"expected {names}") from None

    return check


def _text_of(parse: Callable[[str], Any]) -> Check:
    return lambda value: parse(_text(value))


def _shown(value: object) -> str:
    """Return a value as the file has it, shortened. The caller masks passwords in it."""
    try:
        text = f'"{value}"' if isinstance(value, str) else str(value)
    except (ValueError, RecursionError):  # a hexadecimal number, tables by a key of many dots
        return "..."
    return text if len(text) <= 80 else text[:77] + "..."
