"""Messages of the server: no warnings about batches, and its errors assigned to rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
from cassandra.cluster import Session
from cassandra.query import BatchStatement, BatchType

from producer.local.stack import Stack
from ringhaul.cql.cells import Cells
from ringhaul.cql.frames import offsets_of
from ringhaul.load.write import WRITERS
from ringhaul.load.write.batch_sizes import BatchSizes
from ringhaul.load.write.grouping import BATCH_PARTITIONS_MAX
from ringhaul.records.field_readers import AnyBlock
from ringhaul.records.rows import EncodedRows
from tests.integration.load.conftest import batch_warnings, make_table, read_table, run_file
from tests.loads import rejects_of

STRATEGIES = sorted(WRITERS)


@pytest.fixture
def logs(stack: Stack) -> Iterator[dict[Path, int]]:
    """The nodes' logs and their lengths before the test."""
    found = {node.log: node.log.stat().st_size for node in stack.nodes()}
    assert found
    yield found


def test_the_server_warns_of_a_batch_over_many_partitions(
    cassandra_session: Session, keyspace: str, logs: dict[Path, int]
) -> None:
    # The other tests rely on this: given a batch of 11 partitions
    cassandra_session.execute(f"CREATE TABLE {keyspace}.t (id int PRIMARY KEY)")
    inserts = " ".join(
        f"INSERT INTO {keyspace}.t (id) VALUES ({i});" for i in range(BATCH_PARTITIONS_MAX + 1)
    )
    cassandra_session.execute(f"BEGIN UNLOGGED BATCH {inserts} APPLY BATCH")
    # Then the node's log has a warning, where the other tests would find it
    assert len(batch_warnings(logs, keyspace)) == 1


ROWS = 60
#: Definition, and the values of row i without timestamp and TTL.
SHAPES: dict[str, tuple[str, Callable[[int], tuple[Any, ...]]]] = {
    "small columns": (
        "id int PRIMARY KEY, a bigint, b double, c text, d tinyint",
        lambda i: (i, i, 1.5, "x" * (i % 9), None if i % 3 else 1),
    ),
    "a clustering key and a static column": (
        "id int, k text, s text STATIC, v int, PRIMARY KEY (id, k)",
        lambda i: (i, f"k{i}", "static", i),
    ),
    "elements": (
        "id int PRIMARY KEY, l list<tinyint>, s set<int>, m map<text,text>",
        lambda i: (i, [1] * (i % 20), set(range(i % 11)), {str(n): "" for n in range(i % 7)}),
    ),
    "frozen elements": (
        "id int PRIMARY KEY, l frozen<list<tinyint>>, t tuple<int,text>",
        lambda i: (i, [1] * (i % 20), (i, "a")),
    ),
    "fields": ("id int PRIMARY KEY, u {}.pair", lambda i: (i, (1, None) if i % 2 else (1, 2))),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_estimated_row_sizes_are_at_least_those_of_the_server(
    cassandra_session: Session, keyspace: str, shape: str
) -> None:
    # Given a batch above the server's warning threshold
    definition, values = SHAPES[shape]
    cassandra_session.execute(f"CREATE TYPE {keyspace}.pair (a tinyint, b tinyint)")
    cassandra_session.execute(f"CREATE TABLE {keyspace}.t ({definition.format(keyspace)})")
    names = [part.split()[0] for part in definition.split("PRIMARY KEY (")[0].split(", ") if part]
    statement = cassandra_session.prepare(
        f"INSERT INTO {keyspace}.t ({', '.join(names)}) VALUES ({', '.join('?' * len(names))}) "
        "USING TIMESTAMP ? AND TTL ?"
    )
    bound = [statement.bind((*values(i), 1_700_000_000_000_000 + i, 1000)) for i in range(ROWS)]
    batch = BatchStatement(BatchType.UNLOGGED)
    for one in bound:
        batch.add(one)
    # When the server reports its size
    future = cassandra_session.execute_async(batch)
    future.result()
    [reported] = [
        int(size) for text in future.warnings for size in re.findall(r"of size (\d+)", text)
    ]
    # Then the estimate is at least that size, and at most a few times as large
    columns = [
        Cells.variable(pa.array(column, pa.binary()))
        for column in zip(*(one.values for one in bound), strict=True)
    ]
    rows = EncodedRows(columns, columns[0].values, np.arange(ROWS), cast(AnyBlock, None))
    row_bytes = np.diff(offsets_of(rows.joined())).astype(np.int64)
    sizes = BatchSizes(statement).of(rows, np.arange(ROWS), row_bytes)
    assert reported <= sizes.sum() <= 5 * reported


def quoted(text: str) -> str:
    return f'"{text}"' if "," in text else text


KEYS = {
    "one partition for each row": "id int PRIMARY KEY, c int, v text",
    "a few wide partitions": "p int, id int, v text, PRIMARY KEY (p, id)",
    "composite partition keys": "p int, q text, id int, v text, PRIMARY KEY ((p, q), id)",
    "a cell for each small element": "id int PRIMARY KEY, v text, l list<tinyint>, s set<tinyint>",
}


@pytest.mark.parametrize("definition", KEYS.values(), ids=KEYS)
@pytest.mark.parametrize(
    ("strategy", "ttl_s"),
    [("pipeline", 0), ("pipeline", 100_000), ("single", 0), ("token-batch", 100_000)],
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
    lengths = [0, 3] if "list" in definition else [0, 3, 40, 250, 500, 1200, 2500, 4900, 6000]
    rows = [
        {
            "p": str(i % 3),
            "q": f"q{i % 40}",
            "id": str(i),
            "c": str(-i),
            "v": "x" * lengths[i * i % len(lengths)],
            "l": str([i % 100] * (i % 7 * 5)),
            "s": "{" + ", ".join(str(j) for j in range(i % 5 * 4)) + "}",
        }
        for i in range(4000)
    ]
    path = tmp_path / "in.csv"
    path.write_text("".join(",".join(quoted(row[f]) for f in fields) + "\n" for row in rows))
    # When they are loaded
    outcome = run_file(worker_session, table, path, fields, ttl_s=ttl_s, strategy=strategy)
    # Then all are in the table, in fewer requests than rows if in batches, and without a warning
    assert (outcome.written, rejects_of(outcome), outcome.retries) == (4000, [], 0)
    requests = sum(outcome.latencies.values())
    assert requests == 4000 if strategy == "single" else requests < 3000
    found = read_table(worker_session, keyspace, "id, v")
    assert found == sorted(((int(r["id"]), r["v"] or None) for r in rows), key=repr)
    assert batch_warnings(logs, keyspace) == []


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_refused_row_is_rejected_and_its_neighbours_are_written(
    worker_session: Session, keyspace: str, tmp_path: Path, strategy: str
) -> None:
    # Given clustering keys, some of which are longer than the server allows
    table = make_table(worker_session, keyspace, "p int, c text, v int, PRIMARY KEY (p, c)")
    path = tmp_path / "in.csv"
    long = {17, 18, 250}
    lines = [f"1,{'k' * 70_000 if i in long else f'k{i}'},{i}" for i in range(300)]
    path.write_text("\n".join(lines) + "\n")
    # When they are loaded
    outcome = run_file(worker_session, table, path, ["p", "c", "v"], strategy=strategy)
    # Then exactly those are rejects, with the server's reason
    assert (outcome.records, outcome.written) == (300, 297)
    assert [r.line for r in rejects_of(outcome)] == [18, 19, 251]
    for reject in rejects_of(outcome):
        assert reject.stage == "write"
        assert "70000" in reject.reason or "length" in reject.reason
    found = read_table(worker_session, keyspace, "v")
    assert found == sorted([(i,) for i in range(300) if i not in long], key=repr)
    assert outcome.retries == 0


@pytest.mark.parametrize(
    ("strategy", "size_bytes"),
    [
        ("pipeline", 12 << 20),
        ("pipeline", 40 << 20),
        ("single", 17 << 20),
        ("token-batch", 17 << 20),
    ],
)
def test_a_value_over_the_largest_mutation_rejects_only_its_record(
    worker_session: Session, keyspace: str, tmp_path: Path, strategy: str, size_bytes: int
) -> None:
    # Given a record of more or less than the 16 MiB that a node allows in one mutation
    table = make_table(worker_session, keyspace, "id int PRIMARY KEY, v blob")
    path = tmp_path / "in.csv"
    with path.open("w") as file:
        for i in range(20):
            file.write(f"{i},0x{'ab' * size_bytes if i == 7 else 'cd'}\n")
    from ringhaul.formats.dialect import CsvDialect

    # When it is loaded with records of any length allowed
    dialect = CsvDialect(record_bytes_max=100 << 20)
    outcome = run_file(worker_session, table, path, ["id", "v"], strategy=strategy, dialect=dialect)
    # Then only it is a reject if it is too large, and the others are written
    refused = [7] if size_bytes > 16 << 20 else []
    assert [r.line - 1 for r in rejects_of(outcome)] == refused
    assert outcome.written == 20 - len(refused)
    ids = sorted(row[0] for row in worker_session.execute(f"SELECT id FROM {keyspace}.t"))
    assert ids == [i for i in range(20) if i not in refused]
