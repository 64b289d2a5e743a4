"""The settings that `ringhaul tune` tries, and the values that each may have. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

Value = str | int

MIB = 2**20
#: How many more worker processes than the settings have are tried at most: each session costs the
#: cluster something.
WORKERS_MAX = 128
#: Requests in flight. 0: no bound but the adaptive one, which goes to 1,024 next to the node.
IN_FLIGHT = (64, 256, 2048)
IN_FLIGHT_USUAL = 1024
#: Rows in one request. 0: as many as the server takes; 1 would be `single`.
BATCH_ROWS = (2, 5)
UNIT_BYTES = (MIB, 4 * MIB, 16 * MIB, 64 * MIB)
STRATEGIES = ("pipeline", "single", "token-batch")


class Knob(StrEnum):
    """A setting that is tried, by its key."""

    STRATEGY = "load.strategy"
    WORKERS = "worker.concurrency"
    BATCH_ROWS = "load.batch_rows_max"
    IN_FLIGHT = "load.in_flight_requests_max"
    UNIT_BYTES = "load.unit_bytes"


@dataclass(frozen=True, kw_only=True)
class Setup:
    """A value for each setting. 0 is the setting's default, which adapts by itself."""

    strategy: str = "pipeline"
    workers: int = 0  #: worker processes; 0: all that are running
    batch_rows: int = 0
    in_flight: int = 0
    unit_bytes: int = 0

    def value(self, knob: Knob) -> Value:
        """Return the value of one setting."""
        value: Value = getattr(self, _FIELDS[knob])
        return value

    def having(self, knob: Knob, value: Value) -> Setup:
        """Return this setup with another value of one setting."""
        return replace(self, **{_FIELDS[knob]: value})  # type: ignore[arg-type]


_FIELDS: Mapping[Knob, str] = {
    Knob.STRATEGY: "strategy",
    Knob.WORKERS: "workers",
    Knob.BATCH_ROWS: "batch_rows",
    Knob.IN_FLIGHT: "in_flight",
    Knob.UNIT_BYTES: "unit_bytes",
}

#: Setting -> the values to try, the smallest effect first; one value: it is not tuned.
Space = Mapping[Knob, Sequence[Value]]


def make_space(start: Setup, *, worker_counts: Sequence[int], sample_bytes: int) -> Space:
    """Return the values to try from `start` on, which are in it.

    `worker_counts`: see `counts_of_workers`; empty: the workers are not the command's. A unit is
    tried if each worker process gets two of them from a sample of `sample_bytes`, however many
    there are.
    """
    largest = sample_bytes // (2 * max([1, start.workers, *worker_counts]))
    units = [size for size in UNIT_BYTES if size <= largest]
    return {
        Knob.STRATEGY: STRATEGIES,
        Knob.WORKERS: sorted({start.workers, *worker_counts}),
        Knob.BATCH_ROWS: _sorted({0, start.batch_rows, *BATCH_ROWS}, MIB),
        Knob.IN_FLIGHT: _sorted({0, start.in_flight, *IN_FLIGHT}, IN_FLIGHT_USUAL),
        Knob.UNIT_BYTES: sorted({0, start.unit_bytes, *units}),
    }


def counts_of_workers(cores: int, start: int, most: int | None, fit: int) -> list[int]:
    """Return the numbers of worker processes to try: a quarter, half, all and three halves of the
    cores, and `start`.

    `most`: by the user, instead of the cores' three halves; `fit`: how many have room in memory.
    """
    limit = most or max(cores * 3 // 2, cores + 1, start)
    limit = max(1, min(limit, fit, max(WORKERS_MAX, start)))
    wanted = {limit // 4, limit // 2, limit} if most else {cores // 4, cores // 2, cores, limit}
    return sorted({min(max(count, 1), limit) for count in {*wanted, start}})


def applies(knob: Knob, setup: Setup) -> bool:
    """Return whether a setting has an effect with this setup: `single` makes no batches."""
    return knob is not Knob.BATCH_ROWS or setup.strategy in ("pipeline", "token-batch")


def _sorted(values: set[int], usual: int) -> Sequence[int]:
    """Sort values; 0 stands for the `usual` one."""
    return sorted(values, key=lambda value: value or usual)
