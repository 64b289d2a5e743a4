"""Rows that a replica refuses on write: each is a reject, and all others are written."""

from __future__ import annotations

import csv
import time
from pathlib import Path

import pytest
from cassandra.cluster import Session

from ringhaul.dataplane.base import RequestFailed, RequestRefused
from ringhaul.errors import ClusterError, Transient
from ringhaul.load.write import WRITERS
from tests.integration.load.conftest import make_table, read_table, run_file
from tests.integration.load.pipeline_client import ROWS, Client
from tests.loads import rejects_of
from tests.scripted_server import Answer, Execute, ScriptedServer, error, void

STRATEGIES = sorted(WRITERS)
WRITE_FAILURE, SERVER_ERROR, CDC_WRITE_FAILURE = 0x1500, 0x0000, 0x1600
FUNCTION_FAILURE = 0x1400
UNKNOWN = "Operation failed - received 0 responses and 1 failures: UNKNOWN from /127.0.0.1:7000"


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("bad", [{1}, {0, 2}, {2}, {0, 1, 2}, {5, 6, 40, 199}])
def test_a_vector_that_the_index_refuses_rejects_its_row(
    worker_session: Session, keyspace: str, tmp_path: Path, strategy: str, bad: set[int]
) -> None:
    # Given an index by cosine, which refuses zero vectors and NaN
    table = make_table(worker_session, keyspace, "id int PRIMARY KEY, v vector<float, 3>")
    worker_session.execute(
        f"CREATE CUSTOM INDEX ON {keyspace}.t (v) USING 'StorageAttachedIndex'", timeout=60
    )
    count = max(3, max(bad) + 1)
    path = tmp_path / "in.csv"
    values = [
        ["[0, 0, 0]", '["NaN", 1, 2]'][i % 2] if i in bad else f"[1, 2, {i}]" for i in range(count)
    ]
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(enumerate(values))
    # When the rows are loaded
    began_s = time.monotonic()
    outcome = run_file(worker_session, table, path, ["id", "v"], strategy=strategy)
    took_s = time.monotonic() - began_s
    # Then these are soon rejects, and the others are in the table
    rejects = rejects_of(outcome)
    assert [(r.file, r.line, r.stage) for r in rejects] == [
        (str(path), i + 1, "write") for i in sorted(bad)
    ]
    for reject in rejects:
        assert "write_failure: Operation failed" in reject.reason
        assert "reason unknown" in reject.reason
    assert (outcome.records, outcome.written) == (count, count - len(bad))
    rows = read_table(worker_session, keyspace, "id, v")
    assert sorted((i, list(v)) for i, v in rows) == [
        (i, [1, 2, i]) for i in range(count) if i not in bad
    ]
    assert took_s < 15


@pytest.mark.parametrize("batches", [True, False])
@pytest.mark.parametrize("bad", [{7, 100, 1200}, {1999}])
@pytest.mark.parametrize(
    ("code", "message"),
    [
        (WRITE_FAILURE, UNKNOWN),
        (WRITE_FAILURE, "Operation failed"),
        (SERVER_ERROR, "java.lang.IllegalArgumentException: too large"),
        (CDC_WRITE_FAILURE, "as scripted"),
        (0x7777, "an unknown error code"),
    ],
)
def test_an_error_that_repeats_for_one_row_rejects_it(
    server: ScriptedServer,
    client: Client,
    code: int,
    message: str,
    bad: set[int],
    batches: bool,
) -> None:
    client.batches = batches
    server.script = lambda request: (
        void(request) if bad.isdisjoint(request.rows) else error(request, code, message)
    )
    writer = client.load(ROWS)
    assert {row for row, _ in client.rejected} == bad and len(client.rejected) == len(bad)
    assert all(message in reason and "alone" in reason for _, reason in client.rejected)
    assert writer.stats.written == ROWS - len(bad)
    assert set(server.written) == set(range(ROWS)) - bad
    assert all(3 <= server.seen[row] <= 12 for row in bad)


@pytest.mark.parametrize("batches", [True, False])
def test_a_function_of_the_statement_that_fails_on_a_row_rejects_it_at_once(
    server: ScriptedServer, client: Client, batches: bool
) -> None:
    """Another try would fail on the same values."""
    client.batches, bad = batches, {7, 100, 1999}
    server.script = lambda request: (
        void(request)
        if bad.isdisjoint(request.rows)
        else error(request, FUNCTION_FAILURE, "execution of 'ks.f[int]' failed")
    )
    writer = client.load(ROWS)
    assert sorted(row for row, _ in client.rejected) == sorted(bad)
    assert {reason for _, reason in client.rejected} == {"execution of 'ks.f[int]' failed"}
    assert writer.stats.written == ROWS - len(bad)
    assert set(server.written) == set(range(ROWS)) - bad
    # Once in a batch, if it shared one, and once alone.
    assert all(server.seen[row] <= 2 for row in bad)


@pytest.mark.parametrize("batches", [True, False])
def test_a_replica_that_fails_for_a_while_rejects_no_row(
    server: ScriptedServer, client: Client, batches: bool
) -> None:
    client.batches = batches
    until_s = time.monotonic() + 0.3
    server.script = lambda request: (
        void(request) if time.monotonic() > until_s else error(request, WRITE_FAILURE, UNKNOWN)
    )
    writer = client.load(ROWS)
    assert not client.rejected
    assert writer.stats.written == ROWS and set(server.written) == set(range(ROWS))


def test_a_replica_that_fails_everything_fails_the_job_with_a_hint(
    server: ScriptedServer, client: Client
) -> None:
    server.script = lambda request: error(request, WRITE_FAILURE, UNKNOWN)
    with pytest.raises(
        RequestRefused, match=r"127.0.0.1:7000: reason unknown.* look at this record .*disks"
    ) as caught:
        client.load(ROWS)
    assert isinstance(caught.value, ClusterError) and not isinstance(caught.value, Transient)
    assert not client.rejected and not server.written


def test_a_row_that_always_times_out_is_retried_and_rejected(
    server: ScriptedServer, client: Client
) -> None:
    # Given other rows that are written all the time
    def script(request: Execute) -> Answer:
        if request.row == 3:
            return error(request, 0x1100, "too slow")
        time.sleep(0.001)
        return void(request)

    server.script = script
    client.load(ROWS)
    [(row, reason)] = client.rejected
    assert row == 3 and "too slow" in reason
    assert server.seen[3] == client.retries_max + 1
    assert set(server.written) == set(range(ROWS)) - {3}


def test_without_retries_a_failing_replica_releases_the_unit(
    server: ScriptedServer, client: Client
) -> None:
    client.retries_max = 0
    server.script = lambda request: error(request, 0x1100, "too slow")
    with pytest.raises(RequestFailed):
        client.load(ROWS)
