"""A schedule, as its file has it: when, what, and what else is to be done about it."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from ringhaul.schedule.templates import Facts, fill
from ringhaul.schedule.timing import Timing

#: A step that fails again and again is left alone for this long at most.
BACKOFF_S_MAX = 3600


class Overlap(StrEnum):
    """What becomes of a due time that comes while a run of the schedule is not over."""

    SKIP = "skip"
    QUEUE = "queue"  #: It starts when that run is over, late.


class CatchUp(StrEnum):
    """Which of several due times that could not start are made up for."""

    LATEST = "latest"
    ALL = "all"  #: Each, in order.


@dataclass(frozen=True, kw_only=True)
class Notify:
    """Who is told of a run's end. `command` gets a JSON document on its standard input, a webhook
    in the body of a POST."""

    on: frozenset[str]  #: of "success" and "failure"
    command: tuple[str, ...] = ()
    webhook: str = ""
    #: Its first line is the address, where that is a secret.
    webhook_file: str = ""
    #: Its first line is the value of the Authorization header.
    authorization_file: str = ""
    timeout_s: int = 10


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """One named chain of steps."""

    name: str
    timing: Timing
    #: Arguments of `ringhaul`, the command first; templates are not filled yet.
    steps: tuple[tuple[str, ...], ...]
    #: Globs and folders whose new files are loaded; a schedule with them is due to look for files.
    arrive: tuple[str, ...] = ()
    #: How long a file must not have changed.
    settle_s: int = 10
    #: In one run.
    files_max: int = 100
    overlap: Overlap = Overlap.SKIP
    catch_up: CatchUp = CatchUp.LATEST
    #: A due time that could not start within this is passed over; 0: it may be as late as it is.
    late_max_s: int = 0
    #: Of a step, beyond the first try, and the pause before the first of them; each next is twice
    #: as long.
    retries: int = 0
    backoff_s: int = 60
    #: A step with rejected records counts as done.
    rejects_ok: bool = False
    notify: tuple[Notify, ...] = ()

    def arguments(self, due_ms: int, files: tuple[str, ...] = ()) -> list[list[str]]:
        """The steps of the run of a due time. Raises `ValueError` for a template that is none."""
        facts = Facts(name=self.name, due_ms=due_ms, zone=self.timing.zone, files=files)
        return [fill(step, facts) for step in self.steps]

    def backoff_ms(self, tries: int) -> int:
        """The pause after so many failed tries of a step."""
        doublings = min(max(tries - 1, 0), 32)  # far beyond the bound, whatever a record says
        return int(min(self.backoff_s * 2**doublings, max(BACKOFF_S_MAX, self.backoff_s)) * 1000)


Schedules = Mapping[str, Schedule]
