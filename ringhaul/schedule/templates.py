"""Templates for dates and names in a step's arguments.

    {due}                   the due time in UTC, 20261120T013000Z
    {due:%Y-%m-%d}          the due time in the schedule's zone, by strftime
    {due-1d:%Y-%m-%d}       a day before; also +, and h, m, s
    {name}                  the schedule's name
    {files}                 must be an argument alone: becomes one argument for each arrived file

Days are calendar days; hours and less are elapsed time. Other braces stay, since CQL uses them; a
word in braces that resembles a template, but is not one, is refused.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, timedelta
from zoneinfo import ZoneInfo

from ringhaul.schedule.times import moment, parse_duration_s, run_id

FILES = "{files}"
_FORM = re.compile(r"\{([a-z_]+)(?:([-+])([0-9a-z ]+))?(?::(%[^{}]*))?\}")
#: A word in braces, alone or with a format; does not match CQL such as `{street: 'a'}`.
_LOOKS_LIKE = re.compile(r"\{due\b[^{}]*\}|\{ *[A-Za-z_]+ *(?:[-+][^{}:]*)?(?::%[^{}]*)?\}")


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Values that a run fills into templates."""

    name: str
    due_ms: int
    zone: ZoneInfo
    files: tuple[str, ...] = ()


def fill(arguments: Sequence[str], facts: Facts) -> list[str]:
    """Return the arguments of a run. Raises `ValueError` naming a bad template or date."""
    filled: list[str] = []
    for argument in arguments:
        if argument == FILES:
            filled += facts.files
        else:
            filled.append(_fill(argument, facts))
    return filled


def _fill(argument: str, facts: Facts) -> str:
    for match in _LOOKS_LIKE.finditer(argument):
        if not _FORM.fullmatch(match[0]):
            raise ValueError(f"{match[0]} is not a template; {_expected()}")
    return _FORM.sub(lambda match: _value(match, facts), argument)


def _value(match: re.Match[str], facts: Facts) -> str:
    word, sign, shift, form = match.groups()
    if word == "name" and sign is None and form is None:
        return facts.name
    if word == "files":
        raise ValueError(f"{FILES} stands for several arguments: it must be a separate argument")
    if word != "due" or (sign is not None and form is None):
        raise ValueError(f"{match[0]} is not a template; {_expected()}")
    if form is None:
        return run_id(facts.due_ms)
    when = moment(facts.due_ms).astimezone(facts.zone)
    if sign is not None:
        seconds = parse_duration_s(shift) * (-1 if sign == "-" else 1)
        try:
            if shift.endswith("d"):
                when += timedelta(seconds=seconds)  # keeps the wall-clock time
            else:
                when = (when.astimezone(UTC) + timedelta(seconds=seconds)).astimezone(facts.zone)
        except OverflowError:
            raise ValueError(f"{match[0]}: the date is outside the years 1 to 9999") from None
    return when.strftime(form)


def _expected() -> str:
    return "expected {due}, {due:%Y-%m-%d}, {due-1d:%Y-%m-%d}, {name} or {files}"
