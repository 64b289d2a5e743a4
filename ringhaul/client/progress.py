"""Progress of a running job, as the command reports it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a job is; about one a second while a call waits for it, and one at its end."""

    job: str
    state: str  #: RUNNING, PAUSED, or how it ended
    done: float  #: share, 0 to 1
    rows: int
    rejected: int
    units: int  #: known so far
    units_done: int
    bytes_done: int
    bytes_total: int
    rows_per_second: float
    bytes_per_second: float
    elapsed_seconds: float
    eta_seconds: float | None  #: None: not known yet
    workers: int
    retrying: str | None  #: why the job makes no progress; None: it does

    @classmethod
    def read(cls, message: Mapping[str, Any]) -> Progress:
        """Return the progress in a `status` message of the command."""
        return cls(
            job=message["job"],
            state=message["state"],
            done=message.get("done") or 0.0,
            rows=message.get("rows") or 0,
            rejected=message.get("rejected") or 0,
            units=message.get("units") or 0,
            units_done=message.get("units_done") or 0,
            bytes_done=message.get("bytes_done") or 0,
            bytes_total=message.get("bytes_total") or 0,
            rows_per_second=message.get("rows_per_s") or 0.0,
            bytes_per_second=message.get("bytes_per_s") or 0.0,
            elapsed_seconds=message.get("elapsed_s") or 0.0,
            eta_seconds=message.get("eta_s"),
            workers=message.get("workers") or 0,
            retrying=message.get("retrying"),
        )

    @classmethod
    def at_end(cls, summary: Mapping[str, Any], last: Mapping[str, Any]) -> Progress:
        """Return the progress of a job that has ended, from its summary and its last `status`
        message (empty: there was none)."""
        names = ("job", "state", "rows", "rejected", "units", "units_done", "elapsed_s")
        figures = {name: summary.get(name) for name in (*names, "rows_per_s", "retrying")}
        units = summary.get("units") or 0
        done = (summary.get("units_done") or 0) / units if units else 1.0
        return cls.read({**last, **figures, "done": done, "eta_s": None})
