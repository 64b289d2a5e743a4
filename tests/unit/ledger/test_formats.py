"""Which jobs a version reads, and what its workers say about it."""

from __future__ import annotations

import json

import pytest

from ringhaul import __version__
from ringhaul.ledger.formats import (
    FORMAT_KEY,
    JOB_FORMAT,
    READABLE,
    OtherFormat,
    Readable,
    check_format,
)
from ringhaul.ledger.workers import Worker, pack_worker, unpack_worker
from tasks.kinds import job_of, spec_of
from tests.cases import each
from tests.loads import load_job, table_schema


def test_a_job_states_its_format_and_is_read() -> None:
    job = load_job(table_schema({"id": "int"}, ["id"]))
    spec = json.loads(spec_of(job))
    assert spec[FORMAT_KEY] == JOB_FORMAT
    assert job_of(json.dumps(spec)) == job
    # Versions before formats had numbers wrote none
    del spec[FORMAT_KEY]
    assert job_of(json.dumps(spec)) == job


def test_a_job_of_a_later_format_is_refused_before_the_rest_is_read() -> None:
    with pytest.raises(OtherFormat) as refused:
        job_of(json.dumps({FORMAT_KEY: JOB_FORMAT + 1, "kind": "of a later version"}))
    assert refused.value.job_format == JOB_FORMAT + 1
    assert str(refused.value) == (
        "the job has format 2, of a newer version of ringhaul; this version reads 1: upgrade "
        "ringhaul here"
    )


def test_a_job_of_a_forgotten_format_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ringhaul.ledger.formats.READABLE", Readable(2, 3))
    with pytest.raises(OtherFormat, match=r"format 1, of an older version .* reads 2-3: use the"):
        check_format({"kind": "load"})


@each("value", ["1", 1.0, True, 0, -1, None, [1]], ids=repr)
def test_a_format_that_is_no_number_is_damage(value: object) -> None:
    with pytest.raises(ValueError, match="is no format of a job"):
        check_format({FORMAT_KEY: value})


def test_a_worker_says_its_version_and_what_it_reads() -> None:
    worker = Worker.of_this_version("fe80::1", 7, 4, ("a;b", "c,d", "ringhaul.load@dc:1"))
    assert (worker.version, worker.readable) == (__version__, READABLE)
    assert unpack_worker(pack_worker(worker)) == worker
    odd = worker._replace(version="1.0;2,3:4", readable=Readable(5, 5))
    assert unpack_worker(pack_worker(odd)) == odd


def test_workers_of_earlier_and_later_versions_are_listed() -> None:
    assert unpack_worker("h:1:2:q") == Worker("h", 1, 2, ("q",), "", Readable(1, 1))
    later = unpack_worker("h:1:2:q,;9.9;3-8;more")
    assert later == Worker("h", 1, 2, ("q",), "9.9", Readable(3, 8))
    # An earlier version takes what a member says of the version for one more queue
    host, pid, slots, queues = pack_worker(Worker.of_this_version("h", 1, 2, ("q",))).rsplit(":", 3)
    assert (host, int(pid), int(slots), queues.split(",")[0]) == ("h", 1, 2, "q")


@each(
    ("formats", "read", "unread"),
    [(Readable(1, 1), [1], [0, 2]), (Readable(2, 4), [2, 4], [1, 5])],
)
def test_bounds_of_formats_are_included(
    formats: Readable, read: list[int], unread: list[int]
) -> None:
    assert list(map(formats.has, read)) == [True] * len(read)
    assert list(map(formats.has, unread)) == [False] * len(unread)
    assert Readable.parse(str(formats)) == formats
