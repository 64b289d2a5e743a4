"""Options of `resume` and `throttle`."""

from __future__ import annotations

from dataclasses import dataclass

from producer.options.connection import Connection
from producer.options.job import Following
from producer.options.output import ResultPlace
from ringhaul.ledger.pace import Limits


@dataclass(frozen=True, kw_only=True)
class ResumeOptions(Connection, Following, ResultPlace):
    """`resume`, and any command whose job exists already."""

    job: str
    max_errors: str | None = None
    given: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class ThrottleOptions:
    """`throttle`."""

    rate: Limits | None = None
    rows_per_second: int | None
    mb_per_second: float | None
    in_flight: int | None
    between: tuple[str, ...]
    timezone: str | None
    off: bool
    as_json: bool
