"""Check that a step writes to a different folder in each run, since it needs an empty one.

A folder that is still full at the next run is refused. A folder name that repeats after a while may
be intended, if the user empties the folders: that is only a warning.
"""

from __future__ import annotations

from producer.options.output import RowsOutput
from producer.options.reads import UnloadOptions
from producer.options.statements import ExecOptions
from producer.request.one_file import one_file_of
from ringhaul.errors import UsageError
from ringhaul.schedule.samples import find_repeat
from ringhaul.schedule.schedules import Schedule
from ringhaul.schedule.templates import Facts, fill
from ringhaul.schedule.times import duration_text, moment
from ringhaul.statements.idempotence import effect_of

#: Two arbitrary moments at which files arrive.
_ARRIVE_MS = (0, 8 * 366 * 86_400_000 + 45_296_000)
#: Files may arrive again after this time.
_AGAIN_MS = 59 * 60_000
_FULL = "the second run would find this folder full"
_DIFFERS = "put {due} into it, or a {due:%Y-%m-%d} that differs from run to run"


def _has_answers(statement: str) -> bool:
    """Return whether a statement returns rows; a conditional one returns whether it was applied."""
    effect = effect_of(statement)
    return effect.reads or effect.conditional


def check_output(schedule: Schedule, options: RowsOutput, output: str, now_ms: int) -> str | None:
    """Return a warning if the output folder of a step is used again after a while, or None.

    `options`: the step's options. `output`: the step's `-o` in the schedule file, with templates.
    Due times after `now_ms` are checked. Raises `UsageError` if the next run would find the folder
    full, or if the output is not a folder.
    """
    if options.output == "-":
        if isinstance(options, ExecOptions) and not _has_answers(options.statement):
            return None
        raise UsageError("-o: a step writes to a folder, not to standard output")

    if isinstance(options, UnloadOptions) and (file := one_file_of(options)) and file.name:
        return None  # each run replaces the file of the last run

    def filled(due_ms: int) -> str:
        facts = Facts(name=schedule.name, due_ms=due_ms, zone=schedule.timing.zone)
        return "".join(fill((output,), facts))

    if schedule.arrive:
        if len({filled(ms) for ms in _ARRIVE_MS}) == 1:
            raise UsageError(f"-o {output}: {_FULL}: {_DIFFERS}")
        if filled(_ARRIVE_MS[0]) != filled(_ARRIVE_MS[0] + _AGAIN_MS):
            return None
        return (
            f"-o {output} is the same for files that arrive within an hour or longer: a second run "
            "fails if it finds the output of the first there: put {due} into it"
        )
    repeat = find_repeat(schedule.timing, now_ms, filled)
    if repeat is None:
        return None
    shown = filled(repeat.first_ms)
    first, again = (
        moment(ms).astimezone(schedule.timing.zone) for ms in (repeat.first_ms, repeat.again_ms)
    )
    if repeat.at_once:
        runs = f"the run of {again.isoformat()} after the run of {first.isoformat()}"
        raise UsageError(f"-o {shown}: {_FULL} ({runs}): {_DIFFERS}")
    by_the_clock = again.replace(tzinfo=None) - first.replace(tzinfo=None)
    return (
        f"-o {shown} repeats after {duration_text(by_the_clock.total_seconds())}: the run of "
        f"{again.isoformat()} fails if it finds the output of the run of {first.isoformat()} "
        "there: empty or move the folder before, or put {due} into it"
    )
