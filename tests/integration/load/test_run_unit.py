"""One unit on a real node: every record becomes a row, with the timestamp of its place, or a
reject."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from cassandra.cluster import Session

from ringhaul.dataplane.base import RequestFailed
from ringhaul.errors import ClusterError, SourceChanged
from ringhaul.load.run import run_load_unit
from ringhaul.load.statement import insert_statement
from ringhaul.load.write import WRITERS, RequestBounds
from ringhaul.records.account import UnitHooks
from ringhaul.records.row_fields import TTL_S_MAX
from ringhaul.records.unit import TO_THE_END, LoadUnit
from ringhaul.sources.source import SourceFile
from tests.integration.load.conftest import (
    Ticks,
    connected_target,
    make_table,
    read_table,
    run_file,
)
from tests.loads import load_job, load_source, rejects_of
from tests.throttles import Limited

STRATEGIES = sorted(WRITERS)
BASE_US = 1_700_000_000_000_000


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_record_is_in_the_table_or_among_the_rejects(
    worker_session: Session, keyspace: str, tmp_path: Path, strategy: str
) -> None:
    # Given a file in which every 50th record has a bad value, over several blocks
    table = make_table(worker_session, keyspace, "id int PRIMARY KEY, v text, n bigint")
    records = [
        f"{i},v{i},{'bad' if i % 50 == 49 else '' if i % 7 == 0 else i * i}" for i in range(3000)
    ]
    path = tmp_path / "in.csv"
    path.write_text("\n".join(records) + "\n")
    # When its only unit runs
    ticks = Ticks()
    outcome = run_file(
        worker_session,
        table,
        path,
        ["id", "v", "n"],
        strategy=strategy,
        block_bytes=8192,
        ticks=ticks,
        base_us=BASE_US,
    )
    # Then the counts are exact
    assert (outcome.records, outcome.written, len(rejects_of(outcome))) == (3000, 2940, 60)
    assert outcome.input_bytes == path.stat().st_size
    assert outcome.retries == 0
    # And the table holds every good record with the timestamp of its place
    assert read_table(worker_session, keyspace, "id, v, n, writetime(v)") == sorted(
        [
            (i, f"v{i}", None if i % 7 == 0 else i * i, BASE_US + i)
            for i in range(3000)
            if i % 50 != 49
        ],
        key=repr,
    )
    # And the rejects list the others in order
    assert [(r.line, r.column, r.stage) for r in rejects_of(outcome)] == [
        (i + 1, "n", "cast") for i in range(49, 3000, 50)
    ]
    assert [r.data for r in rejects_of(outcome)] == [
        records[i].encode() for i in range(49, 3000, 50)
    ]
    # And its reported progress only grew, up to the final counts
    assert len(ticks.seen) >= 5
    assert ticks.seen == sorted(ticks.seen)
    assert all(rows >= 0 and rejected >= 0 for rows, rejected, _ in ticks.seen)
    assert ticks.seen[-1][1:] == (60, path.stat().st_size)
    # And there is a latency for each request
    assert sum(outcome.latencies.values()) >= (2940 if strategy == "single" else 294)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_last_record_of_a_key_wins_completely(
    worker_session: Session, keyspace: str, tmp_path: Path, strategy: str
) -> None:
    table = make_table(worker_session, keyspace, "id int PRIMARY KEY, v text, n int")
    path = tmp_path / "in.csv"
    path.write_text("".join(f"{i % 10},v{i},{i}\n" for i in range(2000)))
    # When a file with 200 records for each key is loaded, and then loaded again
    for _ in range(2):
        run_file(worker_session, table, path, ["id", "v", "n"], strategy=strategy, base_us=BASE_US)
    # Then each key has the values of its last record
    assert read_table(worker_session, keyspace, "id, v, n, writetime(n)") == sorted(
        ((i % 10, f"v{i}", i, BASE_US + i) for i in range(1990, 2000)), key=repr
    )


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_missing_values_keep_or_delete_old_values(
    worker_session: Session, keyspace: str, tmp_path: Path, strategy: str
) -> None:
    # Given rows with values
    table = make_table(worker_session, keyspace, "id int PRIMARY KEY, v text, n int")
    path = tmp_path / "in.csv"
    path.write_text("1,a,1\n2,b,2\n")
    run_file(worker_session, table, path, ["id", "v", "n"], strategy=strategy, base_us=BASE_US)
    # When records without a value are loaded over them, unset
    path.write_text('1,,10\n2,"",20\n')
    options = {"strategy": strategy, "base_us": BASE_US + 100}
    run_file(worker_session, table, path, ["id", "v", "n"], **options)
    # Then the old value stays for a missing one, and a quoted empty string is written
    assert read_table(worker_session, keyspace, "id, v, n") == [(1, "a", 10), (2, "", 20)]
    # When the same records are loaded with tombstones, then it is deleted
    run_file(
        worker_session,
        table,
        path,
        ["id", "v", "n"],
        strategy=strategy,
        base_us=BASE_US + 200,
        nulls="tombstone",
    )
    assert read_table(worker_session, keyspace, "id, v, n") == [(1, None, 10), (2, "", 20)]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_rows_get_the_ttl(
    worker_session: Session, keyspace: str, tmp_path: Path, strategy: str
) -> None:
    table = make_table(worker_session, keyspace, "id int PRIMARY KEY, v text")
    path = tmp_path / "in.csv"
    path.write_text("1,a\n2,b\n")
    run_file(worker_session, table, path, ["id", "v"], strategy=strategy, ttl_s=5000)
    for _, left_s in read_table(worker_session, keyspace, "id, ttl(v)"):
        assert 4900 < left_s <= 5000


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("ttl_s", [0, 2000])
def test_write_times_and_ttls_of_records_are_those_of_their_rows(
    worker_session: Session, keyspace: str, tmp_path: Path, strategy: str, ttl_s: int
) -> None:
    # Given a table with a default TTL, and records with a write time and a TTL, with one of them,
    # with neither, and with bad ones
    table = make_table(worker_session, keyspace, "id int PRIMARY KEY, v text")
    worker_session.execute(f"ALTER TABLE {keyspace}.t WITH default_time_to_live = 900")
    count = 600
    times = {i: (i - 300) * 10**12 + i for i in range(count) if i % 3}
    ttls_s = {i: i * 100 for i in range(count) if i % 2 == 0}
    path = tmp_path / "in.csv"
    write_options = {i: (times.get(i, ""), ttls_s.get(i, "")) for i in range(count)}
    # The last one is within bounds, but this server refuses such a late date: see its message.
    write_options |= {100: ("x", 5), 101: (5, -1), 102: (5, TTL_S_MAX)}
    path.write_text("".join(f"{us},{i},v{i},{left}\n" for i, (us, left) in write_options.items()))
    # When they are loaded, twice
    for _ in range(2):
        outcome = run_file(
            worker_session,
            table,
            path,
            ["wt", "id", "v", "left"],
            timestamp_field="wt",
            ttl_field="left",
            strategy=strategy,
            base_us=BASE_US,
            ttl_s=ttl_s,
        )
    # Then each row has its record's values; missing ones come from the load, or from the table
    assert [(r.line, r.stage, r.column) for r in rejects_of(outcome)] == [
        (101, "cast", "wt"), (102, "cast", "left"), (103, "write", None)
    ]  # fmt: skip
    assert "exceeds maximum supported expiration date" in rejects_of(outcome)[2].reason
    found = read_table(worker_session, keyspace, "id, v, writetime(v), ttl(v)")
    assert {row[:3] for row in found} == {
        (i, f"v{i}", times.get(i, BASE_US + i)) for i in range(count) if i not in (100, 101, 102)
    }
    for i, _, _, left_s in found:
        wanted_s = ttls_s.get(i, ttl_s or 900)
        assert left_s is None if wanted_s == 0 else wanted_s - 60 < left_s <= wanted_s


def test_a_unit_in_the_middle_of_a_file_numbers_records_from_its_start(
    worker_session: Session, keyspace: str, tmp_path: Path
) -> None:
    # Given a unit whose first record is number 1000 of the job, on line 2001
    table = make_table(worker_session, keyspace, "id int PRIMARY KEY")
    path = tmp_path / "in.csv"
    path.write_text("1\n2\nx\n4\n5\n")
    source = load_source(["id"], path=str(path), size_bytes=10)
    job = load_job(table, source, consistency="ONE", base_us=BASE_US, ordinal_end=1003)
    prepared = worker_session.prepare(insert_statement(table, ["id"], 0))
    hooks = UnitHooks(tick=Ticks())
    # When it runs over the bytes of records 2 to 5, of which the job wants three
    with connected_target(worker_session, prepared, keyspace) as target:
        outcome = run_load_unit(
            LoadUnit(0, 2, 8, 1000, 2001, 4), job, target, RequestBounds(), hooks
        )
    assert (outcome.records, outcome.written, len(rejects_of(outcome))) == (3, 2, 1)
    assert [(r.line, r.offset) for r in rejects_of(outcome)] == [(2002, 4)]
    assert outcome.input_bytes == 8
    assert read_table(worker_session, keyspace, "id") == [(2,), (4,)]


def test_a_whole_file_unit_is_read_to_its_end_and_counts_decoded_bytes(
    worker_session: Session, keyspace: str, tmp_path: Path
) -> None:
    import gzip

    table = make_table(worker_session, keyspace, "id int PRIMARY KEY")
    text = b"id\n" + b"".join(b"%d\n" % i for i in range(500))
    path = tmp_path / "in.csv.gz"
    path.write_bytes(gzip.compress(text))
    source = load_source(["id"], path=str(path), size_bytes=path.stat().st_size, whole=True)
    job = load_job(table, source, consistency="ONE")
    prepared = worker_session.prepare(insert_statement(table, ["id"], 0))
    hooks = UnitHooks(tick=Ticks())
    with connected_target(worker_session, prepared, keyspace) as target:
        outcome = run_load_unit(
            LoadUnit(0, 3, TO_THE_END, 0, 2, -1), job, target, RequestBounds(), hooks
        )
    assert (outcome.records, outcome.written, rejects_of(outcome)) == (500, 500, [])
    assert outcome.input_bytes == len(text) - 3
    assert len(read_table(worker_session, keyspace, "id")) == 500


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_rows_are_paid_for_before_they_are_sent(
    worker_session: Session, keyspace: str, tmp_path: Path, strategy: str
) -> None:
    table = make_table(worker_session, keyspace, "id int PRIMARY KEY")
    path = tmp_path / "in.csv"
    path.write_text("".join(f"{i}\n" for i in range(500)))
    throttle = Limited(first_wait_s=0.8, rows_at_once=30)
    started = time.monotonic()
    ticks = Ticks()
    run_file(worker_session, table, path, ["id"], strategy=strategy, throttle=throttle, ticks=ticks)
    # Then every row was paid for with its bytes, a few at a time, the unit waited as long as the
    # limiter demanded, and renewed its lease meanwhile
    assert throttle.rows == 500
    assert max(rows for rows, _ in throttle.paid) <= 30
    assert throttle.bytes == pytest.approx(path.stat().st_size, rel=0.05)
    assert time.monotonic() - started >= 0.8
    assert ticks.seen[:2] == [(0, 0, 0), (0, 0, 0)]


def test_the_driver_s_requests_in_flight_stay_within_the_job_s_limit(
    worker_session: Session, keyspace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make_table(worker_session, keyspace, "id int PRIMARY KEY")
    path = tmp_path / "in.csv"
    path.write_text("".join(f"{i}\n" for i in range(500)))
    lock, in_flight, most = threading.Lock(), 0, 0
    execute = worker_session.execute_async

    def answered(_: object) -> None:
        nonlocal in_flight
        with lock:
            in_flight -= 1

    def counted(*args: object, **options: object) -> object:
        nonlocal in_flight, most
        with lock:
            in_flight += 1
            most = max(most, in_flight)
        future = execute(*args, **options)
        future.add_callbacks(answered, answered)
        return future

    monkeypatch.setattr(worker_session, "execute_async", counted)
    throttle = Limited(requests_max=2, paced=False)
    outcome = run_file(
        worker_session, table, path, ["id"], strategy="token-batch", throttle=throttle
    )
    assert outcome.written == 500
    assert 1 <= most <= 2


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_unit_can_be_stopped_between_blocks(
    worker_session: Session, keyspace: str, tmp_path: Path, strategy: str
) -> None:
    class Stop(Exception):
        pass

    def stop() -> None:
        raise Stop

    table = make_table(worker_session, keyspace, "id int PRIMARY KEY")
    path = tmp_path / "in.csv"
    path.write_text("".join(f"{i}\n" for i in range(50_000)))
    with pytest.raises(Stop):
        run_file(
            worker_session,
            table,
            path,
            ["id"],
            strategy=strategy,
            ticks=Ticks(then=stop),
            block_bytes=1000,
        )
    # Then the rest of the file was not written
    assert len(read_table(worker_session, keyspace, "id")) < 5000


def test_a_file_that_grew_since_it_was_split_is_refused(
    worker_session: Session, keyspace: str, tmp_path: Path
) -> None:
    table = make_table(worker_session, keyspace, "id int PRIMARY KEY")
    path = tmp_path / "in.csv"
    path.write_text("1\n2\n")

    def grow() -> None:
        with path.open("a") as file:
            file.write("3\n")

    # When the file grows while the unit runs
    with pytest.raises(SourceChanged, match=r"is .* bytes now and was 4 when the job started"):
        run_file(worker_session, table, path, ["id"], ticks=Ticks(then=grow))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("gone", ["table", "keyspace", "column"])
def test_a_dropped_table_fails_the_job_and_rejects_no_record(
    worker_session: Session,
    cassandra_session: Session,
    tmp_path: Path,
    strategy: str,
    gone: str,
) -> None:
    # Given a table that is dropped after the job was planned
    name = f"gone_{strategy.replace('-', '_')}_{gone}"
    cassandra_session.execute(
        f"CREATE KEYSPACE {name} WITH replication = "
        "{'class': 'SimpleStrategy', 'replication_factor': 1}"
    )
    try:
        table = make_table(worker_session, name, "id int PRIMARY KEY, v int")
        path = tmp_path / "in.csv"
        path.write_text("".join(f"{i},{i}\n" for i in range(100)))
        prepared = worker_session.prepare(insert_statement(table, ["id", "v"], 0))
        options = {"strategy": strategy, "prepared": prepared}
        outcome = run_file(worker_session, table, path, ["id", "v"], **options)
        assert outcome.written == 100
        cassandra_session.execute(
            {
                "table": f"DROP TABLE {name}.t",
                "keyspace": f"DROP KEYSPACE {name}",
                "column": f"ALTER TABLE {name}.t DROP v",
            }[gone]
        )
        # When the next unit uses the statement prepared before
        with pytest.raises(ClusterError, match="the cluster refuses all writes"):
            run_file(worker_session, table, path, ["id", "v"], **options)
    finally:
        cassandra_session.execute(f"DROP KEYSPACE IF EXISTS {name}")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_unit_with_an_unavailable_consistency_is_retried_and_released(
    worker_session: Session, cassandra_session: Session, tmp_path: Path, strategy: str
) -> None:
    # Given a keyspace with three replicas on a cluster of one node
    name = f"three_{strategy.replace('-', '_')}"
    cassandra_session.execute(
        f"CREATE KEYSPACE {name} WITH replication = "
        "{'class': 'SimpleStrategy', 'replication_factor': 3}"
    )
    try:
        table = make_table(worker_session, name, "id int PRIMARY KEY")
        path = tmp_path / "in.csv"
        path.write_text("1\n2\n")
        # When a quorum is required, then writes are retried up to the limit before the release
        with pytest.raises(RequestFailed, match=r"failed 3 times, the last time with: .*QUORUM"):
            run_file(
                worker_session,
                table,
                path,
                ["id"],
                strategy=strategy,
                consistency="QUORUM",
                retries_max=2,
            )
    finally:
        cassandra_session.execute(f"DROP KEYSPACE {name}")


def test_sources_are_read_from_the_job_s_paths(
    worker_session: Session, keyspace: str, tmp_path: Path
) -> None:
    # Given a job whose file was deleted
    table = make_table(worker_session, keyspace, "id int PRIMARY KEY")
    source = load_source(["id"], path=str(tmp_path / "gone.csv"), size_bytes=4)
    assert source.file == SourceFile(str(tmp_path / "gone.csv"), 4, False)
    prepared = worker_session.prepare(insert_statement(table, ["id"], 0))
    hooks = UnitHooks(tick=Ticks())
    with (
        connected_target(worker_session, prepared, keyspace) as target,
        pytest.raises(SourceChanged, match=r"gone.csv: the file is gone; it was 4 bytes"),
    ):
        job = load_job(table, source)
        run_load_unit(LoadUnit(0, 0, 4, 0, 1, 2), job, target, RequestBounds(), hooks)
