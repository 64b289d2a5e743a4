"""Lists that are not frozen: elements sent twice must not be stored twice."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from unittest.mock import Mock

import pytest
from cassandra.cluster import Session

from producer.local.stack import Endpoints
from ringhaul.cluster.connect import ClusterConfig, close_session, open_session
from ringhaul.load.write import WRITERS
from tests.integration.load.conftest import Ticks, make_table, read_table, run_file
from tests.loads import rejects_of
from tests.proxy import proxied

STRATEGIES = sorted(WRITERS)
ROWS = 3000
DEFINITION = "id int PRIMARY KEY, tags list<text>, years frozen<list<int>>, names set<text>"
BASE_US = 1_700_000_000_000_000
CUTS = 6
#: Answers that were cut off are waited for.
REQUEST_TIMEOUT_S = 2.0


def write_file(path: Path, first: int = 0) -> list[tuple[object, ...]]:
    """Write rows with lists, and return the rows that the table must hold."""
    expected: list[tuple[object, ...]] = []
    with path.open("w") as file:
        for i in range(first, first + ROWS):
            tags, years = [f"t{i}", "all", f"t{i}"], [i, i + 1]
            texts = [json.dumps(value).replace('"', '""') for value in (tags, years, ["n"])]
            print(i, *(f'"{text}"' for text in texts), sep=",", file=file)
            expected.append((i, tags, years, {"n"}))
    return sorted(expected, key=repr)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_rows_with_lost_answers_do_not_repeat_elements(
    endpoints: Endpoints, cassandra_session: Session, keyspace: str, tmp_path: Path, strategy: str
) -> None:
    # Given connections that break repeatedly, so that written rows are written once more
    table = make_table(cassandra_session, keyspace, DEFINITION)
    path = tmp_path / "in.csv"
    expected = write_file(path)
    with proxied((endpoints.contact_points[0], endpoints.port)) as (proxy, port):
        session = open_session(ClusterConfig(contact_points=("127.0.0.1",), port=port))

        def cut() -> None:
            if proxy.cut < CUTS:
                proxy.cut_answers()

        try:
            outcome = run_file(
                session,
                table,
                path,
                ["id", "tags", "years", "names"],
                strategy=strategy,
                block_bytes=16384,
                request_timeout_s=REQUEST_TIMEOUT_S,
                retries_max=100,
                ticks=Ticks(then=cut),
                base_us=BASE_US,
            )
        finally:
            close_session(session)
    assert proxy.cut
    assert outcome.retries
    assert (outcome.written, outcome.rejected) == (ROWS, 0)
    assert read_table(cassandra_session, keyspace, "id, tags, years, names") == expected


@pytest.mark.parametrize("own_time", [False, True])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_repeated_unit_does_not_repeat_elements(
    worker_session: Session, keyspace: str, tmp_path: Path, strategy: str, own_time: bool
) -> None:
    # Given a unit that another attempt ran already, of rows with or without write times
    table = make_table(worker_session, keyspace, DEFINITION)
    path = tmp_path / "in.csv"
    fields = ["id", "tags", "years", "names"]
    expected = write_file(path)
    if own_time:
        path.write_text("".join(f"{line},{BASE_US}\n" for line in path.read_text().splitlines()))
        fields.append("at")
    retries = 0
    for later_us in (0, 2):
        outcome = run_file(
            worker_session,
            table,
            path,
            fields,
            strategy=strategy,
            base_us=BASE_US,
            later_us=later_us,
            timestamp_field="at" if own_time else None,
        )
        retries += outcome.retries
    # Then each element exists once, and the write time is almost the same: each retry adds 1 us
    assert read_table(worker_session, keyspace, "id, tags, years, names") == expected
    times = read_table(worker_session, keyspace, "id, writetime(years)")
    later = [at - BASE_US - (0 if own_time else i) for i, at in times]
    assert len(later) == ROWS
    assert all(2 <= by_us <= 2 + retries for by_us in later)


def test_a_slow_start_does_not_change_the_times_of_a_first_attempt(
    worker_session: Session, keyspace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a process that pauses for 5 s wherever it reads the clock
    monkeypatch.setattr("ringhaul.load.run.time", Mock(monotonic=count(0, 5).__next__))
    table = make_table(worker_session, keyspace, "id int PRIMARY KEY, l list<int>, v int")
    path = tmp_path / "in.csv"
    path.write_text('1,"[1, 2]",3\n')
    run_file(worker_session, table, path, ["id", "l", "v"], base_us=BASE_US)
    assert read_table(worker_session, keyspace, "id, l, v, writetime(v)") == [
        (1, [1, 2], 3, BASE_US)
    ]


def test_rows_without_such_lists_keep_their_times(
    worker_session: Session, keyspace: str, tmp_path: Path
) -> None:
    table = make_table(worker_session, keyspace, "id int PRIMARY KEY, l frozen<list<int>>")
    path = tmp_path / "in.csv"
    path.write_text('1,"[1, 2]"\n')
    run_file(worker_session, table, path, ["id", "l"], base_us=BASE_US, later_us=5)
    assert read_table(worker_session, keyspace, "id, l, writetime(l)") == [(1, [1, 2], BASE_US)]


def test_exact_times_reject_a_row_instead_of_sending_it_again(
    endpoints: Endpoints, cassandra_session: Session, keyspace: str, tmp_path: Path
) -> None:
    # Given connections that break, and rows that must be written at their times or not at all
    table = make_table(cassandra_session, keyspace, DEFINITION)
    path = tmp_path / "in.csv"
    expected = write_file(path)
    with proxied((endpoints.contact_points[0], endpoints.port)) as (proxy, port):
        session = open_session(ClusterConfig(contact_points=("127.0.0.1",), port=port))

        def cut() -> None:
            if proxy.cut < CUTS:
                proxy.cut_answers()

        try:
            outcome = run_file(
                session,
                table,
                path,
                ["id", "tags", "years", "names"],
                strategy="single",
                block_bytes=16384,
                request_timeout_s=REQUEST_TIMEOUT_S,
                retries_max=100,
                ticks=Ticks(then=cut),
                base_us=BASE_US,
                later_us=9,
                exact_timestamps=True,
            )
        finally:
            close_session(session)
    # Then rows without an answer are rejects that say so, and no element occurs twice
    assert proxy.cut
    assert outcome.rejected
    assert outcome.written + outcome.rejected == ROWS
    rejects = rejects_of(outcome)
    assert all("is not sent again" in reject.reason for reject in rejects)
    found = read_table(cassandra_session, keyspace, "id, tags, years, names")
    lost = {int((reject.data or b"").split(b",")[0]) for reject in rejects}
    assert [row for row in expected if row[0] not in lost] == [
        row for row in found if row[0] not in lost
    ]
    meant = {row[0]: row for row in expected}
    assert all(row == meant[row[0]] for row in found)
    # And every row has the time of its record
    times = read_table(cassandra_session, keyspace, "id, writetime(years)")
    assert all(at == BASE_US + i for i, at in times)
