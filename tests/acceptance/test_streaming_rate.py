"""`load --via streaming --rate 1MB/s`: nodes get bytes at that rate, and `throttle` changes it."""

from __future__ import annotations

import base64
import json
import random
from pathlib import Path

import pytest
from cassandra.cluster import Session

from producer.local.stack import Endpoints
from tests.acceptance.command import Ringhaul
from tests.acceptance.conftest import cluster_env
from tests.acceptance.oracle import assert_report, assert_table, create_table

ROWS = 30_000
SLOW, FAST = 20_000, 1_000_000  # bytes a second
#: A bucket of a limit holds as much as goes in half a second.
BURST_S = 0.5


@pytest.fixture
def ringhaul(endpoints: Endpoints, tmp_path: Path) -> Ringhaul:
    env = cluster_env(endpoints, tmp_path / "state")
    return Ringhaul(env | {"RINGHAUL_STREAMING_INPUT_BYTES_MIN": "0"}, tmp_path)


def rows() -> list[tuple[int, str]]:
    """Rows of values that do not compress."""
    dice = random.Random(1)
    return [(n, base64.b64encode(dice.randbytes(90)).decode()) for n in range(ROWS)]


def test_bytes_reach_the_node_at_the_rate_of_the_job(
    ringhaul: Ringhaul, cassandra_session: Session, keyspace: str
) -> None:
    # Given a load by two processes at 20 kB/s, which would take minutes
    table = create_table(cassandra_session, keyspace, "id int PRIMARY KEY, v text")
    lines = "".join(f"{n},{value}\n" for n, value in rows())
    (ringhaul.cwd / "in.csv").write_text("id,v\n" + lines)
    summary_file = ringhaul.cwd / "summary.json"
    options = ("--rate", f"{SLOW // 1000}kB/s", "--unit-size", "500 KiB", "-c", 2)
    with ringhaul.started(
        *("load", "in.csv", "-t", table, "--via", "streaming", "--progress", "none"),
        *(*options, "--summary", summary_file),
    ) as process:
        assert process.stderr is not None
        job = process.stderr.readline().split()[0]
        shown = ringhaul.run("throttle", job)
        assert (shown.code, shown.out) == (0, f"{job}: 0.02 MB/s\n")

        # When the limit is raised
        changed = ringhaul.run("throttle", job, "--mb-per-second", FAST / 1e6)
        assert (changed.code, changed.err) == (0, f"{job}: 1 MB/s\n")
        assert process.wait(120) == 0
    # (by the clock of the ledger: commands take long to start and to end on a busy machine)
    history = json.loads(ringhaul.run("status", job, "--events", "--json").out)
    at_ms = {event["kind"]: event["at_ms"] for event in history["events"]}
    took_s = (at_ms["ended"] - at_ms["throttled"]) / 1000

    # Then the bytes were sent at the new rate
    summary = json.loads(summary_file.read_text())
    assert summary["units"] > 4
    (sent_bytes,) = summary["streamed_bytes"].values()
    assert sent_bytes > 3_000_000
    least_s = sent_bytes / FAST - BURST_S
    assert took_s > least_s - 1, "faster than the limit"
    assert took_s < 2 * least_s + 5, "slower than the limit"
    # And every row is in the table
    assert_table(cassandra_session, table, "id, v", rows())


def test_a_rate_in_bytes_limits_a_load_over_cql_by_its_input(
    ringhaul: Ringhaul, cassandra_session: Session, keyspace: str
) -> None:
    table = create_table(cassandra_session, keyspace, "id int PRIMARY KEY, v text")
    few = rows()[:6000]
    lines = "".join(f"{n},{value}\n" for n, value in few)
    (ringhaul.cwd / "in.csv").write_text("id,v\n" + lines)

    done = ringhaul.run(
        *("load", "in.csv", "-t", table, "--rate", "0.25MB/s", "-c", 2, "--json"),
        *("--unit-size", "64 KiB"),
    )

    summary = assert_report(done, rows=len(few))
    assert summary["elapsed_s"] > len(lines) / 250_000 - BURST_S
    assert_table(cassandra_session, table, "id, v", few)
