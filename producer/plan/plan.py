"""A planned job: what a command creates, and what it shows before and after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from producer.notes import Note
from ringhaul.ledger.limits import ErrorLimit

if TYPE_CHECKING:
    from producer.outputs.stdout_parts import StdoutParts
    from ringhaul.output.job import ResultOutput
    from tasks.kinds import Job


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A job that can be created, and what follows its end."""

    job: Job
    units: Sequence[str] = ()  #: all of them; none of a job whose files are split meanwhile
    #: The table, or its stand-in, as lists of jobs show it.
    target: str
    #: What people read after the job's id.
    headline: str
    notes: Sequence[Note] = ()  #: shown before anything is created
    #: Prints rows while units are committed, by workers of the command itself; None: rows go
    #: elsewhere, or there are none.
    printer: StdoutParts | None = None
    #: The command itself prints the rows, so its own workers must read them.
    own_workers: bool = False
    #: Where the result of a count or a query goes; None: the job says, or it has none.
    result: ResultOutput | None = None
    #: Keyspace of the rows, if the job has no table; None: unknown.
    keyspace: str | None = None
    error_limit: ErrorLimit | None = None  #: None: rejects never stop the job
    text: str | None = None  #: printed instead of a run (--dry-run)
