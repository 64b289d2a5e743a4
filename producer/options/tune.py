"""Options of `tune`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from producer.options.cqlshrc import Cqlshrc
from producer.options.groups import Group
from producer.options.kinds import FLAG, Duration, PathOf
from producer.options.load import LoadOptions
from producer.options.option import again, option
from ringhaul.ledger.pace import Limits
from ringhaul.ledger.shares import NORMAL


@dataclass(frozen=True, kw_only=True)
class TuneOptions(LoadOptions):
    """`tune`: the options of the load that is tried, and what becomes of the result."""

    max_errors: str | None = again(
        LoadOptions,
        "max_errors",
        help="Stop when more records of a trial are rejected [1000].",
        brief="Stop a trial when more records are rejected [1000].",
    )
    workers: int | None = again(
        LoadOptions,
        "workers",
        help="Most worker processes to try [1.5 times the cores].",
        brief="Most worker processes to try.",
    )
    as_json: bool = again(LoadOptions, "as_json", help="One JSON document on stdout.")
    quiet: bool = again(LoadOptions, "quiet", help="Only the result.")
    budget_s: int = option(
        "--budget",
        Duration(least_s=20),  # below this, nothing can be compared after the start
        300,
        metavar="TIME",
        help="Time limit of the command, such as 90s or 10m.",
        group=Group.TRIALS,
        common=True,
    )
    in_place: bool = option(
        "--in-place",
        FLAG,
        help="Load into the table itself, not into a scratch table of the same schema.",
        group=Group.TRIALS,
        brief="Load into the table itself.",
        common=True,
    )
    overwrite: bool = option(
        "--overwrite",
        FLAG,
        help="With --in-place: allow a table with rows; the sample replaces rows with its keys.",
        group=Group.TRIALS,
    )
    write: Path | None = option(
        "--write",
        PathOf(folder=False),
        metavar="FILE",
        help="File for the result [the ringhaul.toml in use, else a new ./ringhaul.toml].",
        group=Group.TRIALS,
        brief="File for the result.",
        common=True,
    )
    no_write: bool = option(
        "--no-write", FLAG, help="Only print the result.", group=Group.TRIALS, common=True
    )
    # Options of a load that trials lack:
    job_id: str | None = None
    cqlshrc: Cqlshrc | None = None
    rate: Limits | None = None
    priority: str = NORMAL
    on_interrupt: str | None = None
    unit_size: str | None = None
    progress: str = "auto"
    summary: Path | None = None
    report: Path | None = None
