"""The timeline of a job: what ran when, as bars on lanes. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Bar:
    """A piece of work on a lane of a timeline, or the sum of overlapping or successive pieces."""

    lane: int
    start_s: float
    end_s: float
    share: float = 1.0  #: Share of this time that was work, 0..1: the bar's height.
    repeated: bool = False  #: An earlier attempt was lost or given back.
