"""One unit in a worker process: claim, run, commit; counted once, whatever comes twice or late."""

from __future__ import annotations

import socket
import time
from dataclasses import replace

import pytest
from cassandra.cluster import Session

from ringhaul.ledger.answers import Claimed
from ringhaul.ledger.history import EventKind, History
from ringhaul.ledger.ledger import new_token
from ringhaul.ledger.limits import ErrorLimit
from ringhaul.ledger.states import JobState
from ringhaul.load.report import build_report
from ringhaul.records.rejects import unpack_rejects
from ringhaul.records.unit import UnitResult
from tasks.base import attempt_token
from tasks.child.load import run_load
from tasks.child.process import Child
from tasks.child.unit import Attempt, Done
from tasks.child.unit import work as work_on
from tests.integration.load.conftest import read_table
from tests.integration.tasks.child.messages import JOB, LEASE_MS, work
from tests.integration.tasks.conftest import MakeJob


def test_units_in_any_order_and_twice_are_counted_once(
    child: Child, make_job: MakeJob, keyspace: str, cassandra_session: Session
) -> None:
    # Given a job of many units, with repeated keys and some bad records
    records = [f"{i % 70},v{i}" if i % 9 else f"x{i},bad" for i in range(300)]
    job = make_job(JOB, records)
    units = child.ledger.status(JOB).units
    assert units > 20
    # When its units run from the last to the first, every other one with two messages
    for unit in reversed(range(units)):
        result = work(child, JOB, unit, 1, new_token())
        assert set(result) == {"unit", "rows", "rejected"}
        if unit % 2:
            again = work(child, JOB, unit, 1, new_token())
            assert again["skipped"] in ("DONE", "STOP")
    # Then the ledger has every record once
    status = child.ledger.status(JOB)
    assert (status.state, status.pending, status.leased, status.issued) == (
        JobState.PARTIAL,
        0,
        0,
        0,
    )
    bad = [i for i in range(300) if not i % 9]
    assert status.totals == {
        "rows": 300 - len(bad),
        "rejected": len(bad),
        "bytes": job.total_bytes,
        "retries": 0,
    }
    # And the report, which uses only the results, has the same counts
    results = [UnitResult.unpack(packed) for _, packed in child.ledger.results(JOB)]
    report = build_report(["in.csv"], results, {})
    assert (report.units, report.records, report.written) == (units, 300, 300 - len(bad))
    assert report.repeated_units == 0
    assert report.workers == {child.name: units}
    # And the rejects are the bad records in the order of the file, with their original bytes
    rejects = [r for _, blob in child.ledger.extras(JOB) for r in unpack_rejects(blob)]
    assert [r.line for r in rejects] == [i + 1 for i in bad]
    assert [r.data for r in rejects] == [records[i].encode() for i in bad]
    # And the table has the last record of each key, although it was written first
    last = {i % 70: i for i in range(300) if i % 9}
    assert read_table(cassandra_session, keyspace, "id, v, writetime(v)") == sorted(
        ((key, f"v{i}", job.base_us + i) for key, i in last.items()), key=repr
    )
    # And each request has a latency
    assert sum(child.ledger.latencies(JOB).values()) >= units


def test_a_unit_of_another_attempt_is_left_to_it(child: Child, make_job: MakeJob) -> None:
    make_job(JOB, ["1,a"])
    assert isinstance(child.ledger.claim(JOB, 0, 1, new_token(), LEASE_MS), Claimed)
    assert work(child, JOB, 0, 1, new_token()) == {"unit": 0, "skipped": "BUSY"}


@pytest.mark.parametrize(("unit", "epoch", "answer"), [(9, 1, "UNKNOWN"), (0, 2, "STOP")])
def test_stale_messages_are_dropped(
    child: Child, make_job: MakeJob, unit: int, epoch: int, answer: str
) -> None:
    make_job(JOB, ["1,a"])
    assert work(child, JOB, unit, epoch, new_token()) == {"unit": unit, "skipped": answer}


def test_a_message_of_a_forgotten_job_is_dropped(child: Child) -> None:
    result = work(child, "ld-ffffff", 0, 1, new_token())
    assert result["skipped"].startswith("there is no job ld-ffffff")


def test_a_job_of_another_cluster_is_left_to_its_own_workers(
    child: Child, make_job: MakeJob
) -> None:
    # Given a job planned for another cluster
    make_job(JOB, ["1,a"], cluster_name="production")
    result = work(child, JOB, 0, 1, new_token())
    # Then nothing is claimed or written, and the message has both names
    assert "'production'" in result["skipped"]
    assert "'ringhaul local'" in result["skipped"]
    status = child.ledger.status(JOB)
    assert (status.leased, status.pending, status.totals.get("rows", 0)) == (0, 1, 0)


def test_units_of_a_cancelled_job_do_not_run(child: Child, make_job: MakeJob) -> None:
    make_job(JOB, ["1,a"])
    child.ledger.cancel(JOB)
    assert work(child, JOB, 0, 1, new_token()) == {"unit": 0, "skipped": "STOP"}


def test_a_job_is_stopped_by_one_reject_too_many(child: Child, make_job: MakeJob) -> None:
    # Given a job that allows two rejects
    make_job(JOB, ["x,1", "y,2", "z,3", "4,d"], max_errors="2", unit_bytes=1)
    assert child.ledger.status(JOB).units == 4
    states = []
    for unit in range(4):
        work(child, JOB, unit, 1, new_token())
        states.append(child.ledger.status(JOB).state)
    # Then the third one ends it, and the fourth record is not loaded
    assert states == [JobState.RUNNING, JobState.RUNNING, JobState.STOPPED, JobState.STOPPED]
    assert child.ledger.status(JOB).totals["rows"] == 0


def test_a_unit_with_too_many_rejects_stops_early_and_runs_again_after_a_resume(
    child: Child, make_job: MakeJob
) -> None:
    # Given a unit of many blocks whose first records are bad
    records = [f"x{i},bad" for i in range(500)] + [f"{i},good" for i in range(500)]
    make_job(JOB, records, max_errors="10", unit_bytes=1 << 20, block_bytes=200)
    result = work(child, JOB, 0, 1, new_token())
    # Then it ends at the next block, and its rejects so far are stored
    status = child.ledger.status(JOB)
    assert (status.state, status.done, status.pending, status.leased) == (JobState.STOPPED, 0, 1, 0)
    found = [r for _, blob in child.ledger.extras(JOB) for r in unpack_rejects(blob)]
    assert 10 < len(found) < 50
    assert result == {"unit": 0, "stopped": f"{len(found)} records were rejected"}
    assert [r.line for r in found] == list(range(1, len(found) + 1))
    assert status.live.rejected == len(found)
    assert (status.totals.get("rejected", 0), list(child.ledger.results(JOB))) == (0, [])
    # And a resume that allows them runs the complete unit, and counts each record once
    epoch = child.ledger.resume(JOB, error_limit=ErrorLimit())
    assert list(child.ledger.extras(JOB)) == []
    child.ledger.issue(JOB, 10)
    work(child, JOB, 0, epoch, new_token())
    status = child.ledger.status(JOB)
    assert (status.state, status.done) == (JobState.PARTIAL, 1)
    assert (status.totals["rows"], status.totals["rejected"]) == (500, 500)
    rejects = [r for _, blob in child.ledger.extras(JOB) for r in unpack_rejects(blob)]
    assert [r.line for r in rejects] == list(range(1, 501))


def test_a_repeated_unit_does_not_change_lists(
    child: Child, make_job: MakeJob, cassandra_session: Session, keyspace: str
) -> None:
    # Given a unit whose attempt wrote all of it and ended before the commit
    definition = "id int PRIMARY KEY, tags list<text>"
    make_job(JOB, [f'{i},"[""a{i}"", ""b""]"' for i in range(50)], definition=definition)
    units = child.ledger.status(JOB).units

    def half(attempt: Attempt) -> Done:
        run_load(attempt)
        raise SystemExit

    for unit in range(units):
        with pytest.raises(SystemExit):
            work_on(child, JOB, unit, 1, new_token(), half)
    # When it runs once more
    for unit in child.ledger.issue(JOB, 1000).units:
        work(child, JOB, unit, 1, new_token())
    # Then each element exists once
    assert child.ledger.status(JOB).totals["rows"] == 50
    assert read_table(cassandra_session, keyspace, "id, tags") == sorted(
        ((i, [f"a{i}", "b"]) for i in range(50)), key=repr
    )


def test_what_a_unit_noticed_is_in_the_history_of_its_job(child: Child, make_job: MakeJob) -> None:
    job = make_job(JOB, [f"{i},v" for i in range(20)], unit_bytes=1 << 20)
    assert child.ledger.status(JOB).units == 1
    (host,) = child.session().cluster.metadata.all_hosts()[:1]
    seen: list[int] = []

    def run(attempt: Attempt) -> Done:
        done = run_load(attempt)
        # While requests are unanswered, as a renewal reports them
        wire = child.plane().connection(host)
        assert wire is not None
        wire.window.sent(None, 0, 5, 100, time.monotonic())
        until_s = time.monotonic() + 10
        while tick(attempt) != 5:
            assert time.monotonic() < until_s, "no renewal"
            time.sleep(0.05)
        seen.append(child.ledger.status(JOB).leased)
        # and a node that is left alone, for one reason twice
        wire.window.lost()
        for reason in ("no answer", "no answer", "silent"):
            child.plane().drop(host, f"{host.address}: {reason}")
        return replace(done, window_shrunk=2, window_min=96)

    def tick(attempt: Attempt) -> int:
        attempt.tick(20, 0, job.total_bytes)
        return child.ledger.status(JOB).live.in_flight

    token = attempt_token("task", f"celery@{socket.gethostname()}", 1)
    assert work_on(child, JOB, 0, 1, token, run) == {"unit": 0, "rows": 20, "rejected": 0}
    assert seen == [1]
    found = History(child.ledger.caller).events(JOB)
    noticed = [(event.kind, event.text, event.unit) for event in found if event.unit == 0][1:]
    assert noticed == [
        (EventKind.NODE_REST, f"{host.address}: no answer", 0),
        (EventKind.NODE_REST, f"{host.address}: silent", 0),
        (EventKind.WINDOW_SHRUNK, "to 96 unanswered requests", 0),
    ]
    assert all(event.by == socket.gethostname() for event in found if event.unit == 0)
    assert found[-1].kind is EventKind.ENDED
