"""Options of `resume` and `throttle`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from producer.options.connection import Connection
from producer.options.groups import Group
from producer.options.job import Following
from producer.options.kinds import FLAG, Positive, Rate, Whole
from producer.options.option import again, argument, option
from producer.options.output import ResultPlace
from ringhaul.ledger.pace import Limits

_limit = partial(option, group=Group.JOB)


@dataclass(frozen=True, kw_only=True)
class ResumeOptions(Connection, Following, ResultPlace):
    """`resume`, and any command whose job exists already."""

    job: str = argument("JOB", help="The job's id.", group=Group.JOB)
    max_errors: str | None = option(
        "--max-errors",
        metavar="N|N%",
        help="Rejects that are allowed from now on.",
        group=Group.JOB,
    )
    result_format: str | None = again(
        ResultPlace,
        "result_format",
        default=None,
        help="Format of the result of a count or a query [as its command said].",
    )
    output: str | None = again(
        ResultPlace,
        "output",
        metavar="FILE|-",
        help="File for the result; -: standard output [as its command said].",
    )
    given: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class ThrottleOptions:
    """`throttle`."""

    rate: Limits | None = _limit(
        "--rate",
        Rate(),
        metavar="ROWS/S",
        help="Rows, or bytes as 50MB/s, over all workers: as --rate of the job's own command.",
    )
    rows_per_second: int | None = _limit(
        "--rows-per-second", Whole(1), metavar="N", help="Rows, over all workers."
    )
    mb_per_second: float | None = _limit(
        "--mb-per-second",
        Positive(),
        metavar="N",
        help="Megabytes (1,000,000 bytes), over all workers.",
    )
    in_flight: int | None = _limit(
        "--in-flight",
        Whole(1),
        metavar="N",
        help="Requests without an answer, over all workers; each unit that runs has at least one.",
    )
    between: tuple[str, ...] = _limit(
        "--between",
        repeated=True,
        metavar="HH:MM-HH:MM",
        help="Hours of the day in which the limits hold; may be repeated [always].",
    )
    timezone: str | None = _limit(
        "--timezone", metavar="NAME", help="Time zone of the hours, such as Europe/Berlin [UTC]."
    )
    off: bool = _limit("--off", FLAG, help="Remove all limits.")
    as_json: bool = _limit("--json", FLAG, help="Print the limits as JSON.")
