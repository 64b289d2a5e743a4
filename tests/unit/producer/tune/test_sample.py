"""Trials are cut out of a load: a sample of its records, with a setup."""

from __future__ import annotations

from dataclasses import replace

import pytest

from producer.tune.sample import PASSES_MAX, SOURCES_MAX, Sample, cut_sample, trial_job
from producer.tune.setup import Setup
from ringhaul.cluster.schema import ColumnSchema, TableSchema
from ringhaul.records.job import ORDINAL_END, LoadJob
from tests.loads import load_job, load_source

MIB = 2**20
TABLE = TableSchema(
    keyspace="shop",
    table="orders",
    columns=(ColumnSchema(name="id", cql_type="int"),),
    partition_key=("id",),
    clustering_key=(),
)
JOB = load_job(TABLE, load_source(["id"], path="/a.csv", size_bytes=100 * MIB), ordinal_first=5)


def sample_of(job: LoadJob, **given: object) -> Sample:
    known = {
        "records_wanted": 1000,
        "loaded": 500,
        "loaded_bytes": 5000,
        "all_loaded": False,
        "repeat": True,
    }
    return cut_sample(job, **(known | given))  # type: ignore[arg-type]


def test_a_sample_is_the_beginning() -> None:
    sample = sample_of(JOB)
    assert (sample.records, sample.bytes_count, sample.passes) == (1000, 10_000, 1)
    job = trial_job(JOB, sample, Setup(workers=2), 2)
    assert (job.ordinal_first, job.ordinal_end) == (5, 1005)
    assert job.sources == JOB.sources


@pytest.mark.parametrize(("wanted", "passes"), [(1000, 2), (499, 1), (10**9, PASSES_MAX)])
def test_a_small_source_is_loaded_several_times(wanted: int, passes: int) -> None:
    sample = sample_of(JOB, records_wanted=wanted, all_loaded=True)
    if wanted < 500:
        assert sample.records == wanted
        return
    assert sample.passes == passes and sample.records == 500 * passes
    job = trial_job(JOB, sample, Setup(workers=1), 1)
    assert len(job.sources) == passes
    assert job.ordinal_end == 5 + 500 * passes
    # In place it is not: write times of further passes would be in the future
    assert sample_of(JOB, records_wanted=wanted, all_loaded=True, repeat=False).passes == 1


def test_compressed_files_are_loaded_until_the_trial_is_cut_off() -> None:
    source = replace(JOB.sources[0], file=JOB.sources[0].file._replace(whole=True))
    job = replace(JOB, sources=(source,) * (SOURCES_MAX + 50))
    sample = sample_of(job)
    assert sample.records == 0 and len(sample.sources) == SOURCES_MAX
    assert trial_job(job, sample, Setup(), 3).ordinal_end == ORDINAL_END


def test_the_records_that_are_wanted_bound_it() -> None:
    job = replace(JOB, ordinal_end=105)
    assert trial_job(job, sample_of(job), Setup(), 1).ordinal_end == 105


def test_bounds_of_each_file_share_the_records_of_a_sample() -> None:
    two = tuple(load_source(["id"], path=f"/{n}.csv", size_bytes=100 * MIB) for n in "ab")
    job = replace(JOB, sources=two, bounds_per_source=True)
    assert trial_job(job, sample_of(job), Setup(), 1).ordinal_end == 5 + 500
    job = replace(job, ordinal_end=9)
    assert trial_job(job, sample_of(job), Setup(), 1).ordinal_end == 9


def test_a_trial_has_the_setup() -> None:
    setup = Setup(strategy="single", workers=2, batch_rows=3, in_flight=64, unit_bytes=MIB)
    job = trial_job(JOB, sample_of(JOB), setup, 2)
    assert (job.strategy, job.batch_rows_max, job.in_flight_requests_max, job.unit_bytes) == (
        *("single", 3, 64, MIB),
    )


@pytest.mark.parametrize(
    ("bytes_count", "slots", "unit_bytes"),
    [(MIB, 2, 128 * 2**10), (MIB, 8, 64 * 2**10), (10_000 * MIB, 1, 64 * MIB)],
)
def test_every_process_gets_four_units_of_a_sample(
    bytes_count: int, slots: int, unit_bytes: int
) -> None:
    sample = replace(sample_of(JOB), bytes_count=bytes_count)
    assert trial_job(JOB, sample, Setup(), slots).unit_bytes == unit_bytes
