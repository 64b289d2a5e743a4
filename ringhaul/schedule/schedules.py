"""A schedule as defined in its file: when it is due, what it runs, and how failures are handled."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from ringhaul.backoff import pause_s
from ringhaul.schedule.templates import Facts, fill
from ringhaul.schedule.timing import Timing

#: Longest pause between the tries of a failing step.
BACKOFF_S_MAX = 3600


class Overlap(StrEnum):
    """What to do with a due time that comes while a run of the schedule is unfinished."""

    SKIP = "skip"
    QUEUE = "queue"  #: Start it late, when that run has ended.


class CatchUp(StrEnum):
    """Which of several missed due times get a run."""

    LATEST = "latest"
    ALL = "all"  #: Each, in order.


@dataclass(frozen=True, kw_only=True)
class Notify:
    """A notification about a run's end. `command` gets a JSON document on its standard input, a
    webhook in the body of a POST."""

    on: frozenset[str]  #: "success", "failure", or both
    command: tuple[str, ...] = ()
    webhook: str = ""
    #: A file whose first line is the address, if that is a secret.
    webhook_file: str = ""
    #: A file whose first line is the value of the Authorization header.
    authorization_file: str = ""
    timeout_s: int = 10


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """One named chain of steps."""

    name: str
    timing: Timing
    #: Arguments of `ringhaul`, the command first; templates are not filled yet.
    steps: tuple[tuple[str, ...], ...]
    #: Globs and folders whose new files are loaded; the due times are then checks for new files.
    arrive: tuple[str, ...] = ()
    #: How long a file must be unchanged before it is loaded.
    settle_s: int = 10
    #: Most files in one run.
    files_max: int = 100
    overlap: Overlap = Overlap.SKIP
    catch_up: CatchUp = CatchUp.LATEST
    #: A due time that could not start within this is skipped; 0: no limit.
    late_max_s: int = 0
    #: Tries of a step beyond the first, and the pause before the first of them; each later pause is
    #: twice as long.
    retries: int = 0
    backoff_s: int = 60
    #: A step with rejected records counts as done.
    rejects_ok: bool = False
    notify: tuple[Notify, ...] = ()

    def arguments(self, due_ms: int, files: tuple[str, ...] = ()) -> list[list[str]]:
        """Return the steps for a run of a due time. Raises `ValueError` for a bad template."""
        facts = Facts(name=self.name, due_ms=due_ms, zone=self.timing.zone, files=files)
        return [fill(step, facts) for step in self.steps]

    def backoff_ms(self, tries: int) -> int:
        """Return the pause after this many failed tries of a step."""
        max_s = max(BACKOFF_S_MAX, self.backoff_s)
        return int(pause_s(tries, first_s=self.backoff_s, max_s=max_s) * 1000)


Schedules = Mapping[str, Schedule]
