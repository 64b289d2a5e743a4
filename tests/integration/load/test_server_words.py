"""What the server says about batches and rows: no warnings from it, its refusals by row."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cassandra.cluster import Session

from producer.local.stack import Stack
from ringhaul.load.write import WRITERS
from ringhaul.load.write.grouping import BATCH_PARTITIONS_MAX
from tests.integration.load.conftest import batch_warnings, make_table, read_table, run_file
from tests.loads import rejects_of

STRATEGIES = sorted(WRITERS)


@pytest.fixture
def logs(stack: Stack) -> Iterator[dict[Path, int]]:
    """The nodes' logs and how long they are before the test."""
    found = {node.log: node.log.stat().st_size for node in stack.nodes()}
    assert found
    yield found


def test_a_batch_that_is_too_wide_is_warned_of(
    cassandra_session: Session, keyspace: str, logs: dict[Path, int]
) -> None:
    # Given what the other tests rely on: the node warns of 11 partitions in a batch
    cassandra_session.execute(f"CREATE TABLE {keyspace}.t (id int PRIMARY KEY)")
    inserts = " ".join(
        f"INSERT INTO {keyspace}.t (id) VALUES ({i});" for i in range(BATCH_PARTITIONS_MAX + 1)
    )
    cassandra_session.execute(f"BEGIN UNLOGGED BATCH {inserts} APPLY BATCH")
    # Then the warning is in its log, where the other tests would find it
    assert len(batch_warnings(logs)) == 1


KEYS = {
    "one partition for each row": "id int PRIMARY KEY, c int, v text",
    "a few wide partitions": "p int, id int, v text, PRIMARY KEY (p, id)",
    "composite partition keys": "p int, q text, id int, v text, PRIMARY KEY ((p, q), id)",
}


@pytest.mark.parametrize("definition", KEYS.values(), ids=KEYS)
@pytest.mark.parametrize(
    ("strategy", "ttl_s"), [("pipeline", 0), ("token-batch", 0), ("token-batch", 100_000)]
)
def test_no_load_makes_the_server_warn_of_batches(
    worker_session: Session,
    keyspace: str,
    tmp_path: Path,
    logs: dict[Path, int],
    definition: str,
    strategy: str,
    ttl_s: int,
) -> None:
    # Given rows from tiny to larger than a batch
    table = make_table(worker_session, keyspace, definition)
    fields = table.column_names
    lengths = [0, 3, 40, 250, 500, 1200, 2500, 4900, 6000]
    rows = [
        {
            "p": str(i % 3),
            "q": f"q{i % 40}",
            "id": str(i),
            "c": str(-i),
            "v": "x" * lengths[i * i % len(lengths)],
        }
        for i in range(4000)
    ]
    path = tmp_path / "in.csv"
    path.write_text("".join(",".join(row[f] for f in fields) + "\n" for row in rows))
    # When they are loaded
    outcome = run_file(worker_session, table, path, fields, ttl_s=ttl_s, strategy=strategy)
    # Then all are there, in fewer requests than rows if in batches, and nothing is complained of
    assert (outcome.written, rejects_of(outcome), outcome.retries) == (4000, [], 0)
    requests = sum(outcome.latencies.values())
    assert requests < 3000 if strategy == "token-batch" else requests == 4000
    found = read_table(worker_session, keyspace, "id, v")
    assert found == sorted(((int(r["id"]), r["v"] or None) for r in rows), key=repr)
    assert batch_warnings(logs) == []


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_row_that_the_server_refuses_is_named_and_its_neighbours_land(
    worker_session: Session, keyspace: str, tmp_path: Path, strategy: str
) -> None:
    # Given clustering keys of which some are longer than the server takes, among their like
    table = make_table(worker_session, keyspace, "p int, c text, v int, PRIMARY KEY (p, c)")
    path = tmp_path / "in.csv"
    long = {17, 18, 250}
    lines = [f"1,{'k' * 70_000 if i in long else f'k{i}'},{i}" for i in range(300)]
    path.write_text("\n".join(lines) + "\n")
    # When they are loaded
    outcome = run_file(worker_session, table, path, ["p", "c", "v"], strategy=strategy)
    # Then exactly those are rejects, with the server's own reason
    assert (outcome.records, outcome.written) == (300, 297)
    assert [r.line for r in rejects_of(outcome)] == [18, 19, 251]
    for reject in rejects_of(outcome):
        assert reject.stage == "write"
        assert "70000" in reject.reason or "length" in reject.reason
    found = read_table(worker_session, keyspace, "v")
    assert found == sorted([(i,) for i in range(300) if i not in long], key=repr)
    assert outcome.retries == 0


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("size_bytes", [12 << 20, 17 << 20, 40 << 20])
def test_a_value_over_the_largest_mutation_costs_its_record_alone(
    worker_session: Session, keyspace: str, tmp_path: Path, strategy: str, size_bytes: int
) -> None:
    # Given a record of more than the 16 MiB that a node takes in one mutation, or of less
    table = make_table(worker_session, keyspace, "id int PRIMARY KEY, v blob")
    path = tmp_path / "in.csv"
    with path.open("w") as file:
        for i in range(20):
            file.write(f"{i},0x{'ab' * size_bytes if i == 7 else 'cd'}\n")
    from ringhaul.formats.dialect import CsvDialect

    # When it is loaded with records of any length allowed
    dialect = CsvDialect(record_bytes_max=100 << 20)
    outcome = run_file(worker_session, table, path, ["id", "v"], strategy=strategy, dialect=dialect)
    # Then it alone is a reject if it is too large, and the rest are written
    refused = [7] if size_bytes > 16 << 20 else []
    assert [r.line - 1 for r in rejects_of(outcome)] == refused
    assert outcome.written == 20 - len(refused)
    ids = sorted(row[0] for row in worker_session.execute(f"SELECT id FROM {keyspace}.t"))
    assert ids == [i for i in range(20) if i not in refused]
