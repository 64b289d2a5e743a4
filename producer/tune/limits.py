"""Judge from measurements what limits the speed of a load. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from producer.text import bytes_text, count_text, ms_text, rate_text

#: If worker processes compute for this share of their time or more, they are the limit: the rest
#: is reading, waiting for units, and answers that arrive while they compute.
BUSY_WORKERS = 0.75
#: If all cores of this host are busy for this share of the time, with whatever, they are the limit.
BUSY_HOST = 0.90
#: If a load reaches this share of the rate at which its source is read, the source is the limit.
SOURCE_SHARE = 0.6
#: Longer round trips are due to the network; if that is not busy, answers take little longer.
FAR_MS = 2.0
ON_THE_WAY = 2.0


class Limit(StrEnum):
    """What limits a load."""

    SERVER = "server"
    NETWORK = "network"
    CLIENT_CPU = "client CPU"
    SOURCE = "source"


@dataclass(frozen=True, kw_only=True)
class SourceRate:
    """How fast one process reads the source without writing a row."""

    rows_s: float  #: read and cut into records
    encoded_rows_s: float  #: and converted into values of CQL
    bytes_s: float
    #: How many processes can read at once; 0: as many as there are.
    streams_max: int = 0


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What was measured with the best setup."""

    rate: float  #: rows/s
    bytes_s: float  #: input bytes/s
    workers: int  #: processes
    cpu_us_per_row: float  #: CPU time of the workers
    p50_ms: float | None  #: latency of a request
    p99_ms: float | None
    round_trip_ms: float  #: the lowest measured
    source: SourceRate
    retries: int = 0
    cores: int | None = None  #: cores of this host, if the workers run on it
    busy: float | None = None  #: share of this host's cores that were at work, whatever with

    @property
    def busy_workers(self) -> float:
        """The share of their time in which the workers compute."""
        return self.rate * self.cpu_us_per_row / 1e6 / max(1, self.workers)


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What limits a load, the reason for that judgement, and what to do."""

    limit: Limit
    reason: str
    advice: str


def judge(found: Evidence) -> Verdict:
    """Return what limits a load that was measured."""
    readers = min(found.workers, found.source.streams_max or found.workers)
    if found.rate > SOURCE_SHARE * readers * found.source.rows_s:
        return Verdict(
            limit=Limit.SOURCE,
            reason=f"{_can_read(found, readers)}, and the load takes {rate_text(found.rate)}",
            advice=_for_source(found, readers),
        )
    if found.busy_workers > BUSY_WORKERS:
        return Verdict(
            limit=Limit.CLIENT_CPU,
            reason=f"the worker processes compute {found.busy_workers:.0%} of their time",
            advice="more worker processes if cores are idle, else more hosts",
        )
    if found.busy is not None and found.busy > BUSY_HOST:
        used = found.busy_workers * found.workers
        return Verdict(
            limit=Limit.CLIENT_CPU,
            reason=(
                f"no core of this host is idle ({found.busy:.0%} busy); the workers use {used:.1f} "
                f"of {found.cores}, other programs the rest"
            ),
            advice="run the workers on other hosts than Cassandra and your applications",
        )
    p50_ms = found.p50_ms or 0.0
    if found.round_trip_ms > FAR_MS and p50_ms < ON_THE_WAY * found.round_trip_ms:
        return Verdict(
            limit=Limit.NETWORK,
            reason=(
                f"half of the answers take {ms_text(p50_ms)}, and the way there and back alone "
                f"{ms_text(found.round_trip_ms)}"
            ),
            advice="workers nearer to the cluster, or more requests in flight",
        )
    return Verdict(
        limit=Limit.SERVER,
        reason=(
            f"half of the answers take {ms_text(p50_ms)}, the way there and back "
            f"{ms_text(found.round_trip_ms)}: requests wait in the cluster"
        ),
        advice="more nodes, or fewer indexes; more workers do not help",
    )


def evidence_lines(found: Evidence) -> Sequence[str]:
    """Return what was measured, for people: lines of at most 70 characters."""
    source = found.source
    busy = "" if found.busy is None else f", this host {found.busy:.0%} busy"
    return [
        f"server      p50 {ms_text(found.p50_ms)}, p99 {ms_text(found.p99_ms)}, lowest round trip "
        f"{ms_text(found.round_trip_ms)}",
        f"client CPU  {found.cpu_us_per_row:.1f} us a row, workers {found.busy_workers:.0%} busy"
        f"{busy}",
        f"network     {bytes_text(found.bytes_s)} of input a second",
        f"source      one process reads {rate_text(source.rows_s)} rows/s and encodes "
        f"{rate_text(source.encoded_rows_s)}",
    ]


def _can_read(found: Evidence, readers: int) -> str:
    rate = rate_text(readers * found.source.rows_s)
    return f"{count_text(readers, 'process', 'processes')} can read {rate} rows/s"


def _for_source(found: Evidence, readers: int) -> str:
    if readers < found.workers:
        return "more files, or plain ones: a compressed file is read by one process"
    return "a faster disk or store, or Parquet"
