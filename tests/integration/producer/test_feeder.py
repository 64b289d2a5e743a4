"""The feeder appends a job's units to the ledger, each once, also after an interruption."""

from __future__ import annotations

import gzip
import json
import time
from pathlib import Path

import pytest
import redis

from producer.plan.units import split_sources
from producer.run.feed import Feeder
from producer.text import count_text
from ringhaul.formats.split import Position
from ringhaul.ledger.connection import LedgerRefused
from ringhaul.ledger.ledger import BATCH_UNITS, Ledger
from ringhaul.ledger.states import JobState
from ringhaul.records.job import LoadJob
from ringhaul.records.unit import LoadUnit
from tests.loads import load_job, load_source, table_schema

JOB = "ld-000001"
TABLE = table_schema({"id": "int"}, ["id"])


def make_job(ledger: Ledger, path: Path, records_count: int) -> LoadJob:
    """Create a job in the ledger with a unit for each record of a file."""
    path.write_text("".join(f"{number:04}\n" for number in range(records_count)))
    source = load_source(["id"], path=str(path), size_bytes=path.stat().st_size)
    job = load_job(TABLE, source, unit_bytes=1)
    ledger.create(JOB, {}, json.dumps(job.to_json()))
    return job


def feed(ledger: Ledger, job: LoadJob) -> Feeder:
    feeder = Feeder(ledger, JOB, ledger.status(JOB).epoch, job)
    feeder.start()
    feeder.join(30)
    assert feeder.finished
    return feeder


def units_of(ledger: Ledger) -> list[LoadUnit]:
    found = list(ledger.unit_specs(JOB))
    assert [number for number, _ in found] == list(range(len(found)))
    return [LoadUnit.unpack(spec) for _, spec in found]


def test_all_units_are_appended_in_order_and_the_job_is_sealed(
    ledger: Ledger, tmp_path: Path
) -> None:
    # Given more units than one append takes
    job = make_job(ledger, tmp_path / "in.csv", 2 * BATCH_UNITS + 7)
    feeder = feed(ledger, job)
    assert (feeder.error, feeder.bytes_split) == (None, job.total_bytes)
    assert units_of(ledger) == list(split_sources(job))
    status = ledger.status(JOB)
    assert (status.sealed, status.units, status.state) == (True, 1007, JobState.RUNNING)


@pytest.mark.parametrize("there_already", [1, 499, 500, 501, 1007])
def test_a_second_feeder_adds_the_missing_units_of_a_killed_one(
    ledger: Ledger, tmp_path: Path, there_already: int
) -> None:
    # Given a job whose producer was killed after it had appended some units
    job = make_job(ledger, tmp_path / "in.csv", 1007)
    specs = [unit.pack() for unit in split_sources(job)]
    for first in range(0, there_already, 100):
        ledger.add_units(JOB, 1, first, specs[first : min(first + 100, there_already)])
    # When another one feeds it
    assert feed(ledger, job).error is None
    # Then every unit is in the ledger once
    assert units_of(ledger) == list(split_sources(job))
    assert ledger.status(JOB).sealed


def test_a_job_without_records_is_complete_at_once(ledger: Ledger, tmp_path: Path) -> None:
    job = make_job(ledger, tmp_path / "in.csv", 0)
    assert feed(ledger, job).error is None
    status = ledger.status(JOB)
    assert (status.state, status.units, status.sealed) == (JobState.COMPLETE, 0, True)


def test_an_ended_job_gets_no_more_units(ledger: Ledger, tmp_path: Path) -> None:
    job = make_job(ledger, tmp_path / "in.csv", 10)
    ledger.cancel(JOB)
    assert feed(ledger, job).error is None
    status = ledger.status(JOB)
    assert (status.state, status.units, status.sealed) == (JobState.CANCELLED, 0, False)


def test_an_input_that_cannot_be_split_fails_the_job_with_the_reason(
    ledger: Ledger, tmp_path: Path
) -> None:
    # Given a truncated archive, whose records must be counted for the next file
    packed = gzip.compress(b"1\n" * 100_000)[:-20]
    (tmp_path / "1.csv.gz").write_bytes(packed)
    (tmp_path / "2.csv").write_text("1\n")
    job = load_job(
        TABLE,
        load_source(["id"], path=str(tmp_path / "1.csv.gz"), size_bytes=len(packed), whole=True),
        load_source(["id"], path=str(tmp_path / "2.csv"), size_bytes=2, start=Position(0, 0, 1)),
    )
    ledger.create(JOB, {}, json.dumps(job.to_json()))
    feeder = feed(ledger, job)
    status = ledger.status(JOB)
    assert status.state is JobState.FAILED
    assert status.last_error == str(feeder.error)
    assert "1.csv.gz: cannot be decompressed as .gz" in str(feeder.error)


@pytest.mark.parametrize(("before", "now", "sealed"), [(5, 1, False), (5, 1, True), (2, 5, True)])
def test_a_file_with_other_units_than_before_fails_the_job(
    ledger: Ledger, tmp_path: Path, before: int, now: int, sealed: bool
) -> None:
    # Given a job with all its units, whose file was rewritten with the same size
    path = tmp_path / "in.csv"
    job = make_job(ledger, path, before)
    ledger.add_units(JOB, 1, 0, [unit.pack() for unit in split_sources(job)])
    if sealed:
        ledger.seal(JOB, 1, before)
    path.write_text(f"{{:0{job.total_bytes // now - 1}}}\n".format(1) * now)
    assert path.stat().st_size == job.total_bytes
    # When another command feeds it
    feeder = feed(ledger, job)
    # Then the job fails with that reason, and the feeder does not loop forever
    status = ledger.status(JOB)
    assert (status.state, status.last_error) == (JobState.FAILED, str(feeder.error))
    message = f"the input has {count_text(now, 'unit')} now and had {before} when the job started"
    assert str(feeder.error).startswith(message)


def test_the_feeder_waits_for_a_ledger_that_refuses_writes(ledger: Ledger, tmp_path: Path) -> None:
    # Given a job whose Redis has lost its replicas, and accepts writes only with one
    job = make_job(ledger, tmp_path / "in.csv", 10)
    client = ledger.caller.client
    feeder = Feeder(ledger.with_patience(100), JOB, 1, job)
    client.config_set("min-replicas-to-write", 1)
    try:
        feeder.start()
        feeder.join(1)
        assert not feeder.finished
    finally:
        client.config_set("min-replicas-to-write", 0)
    # When they are back, then all units are appended
    feeder.join(30)
    assert (feeder.finished, feeder.error) == (True, None)
    assert ledger.status(JOB).state is JobState.RUNNING
    assert units_of(ledger) == list(split_sources(job))


class Unwilling(Ledger):
    """A ledger whose `fail` raises the given error the first few times."""

    def __init__(self, ledger: Ledger, error: Exception, times: int) -> None:
        super().__init__(ledger.caller.client)
        self.error, self.times, self.called_at_s = error, times, list[float]()

    def fail(
        self, job: str, reason: str, *, epoch: int | None = None, by: str = "", cause: str = ""
    ) -> JobState:
        self.called_at_s.append(time.monotonic())
        if len(self.called_at_s) <= self.times:
            raise self.error
        return super().fail(job, reason)


def unsplittable(ledger: Ledger, path: Path) -> LoadJob:
    """Create a job in the ledger whose file was deleted."""
    job = make_job(ledger, path, 3)
    path.unlink()
    return job


def test_the_feeder_pauses_between_attempts_to_fail_the_job(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("producer.run.feed.FAIL_PAUSE_S", 0.2)
    unwilling = Unwilling(ledger, redis.ResponseError("ERR something odd"), 3)
    feeder = feed(unwilling, unsplittable(ledger, tmp_path / "in.csv"))
    called_at_s = unwilling.called_at_s
    assert len(called_at_s) == 4
    assert called_at_s[-1] - called_at_s[0] >= 3 * 0.2
    # And the final error is the original reason
    assert "in.csv" in str(feeder.error)
    assert ledger.status(JOB).last_error == str(feeder.error)


def test_a_feeder_without_rights_ends(ledger: Ledger, tmp_path: Path) -> None:
    # Given a job that cannot continue, and a ledger that now refuses its user
    unwilling = Unwilling(ledger, LedgerRefused("Redis refuses"), 1 << 60)
    feeder = feed(unwilling, unsplittable(ledger, tmp_path / "in.csv"))
    assert len(unwilling.called_at_s) == 1
    assert "in.csv" in str(feeder.error)
