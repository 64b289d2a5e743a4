"""Cut trials of `ringhaul tune` out of a load: a sample of its records, with a setup. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from producer.tune.setup import Setup
from ringhaul.destination.cql import UNIT_BYTES_MAX, UNITS_PER_SLOT
from ringhaul.records.job import LoadJob, LoadSource

#: Most files of a sample: each is opened in every trial.
SOURCES_MAX = 200
#: How often a file that is smaller than a sample is loaded, at most.
PASSES_MAX = 50
#: The smallest unit of a trial. A unit of a load would be most of a small sample: only the process
#: that has it would be measured, and others would have nothing to do.
UNIT_BYTES_MIN = 64 << 10


@dataclass(frozen=True, kw_only=True)
class Sample:
    """The records of one trial."""

    sources: Sequence[LoadSource]
    records: int  #: 0: as many as are loaded until the trial is cut off
    bytes_count: int
    passes: int = 1  #: how often the sources are loaded


def first_sources(job: LoadJob) -> Sequence[LoadSource]:
    """Return the sources that a sample is taken from."""
    return job.sources[:SOURCES_MAX]


def cut_sample(
    job: LoadJob,
    *,
    records_wanted: int,
    loaded: int,
    loaded_bytes: int,
    all_loaded: bool,
    repeat: bool,
) -> Sample:
    """Return the sample of a trial with about this many records.

    `loaded`, `loaded_bytes`: records and bytes that a first run loaded; `all_loaded`: it reached
    the end of the sources. `repeat`: a small source may be loaded several times.
    """
    sources = first_sources(job)
    record_bytes = loaded_bytes / max(1, loaded)
    if all_loaded and loaded <= records_wanted:
        passes = min(max(records_wanted // max(1, loaded), 1), PASSES_MAX) if repeat else 1
        return Sample(
            sources=sources,
            records=loaded * passes,
            bytes_count=loaded_bytes * passes,
            passes=passes,
        )
    bytes_count = int(records_wanted * record_bytes)
    if any(source.file.whole for source in sources):
        # How many records a compressed file has is not known before it is read to its end.
        return Sample(sources=sources, records=0, bytes_count=bytes_count)
    return Sample(sources=sources, records=records_wanted, bytes_count=bytes_count)


def trial_job(job: LoadJob, sample: Sample, setup: Setup, slots: int) -> LoadJob:
    """Return the load of one trial. `slots`: worker processes that share it."""
    end = job.ordinal_end
    if sample.records:
        among = len(sample.sources) * sample.passes if job.bounds_per_source else 1
        end = min(end, job.ordinal_first + math.ceil(sample.records / among))
    return replace(
        job,
        sources=tuple(sample.sources) * sample.passes,
        ordinal_end=end,
        strategy=setup.strategy if job.repeatable else job.strategy,
        unit_bytes=setup.unit_bytes or _unit_bytes(sample, slots),
        in_flight_requests_max=setup.in_flight,
        batch_rows_max=setup.batch_rows,
    )


def _unit_bytes(sample: Sample, slots: int) -> int:
    """Return the unit size that is usual, for a load of the sample's size."""
    share = sample.bytes_count // (UNITS_PER_SLOT * slots)
    return min(max(share, UNIT_BYTES_MIN), UNIT_BYTES_MAX)
