"""A look at a job in a real ledger: its units, in time and by host, and what failed."""

from __future__ import annotations

import json
from urllib.parse import urlsplit

import pytest

from producer.figures.job_detail import Known, look_at_job
from producer.figures.unit_detail import LISTED_MAX
from producer.report.job_html import job_body
from ringhaul.ledger import keys
from ringhaul.ledger.answers import Claimed
from ringhaul.ledger.audit import JobDamaged
from ringhaul.ledger.connection import connect
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.reading import JobMissing
from ringhaul.output.unloadable_rows import Unloadable
from ringhaul.records.rejects import Reject, RejectLog
from ringhaul.records.unit import LoadUnit, UnitResult
from ringhaul.scan.ranges import TokenRange, pack_ranges
from ringhaul.scan.result import ReadResult
from tasks.kinds import read_job
from tests.loads import load_job, load_source, table_schema
from tests.unit.producer.figures.test_scan_summary import job as unload

JOB = "ld-look"
ROWS = 1000


def create(ledger: Ledger, units: int) -> None:
    job = load_job(table_schema({"id": "int"}, ["id"]), load_source(["id"], path="/data/a.csv"))
    labels = {"kind": "load", "table": "shop.orders", "command": "ringhaul load /data/a.csv"}
    ledger.create(JOB, labels, json.dumps(job.to_json()))
    specs = [LoadUnit(0, n * 100, 100, n, n + 1, 1).pack() for n in range(units)]
    ledger.add_units(JOB, 1, 0, specs)
    ledger.seal(JOB, 1, units)


def claim(ledger: Ledger, unit: int, host: str = "host1") -> Claimed:
    ledger.issue(JOB, 10_000)
    claimed = ledger.claim(JOB, unit, 1, f"t{unit}@celery@{host}:7", 60_000)
    assert isinstance(claimed, Claimed)
    return claimed


def commit(
    ledger: Ledger, unit: int, host: str = "host1", *, ms: int = 100, rejected: int = 0
) -> None:
    claimed = claim(ledger, unit, host)
    log = RejectLog()
    log.add(
        Reject(
            file="/data/a.csv",
            offset=unit * 100,
            length=3,
            line=unit + 1,
            stage="cast",
            column="id",
            reason='"zz" is not a whole number',
            data=b"zz",
        )
        for _ in range(rejected)
    )
    result = UnitResult(
        source=0,
        records=ROWS + rejected,
        dropped=0,
        filtered=0,
        written=ROWS,
        rejected=rejected,
        input_bytes=100,
        retries=0,
        elapsed_ms=ms,
        cpu_ms=1,
        attempt=claimed.attempt,
        rss_bytes_max=1,
        window_min=0,
        window_max=0,
        window_shrunk=0,
        sstables=0,
        missed=0,
        worker=f"{host}:7",
    )
    totals = {"rows": ROWS, "rejected": rejected, "bytes": 100, "retries": 0}
    ledger.commit(
        JOB, unit, 1, f"t{unit}@celery@{host}:7", result.pack(), totals, {"40": 1}, log.blob()
    )


def test_a_running_job_with_a_unit_that_fails(ledger: Ledger) -> None:
    # Given units that are done on two hosts, one at work, one that failed, one not started
    create(ledger, 6)
    commit(ledger, 0, "host1", ms=50)
    commit(ledger, 1, "host1", ms=900, rejected=2)
    commit(ledger, 2, "host2", ms=70)
    claim(ledger, 3, "host2")
    claim(ledger, 4, "host1")
    ledger.release(JOB, 4, "t4@celery@host1:7", "no replica answers", blamed=True, delay_ms=60_000)

    found = look_at_job(ledger, JOB, show_data=False)

    assert (found.kind, found.table, found.snapshot.state) == ("load", "shop.orders", "RUNNING")
    assert (found.snapshot.units_done, found.snapshot.units, found.snapshot.rows) == (
        3,
        6,
        3 * ROWS,
    )
    assert [(line.unit, line.state) for line in found.slowest[:1]] in (
        [(1, "done")],
        [(3, "running")],
    )
    assert {line.unit for line in found.slowest} == {0, 1, 2, 3}
    (failing,) = found.failing
    assert (failing.unit, failing.state, failing.attempts) == (4, "waiting", 1)
    assert failing.place == "/data/a.csv, bytes 400 to 500"
    assert failing.note == "no replica answers"
    assert [(one.host, one.units, one.rows, one.rejected) for one in found.hosts] == [
        ("host1", 2, 2 * ROWS, 2),
        ("host2", 1, ROWS, 0),
    ]
    assert (found.timeline.units, found.timeline.lanes) == (4, ("host1:7", "host2:7"))
    assert all(
        0 <= bar.start_s <= bar.end_s <= found.timeline.seconds for bar in found.timeline.bars
    )
    (group,) = found.rejects.groups
    assert (group.count, group.samples[0].reason, group.samples[0].record) == (2, "", "")
    assert found.end.exit_code == 7
    assert found.end.next_commands == (f"ringhaul status -f {JOB}",)
    assert found.command == "ringhaul load /data/a.csv"
    assert {figure.name: figure.value for figure in found.end.figures}["rows"] == 3 * ROWS
    # With data, and without the second look at the results
    found = look_at_job(ledger, JOB, show_data=True, whole=False)
    assert found.rejects.groups[0].samples[0].record == "zz"
    assert (found.end.figures, found.end.exit_code) == ((), 7)
    job_body(found)


def test_when_units_ended_is_kept_as_long_as_the_job(ledger: Ledger) -> None:
    create(ledger, 3)
    commit(ledger, 2)
    ends = ledger.unit_ends(JOB)
    assert (len(ends), ends[:2]) == (3, (0, 0))
    assert 0 < ends[2] < 60_000
    commit(ledger, 0)
    commit(ledger, 1)
    ends = ledger.unit_ends(JOB)
    assert ends[2] <= ends[0] <= ends[1]
    client = ledger.caller.client
    key, meta = keys.job_key(JOB, "ends"), keys.job_key(JOB, "meta")
    assert abs(client.pexpiretime(key) - client.pexpiretime(meta)) < 1000
    # A job of an older version has none, and is shown without a timeline
    client.delete(key)
    found = look_at_job(ledger, JOB, show_data=False)
    assert (found.timeline.bars, found.snapshot.state) == ((), "COMPLETE")
    job_body(found)


def test_a_later_look_reads_only_what_is_new(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    units = 2 * keys.UNITS_PER_BUCKET
    create(ledger, units)
    for unit in range(units - 1):
        commit(ledger, unit)
    known = Known()
    first = look_at_job(ledger, JOB, show_data=False, known=known)
    assert len(first.slowest) == LISTED_MAX
    read: list[str] = []
    real = ledger.caller.command

    def command(*words: object) -> object:
        read.extend(str(word) for word in words if ":results:" in str(word))
        return real(*words)

    monkeypatch.setattr(ledger.caller, "command", command)
    commit(ledger, units - 1, "host9")
    last = look_at_job(ledger, JOB, show_data=False, known=known, whole=False)
    assert read == [keys.bucket_key(JOB, "results", units - 1)]
    assert sum(host.units for host in last.hosts) == units
    assert last.hosts[-1].host == "host9"
    # Of a job that has ended, nothing is read twice; the figures are there all the same
    ended = look_at_job(ledger, JOB, show_data=False, known=known)
    del read[:]
    again = look_at_job(ledger, JOB, show_data=False, known=known)
    assert read == []
    assert (again.hosts, again.end) == (ended.hosts, ended.end)
    assert {figure.name: figure.value for figure in again.end.figures}["rows"] == units * ROWS


def test_rejects_are_grouped_again_when_there_are_more(ledger: Ledger) -> None:
    create(ledger, 3)
    commit(ledger, 0, rejected=2)
    known = Known()
    for show_data, record in ((False, ""), (True, "zz"), (False, "")):
        found = look_at_job(ledger, JOB, show_data=show_data, known=known).rejects
        assert (found.groups[0].count, found.groups[0].samples[0].record) == (2, record)
    commit(ledger, 1, rejected=3)
    assert look_at_job(ledger, JOB, show_data=False, known=known).rejects.groups[0].count == 5
    cut = look_at_job(ledger, JOB, show_data=False, known=known, rejects_max=4).rejects
    assert (cut.groups[0].count, cut.whole) == (4, False)


def test_the_key_of_a_row_is_data(ledger: Ledger) -> None:
    """An unload names one of the rows that a load cannot put back."""
    row = Unloadable("tags", "an empty element", 1, "name = 'Kx9-secret'")
    result = ReadResult(
        *(1, 0, 0, 0, 1, 10, 1, 10, 1, 0, 0, 5, 5, 1, 100),
        worker="host1:7",
        unloadable=(row,),
    )
    ledger.create(JOB, {"kind": "unload", "table": "shop.orders"}, json.dumps(unload().to_json()))
    ledger.add_units(JOB, 1, 0, [pack_ranges([TokenRange(1, 2)])])
    ledger.seal(JOB, 1, 1)
    claim(ledger, 0)
    totals = {"rows": 1, "rejected": 0, "bytes": 10, "retries": 0}
    ledger.commit(JOB, 0, 1, "t0@celery@host1:7", result.pack(), totals)
    shown = look_at_job(ledger, JOB, show_data=True)
    assert any("name = 'Kx9-secret'" in line for line in shown.end.verdict)
    hidden = look_at_job(ledger, JOB, show_data=False)
    assert any("column tags: an empty element" in line for line in hidden.end.verdict)
    assert "Kx9-secret" not in job_body(hidden)
    assert (hidden.slowest[0].place, hidden.hosts[0].rows) == ("tokens 1 to 2", 1)


def test_a_job_that_is_not_there_or_not_whole(ledger: Ledger) -> None:
    with pytest.raises(JobMissing):
        look_at_job(ledger, JOB, show_data=False)
    create(ledger, 2)
    commit(ledger, 0, rejected=1)
    commit(ledger, 1)
    ledger.caller.client.delete(keys.job_key(JOB, "extras"))
    with pytest.raises(JobDamaged, match="DAMAGED"):
        look_at_job(ledger, JOB, show_data=False)


@pytest.mark.parametrize(
    "spec",
    ["", "{", "{}", "[]", "null", '"load"', '{"kind":"load"}', '{"kind":"x"}', '{"kind":[]}'],
)
def test_a_job_whose_spec_cannot_be_read(ledger: Ledger, spec: str) -> None:
    create(ledger, 1)
    ledger.caller.command("SET", keys.job_key(JOB, "spec"), spec)
    with pytest.raises(JobDamaged, match="spec cannot be read"):
        look_at_job(ledger, JOB, show_data=False, whole=False)
    with pytest.raises(JobDamaged, match="spec cannot be read"):
        read_job(ledger, JOB)


def test_a_user_who_may_not_ask_the_server_gets_a_report(ledger: Ledger, broker_url: str) -> None:
    create(ledger, 1)
    commit(ledger, 0)
    client = ledger.caller.client
    client.acl_setuser(
        "watcher", enabled=True, nopass=True, keys=["*"], categories=["+@all"], commands=["-info"]
    )
    try:
        parts = urlsplit(broker_url)
        url = f"redis://watcher:any@{parts.hostname}:{parts.port}{parts.path}"
        found = look_at_job(Ledger(connect(url)), JOB, show_data=False)
    finally:
        client.acl_deluser("watcher")
    assert found.snapshot.rows == ROWS
    assert "broker" not in {one.name for one in found.environment}
    assert "broker" in {one.name for one in look_at_job(ledger, JOB, show_data=False).environment}
