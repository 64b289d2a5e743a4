"""Options of every command that runs a job: how it is followed, shown and limited."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from producer.options.connection import Connection
from producer.options.cqlshrc import Cqlshrc
from producer.options.groups import Group
from producer.options.kinds import FLAG, Choice, NewFile, PathOf, Rate, ReportPlace, Whole
from producer.options.option import option
from ringhaul.ledger.pace import NO_LIMITS, Limits, Pace
from ringhaul.ledger.shares import NORMAL, WEIGHTS

#: How progress can be shown.
PROGRESS_KINDS = ("auto", "bar", "plain", "json", "none")
_OWN_WORKERS = "it applies to embedded workers"


@dataclass(frozen=True, kw_only=True)
class Showing:
    """What a command shows about a job, and in which form."""

    progress: str = option(
        "--progress",
        Choice(PROGRESS_KINDS),
        "auto",
        help="auto: a bar on a terminal, else a line every 30 s.",
        group=Group.DISPLAY,
        how=True,
    )
    as_json: bool = option(
        "--json", FLAG, help="JSON Lines on stdout.", group=Group.DISPLAY, common=True, how=True
    )
    quiet: bool = option("-q --quiet", FLAG, help="Only errors.", group=Group.DISPLAY, how=True)
    summary: Path | None = option(
        "--summary",
        NewFile(),
        help="Write the summary as JSON.",
        group=Group.DISPLAY,
        common=True,
        how=True,
    )
    report: Path | None = option(
        "--report",
        ReportPlace(),
        metavar="FILE|DIR",
        help="Write a report as HTML, without data of rows; into a folder as JOB.html.",
        group=Group.DISPLAY,
        how=True,
    )


@dataclass(frozen=True, kw_only=True)
class Following(Showing):
    """How a command that runs a job follows it."""

    workers: int | None = option(
        "-c --workers",
        Whole(1),
        metavar="N",
        help="Embedded worker processes [the cores it may use].",
        brief="Embedded worker processes [the cores].",
        group=Group.JOB,
        common=True,
        how=True,
        setting="worker.concurrency",
        no_step=_OWN_WORKERS,
    )
    detach: bool = option(
        "--detach",
        FLAG,
        help="Leave the job to the workers and return.",
        group=Group.JOB,
        common=True,
        commands=("load", "verify", "unload"),
        how=True,
        no_step="a step ends with its job",
    )
    on_interrupt: str | None = option(
        "--on-interrupt",
        Choice(("cancel", "detach")),
        help="What Ctrl-C does [embedded: cancel, otherwise detach].",
        group=Group.JOB,
        how=True,
        no_step="beat detaches from a job when it is stopped",
    )

    def interrupt_with(self, *, own_workers: bool) -> str:
        """Return what Ctrl-C does: cancel the job, or leave it to workers that continue."""
        return self.on_interrupt or ("cancel" if own_workers else "detach")


@dataclass(frozen=True, kw_only=True)
class Sharing:
    """How much of the cluster and of the workers a job may use."""

    rate: Limits | None = option(
        "--rate",
        Rate(),
        metavar="ROWS/S",
        help="Limit of the job, or bytes as 50MB/s; `ringhaul throttle` changes it.",
        brief="Limit of the job, or bytes as 50MB/s.",
        group=Group.JOB,
        common=True,
        how=True,
    )
    priority: str = option(
        "--priority",
        Choice(tuple(WEIGHTS)),
        NORMAL,
        help="Share of the workers, beside other jobs.",
        group=Group.JOB,
        how=True,
    )

    @property
    def pace(self) -> Pace:
        """The job's limits at its start."""
        return Pace(limits=self.rate or NO_LIMITS)


@dataclass(frozen=True, kw_only=True)
class JobOptions(Connection, Following, Sharing):
    """The options of every command that runs a job."""

    consistency: str | None = option(
        "--consistency",
        metavar="LEVEL",
        help="Consistency level [LOCAL_QUORUM].",
        group=Group.JOB,
        how=True,
        setting="cluster.consistency",
    )
    dry_run: bool = option(
        "--dry-run",
        FLAG,
        help="Check a sample, print the plan, write nothing.",
        group=Group.JOB,
        common=True,
        commands=("load", "unload"),
        how=True,
        no_step="a step has to do its work",
    )
    job_id: str | None = option(
        "--job-id",
        metavar="ID",
        help="Job id. An existing job is continued, so that the command is safe to repeat.",
        group=Group.JOB,
        how=True,
        no_step="the id follows from the schedule and the due time",
    )
    cqlshrc: Cqlshrc | None = option(  # parsed as a path, which the command reads
        "--cqlshrc",
        PathOf(),
        metavar="FILE",
        help="Take connection and options of COPY from this file of cqlsh.",
        group=Group.CLUSTER,
        how=True,
        no_step="the cluster and its user are in beat's settings",
    )
    #: Names of the options that were given, by the user or by a preset.
    given: frozenset[str] = frozenset()
    #: The request as text, compared with the text of an existing job of this id: see `fingerprint`.
    fingerprint: str = ""
    #: The job exists: its command ended before all units were in the ledger.
    adopted: bool = False
