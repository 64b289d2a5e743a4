"""Options of every command that runs a job: how it is followed, shown and limited."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from producer.options.connection import Connection
from ringhaul.ledger.pace import NO_LIMITS, Limits, Pace


@dataclass(frozen=True, kw_only=True)
class Showing:
    """What a command shows about a job, and in which form."""

    progress: str = "auto"  #: auto, bar, plain, json or none
    as_json: bool = False
    quiet: bool = False
    summary: Path | None = None
    report: Path | None = None  #: a file, or a folder


@dataclass(frozen=True, kw_only=True)
class Following(Showing):
    """How a command that runs a job follows it."""

    workers: int | None  #: embedded worker processes; None: one for each core
    on_interrupt: str | None  #: cancel or detach; None: what suits the workers
    detach: bool = False

    def interrupt_with(self, *, own_workers: bool) -> str:
        """Return what Ctrl-C does: cancel the job, or leave it to workers that continue."""
        return self.on_interrupt or ("cancel" if own_workers else "detach")


@dataclass(frozen=True, kw_only=True)
class Sharing:
    """How much of the cluster and of the workers a job may use."""

    rate: Limits | None  #: None: no limit
    priority: str

    @property
    def pace(self) -> Pace:
        """The job's limits at its start."""
        return Pace(limits=self.rate or NO_LIMITS)


@dataclass(frozen=True, kw_only=True)
class JobOptions(Connection, Following, Sharing):
    """The options of every command that runs a job."""

    job_id: str | None
    consistency: str | None
    dry_run: bool = False
    #: Names of the options that were given, by the user or by a preset.
    given: frozenset[str] = frozenset()
    #: The request as text, compared with that of an existing job of this id: see `fingerprint`.
    fingerprint: str = ""
    #: The job exists: its command ended before all units were in the ledger.
    adopted: bool = False
