"""`ringhaul.client` with a real cluster: tables in and out, jobs, errors; every row compared."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import uuid
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import psutil
import pyarrow as pa
import pytest
from cassandra.cluster import Session

from producer.local.stack import Endpoints
from ringhaul.client import (
    Client,
    ClusterError,
    ClusterUnavailable,
    JobCancelled,
    Progress,
    RejectedRecords,
    TooManyRejects,
    UsageError,
)
from tests.acceptance.command import Ringhaul, wait_until
from tests.acceptance.conftest import cluster_env
from tests.acceptance.oracle import create_table

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "python.md"
#: Of a load that is interrupted, by a command that takes seconds to start on a busy machine.
ROWS = 1500
COLUMNS = (
    "id int PRIMARY KEY, u uuid, price decimal, at timestamp, day date, flag boolean, raw blob, "
    "score double, tags list<text>, seen set<int>, totals map<text, bigint>, note text"
)


@pytest.fixture
def client(fleet_env: dict[str, str], tmp_path: Path) -> Client:
    """A client of the session's worker, which shares a folder with it."""
    shared = tmp_path / "shared"
    shared.mkdir()
    return Client(environment=fleet_env, shared_folder=shared)


@pytest.fixture
def own(endpoints: Endpoints, tmp_path: Path) -> Client:
    """A client without a broker: its commands start workers."""
    return Client(environment=cluster_env(endpoints, tmp_path / "state"), broker="none")


def all_types(rows: int) -> pa.Table:
    """A table with a value of each type in every third row, some and none in the others."""
    start = datetime(2026, 1, 31, 10, tzinfo=UTC)
    made = [
        {
            "id": n,
            "u": uuid.UUID(int=n) if n % 3 else None,
            "price": Decimal(n) / 8 if n % 3 else None,
            "at": start + timedelta(milliseconds=n * 7919),
            "day": date(2026, 1, 1) + timedelta(days=n % 400),
            "flag": n % 2 == 0 if n % 3 else None,
            "raw": bytes([n % 256]) * (n % 5),
            "score": n / 7,
            "tags": [f"t{n}", "é,\n"] if n % 3 else None,
            "seen": [n, n + 1] if n % 3 else None,
            "totals": [("a", n), ("b", -n)] if n % 3 else None,
            "note": f'"{n}", «x»' if n % 3 else None,
        }
        for n in range(rows)
    ]
    types = [
        *(("id", pa.int32()), ("u", pa.uuid()), ("price", pa.decimal128(20, 3))),
        *(("at", pa.timestamp("us", "UTC")), ("day", pa.date32()), ("flag", pa.bool_())),
        *(("raw", pa.binary()), ("score", pa.float64()), ("tags", pa.list_(pa.string()))),
        *(("seen", pa.list_(pa.int32())), ("totals", pa.map_(pa.string(), pa.int64()))),
        ("note", pa.string()),
    ]
    return pa.Table.from_pylist(made, pa.schema(types))


def in_table(session: Session, table: str) -> list[dict[str, Any]]:
    """The rows of a table of `COLUMNS`, sorted, as the driver reads them."""
    rows = sorted(session.execute(f"SELECT * FROM {table}"), key=lambda row: row.id)
    return [row._asdict() for row in rows]


def as_driver_rows(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of a table as the driver would read them."""
    found = []
    for row in sorted(table.to_pylist(), key=lambda row: row["id"]):
        moment: datetime = row["at"]
        found.append(
            row
            | {
                "at": moment.astimezone(UTC).replace(tzinfo=None),
                "price": None if row["price"] is None else Decimal(row["price"]),
                "totals": None if row["totals"] is None else dict(row["totals"]),
                "seen": None if row["seen"] is None else set(row["seen"]),
            }
        )
    return found


def plain(row: dict[str, Any]) -> dict[str, Any]:
    """A row of the driver with Python's own types."""
    return row | {
        "day": row["day"].date(),
        "totals": None if row["totals"] is None else dict(row["totals"]),
        "seen": None if row["seen"] is None else set(row["seen"]),
    }


def test_a_table_of_all_types_comes_back(
    client: Client, cassandra_session: Session, keyspace: str
) -> None:
    table = create_table(cassandra_session, keyspace, COLUMNS)
    given = all_types(2000)
    result = client.load(given, table).check()
    assert (result.rows, result.records, result.table) == (2000, 2000, table)
    wanted = as_driver_rows(given)
    assert [plain(row) for row in in_table(cassandra_session, table)] == wanted
    assert as_driver_rows(client.read(table)) == wanted
    assert client.verify(given, table).check().rows == 2000
    changed = given.slice(0, 3).set_column(7, "score", pa.array([0.0, 1.5, 2.5]))
    found = client.verify(changed, table)
    assert (found.ok, found.rows, found.differing, found.missing) == (False, 1, 2, 0)
    with pytest.raises(RejectedRecords, match="different: 2"):
        found.check()


def test_a_frame_of_pandas_goes_in_and_out(
    own: Client, cassandra_session: Session, keyspace: str
) -> None:
    table = create_table(cassandra_session, keyspace, "id int PRIMARY KEY, total bigint, note text")
    notes = [None if n % 3 == 0 else f"n{n}" for n in range(300)]
    frame = pd.DataFrame({"id": range(300), "total": [n * n for n in range(300)], "note": notes})
    result = own.load(frame, table)
    assert result.ok
    wanted = [(n, n * n, notes[n]) for n in range(300)]
    rows = cassandra_session.execute(f"SELECT id, total, note FROM {table}")
    assert sorted(map(tuple, rows)) == wanted
    back = own.read(table).to_pandas().sort_values("id")
    assert back["total"].tolist() == [total for _, total, _ in wanted]
    # The job is in the ledger of this user on this host.
    assert own.job(result.job).status().rows == 300


def test_ragged_records_are_loaded_whole(
    client: Client, cassandra_session: Session, keyspace: str
) -> None:
    """Keys that come late, by list and by generator; the comparison finds what a table lacks."""
    columns = "id int PRIMARY KEY, a text, b int, big varint, totals map<text, int>"
    table = create_table(cassandra_session, keyspace, columns)
    late = [{"id": n, "a": str(n), "totals": {f"k{n % 7}": n}} for n in range(300, 600)]
    given: list[dict[str, Any]] = [
        {"id": 1},
        {"id": 2, "a": "x", "b": 5},
        {"id": 3, "a": "y", "big": 2**70},
        *late,
    ]
    names: dict[str, Any] = dict.fromkeys(("id", "a", "b", "big", "totals"))
    wanted = [names | one for one in given]
    for data in (given, iter(given)):
        cassandra_session.execute(f"TRUNCATE {table}")
        assert client.load(data, table).check().rows == len(given)
        rows = in_table(cassandra_session, table)
        totals = [row["totals"] and dict(row["totals"]) for row in rows]
        assert [row | {"totals": one} for row, one in zip(rows, totals, strict=True)] == wanted
    assert client.verify(iter(given), table).check().rows == len(given)
    cassandra_session.execute(f"UPDATE {table} SET a = null WHERE id = 599")
    assert client.verify(given, table).differing == 1
    client.exec(
        f"UPDATE {table} SET a = ?, b = ? WHERE id = ?",
        [{"id": 1}, {"id": 2, "a": "q"}, {"id": 3, "b": 7}],
    )
    keys = client.lookup([{"id": 1}, {"id": 2}, {"id": 3}], table, columns=["id", "a", "b"])
    assert keys.to_pylist() == [
        *({"id": 1, "a": None, "b": None}, {"id": 2, "a": "q", "b": 5}),
        {"id": 3, "a": "y", "b": 7},
    ]
    with pytest.raises(UsageError, match=r"^the list.*nope"):
        client.load([{"id": 1}, {"id": 2, "nope": 1}], table)
    found = client.load([{"id": 1}, {"id": 2**40}], table)
    (reject,) = client.job(found.job).rejects()
    assert (reject.file, reject.line, reject.column) == ("the table", 2, "id")


def test_reads_and_statements(client: Client, cassandra_session: Session, keyspace: str) -> None:
    table = create_table(cassandra_session, keyspace, "id int PRIMARY KEY, total bigint, note text")
    insert = f"INSERT INTO {table} (id, total, note) VALUES (?, ?, ?)"
    params = [{"id": n, "total": n * 10, "note": "odd" if n % 2 else "even"} for n in range(100)]
    written = client.exec(insert, params)
    assert (written.records, written.answered, written.answers) == (100, 100, None)
    assert client.count(table, where="note = 'odd'") == 50
    sums = client.query(f"SELECT note, sum(total) AS total FROM {table} GROUP BY note")
    assert sorted(sums.to_pylist(), key=str) == [
        {"note": "even", "total": 24_500},
        {"note": "odd", "total": 25_000},
    ]
    few = client.peek(table, rows=2, where="id = 7", columns=["id", "note"])
    assert few.to_pylist() == [{"id": 7, "note": "odd"}]
    found = client.lookup([5, 900, 3, 5], table, key="id", columns=["id", "total"])
    assert found.to_pylist() == [{"id": n, "total": n * 10} for n in (5, 3, 5)]
    select = client.exec(f"SELECT total FROM {table} WHERE id = ?", range="id:10..12")
    assert select.answers is not None
    assert select.answers.to_pydict() == {"total": [100, 110, 120]}


def test_the_same_job_id_is_one_job(
    client: Client, cassandra_session: Session, keyspace: str, tmp_path: Path
) -> None:
    table = create_table(cassandra_session, keyspace, "id int PRIMARY KEY, total bigint")
    given = pa.table({"id": range(50), "total": range(50)})
    job = f"client-{uuid.uuid4().hex[:8]}"
    first = client.load(given, table, job_id=job)
    again = client.load(given, table, job_id=job)
    assert first.job == again.job == job
    assert [one.state for one in client.jobs() if one.job == job] == ["COMPLETE"]
    assert first.records == again.records == 50
    assert first.seconds == again.seconds
    rows = cassandra_session.execute(f"SELECT id, total FROM {table}")
    assert sorted(map(tuple, rows)) == [(n, n) for n in range(50)]
    with pytest.raises(UsageError, match=job):
        client.load(given.slice(1), table, job_id=job)
    hits = create_table(cassandra_session, keyspace, "page text PRIMARY KEY, n counter", "hits")
    for _ in range(2):  # a counter is not counted twice
        added = client.exec(
            f"UPDATE {hits} SET n = n + ? WHERE page = ?",
            [{"n": 5, "page": "home"}],
            job_id=f"{job}-hits",
        )
        assert added.answered == 1
    assert [row.n for row in cassandra_session.execute(f"SELECT n FROM {hits}")] == [5]
    with pytest.raises(UsageError, match="not kept"):
        client.lookup([1], table, key="id", job_id=job)
    left = [path for path in (tmp_path / "shared").rglob("*") if path.is_file()]
    assert left == []


def test_another_thread_cancels_and_the_job_is_resumed(
    client: Client,
    fleet_env: dict[str, str],
    cassandra_session: Session,
    keyspace: str,
    tmp_path: Path,
) -> None:
    table = create_table(cassandra_session, keyspace, "id int PRIMARY KEY, total bigint")
    file = tmp_path / "orders.csv"
    file.write_text("id,total\n" + "".join(f"{n},{n}\n" for n in range(ROWS)))
    threads: list[threading.Thread] = []

    def speed_up(progress: Progress) -> None:
        command = Ringhaul(fleet_env, tmp_path)
        if progress.state == "RUNNING":
            command.run("throttle", progress.job, "--off")

    def cancel(progress: Progress) -> None:
        if progress.rows and not threads:
            threads.append(threading.Thread(target=client.job(progress.job).cancel))
            threads[0].start()

    with pytest.raises(JobCancelled) as caught:
        client.load(file, table, rate=60, unit_size="1K", progress=cancel)
    threads[0].join()
    assert (caught.value.transient, caught.value.cause) == (False, "Cancelled")
    result = caught.value.result
    assert result.state == "CANCELLED" and result.units_done < result.units
    job = client.job(result.job)
    kinds = [event.kind for event in job.events()]
    assert kinds[0] == "created" and kinds[-1] == "ended"
    found = job.resume(progress=speed_up)
    assert (found.state, found.rows) == ("COMPLETE", ROWS)
    rows = cassandra_session.execute(f"SELECT id, total FROM {table}")
    assert sorted(map(tuple, rows)) == [(n, n) for n in range(ROWS)]


def test_rejects_and_their_limit(
    client: Client, cassandra_session: Session, keyspace: str, tmp_path: Path
) -> None:
    table = create_table(cassandra_session, keyspace, "id int PRIMARY KEY, total bigint")
    file = tmp_path / "orders.csv"
    file.write_text("id,total\n1,10\n2,x\n3,30\ny,40\n")
    plan = client.plan_load(file, table)
    assert plan.table == table and "INSERT INTO" in plan.statement
    job = client.submit_load(file, table)
    result = job.wait()
    assert (result.state, result.exit_code, result.rows, result.rejected) == ("PARTIAL", 1, 2, 2)
    rejects = sorted(job.rejects(), key=lambda one: one.line or 0)
    assert [(one.line, one.column, one.stage, one.data) for one in rejects] == [
        (3, "total", "cast", b"2,x"),
        (5, "id", "cast", b"y,40"),
    ]
    rows = cassandra_session.execute(f"SELECT id, total FROM {table}")
    assert sorted(map(tuple, rows)) == [(1, 10), (3, 30)]
    with pytest.raises(TooManyRejects) as caught:
        client.load(file, table, max_errors=0)
    assert caught.value.result.state == "STOPPED"


def test_an_unload_is_loaded_again(
    client: Client, cassandra_session: Session, keyspace: str, tmp_path: Path
) -> None:
    source = create_table(cassandra_session, keyspace, "id int PRIMARY KEY, total bigint", "a")
    target = create_table(cassandra_session, keyspace, "id int PRIMARY KEY, total bigint", "b")
    for n in range(40):
        cassandra_session.execute(f"INSERT INTO {source} (id, total) VALUES ({n}, {n})")
    unloaded = client.unload(source, tmp_path / "out", format="jsonl", where="id < 30")
    assert (unloaded.rows, unloaded.rows_read) == (30, 40) and unloaded.files >= 1
    assert client.load(tmp_path / "out", target).check().rows == 30
    rows = cassandra_session.execute(f"SELECT id, total FROM {target}")
    assert sorted(map(tuple, rows)) == [(n, n) for n in range(30)]


def test_what_is_wrong_is_said_by_type(
    client: Client, endpoints: Endpoints, tmp_path: Path, keyspace: str
) -> None:
    with pytest.raises(ClusterError, match=f"no table .*{keyspace}"):
        client.load(pa.table({"id": [1]}), f"{keyspace}.nowhere")
    with pytest.raises(UsageError, match="no such file"):
        client.load(tmp_path / "nowhere.csv", f"{keyspace}.t")
    with pytest.raises(UsageError, match="there is no job"):
        client.job("ld-000000").status()
    nobody = Client(
        environment=cluster_env(endpoints, tmp_path / "state") | {"RINGHAUL_CLUSTER_PORT": "1"}
    )
    with pytest.raises(ClusterUnavailable) as caught:
        nobody.peek(f"{keyspace}.t")
    assert caught.value.transient and "127.0.0.1:1" in caught.value.message


PROGRAM = """
import sys
from ringhaul.client import Client
def show(progress):
    if progress.rows and progress.state == "RUNNING": print(progress.job, flush=True)
Client().load(sys.argv[1], sys.argv[2], rate=200, unit_size="1K", progress=show)
"""


def test_a_killed_kernel_leaves_no_process(
    endpoints: Endpoints, cassandra_session: Session, keyspace: str, tmp_path: Path
) -> None:
    """Its command, with its own workers and broker, ends as after Ctrl-C."""
    table = create_table(cassandra_session, keyspace, "id int PRIMARY KEY, total bigint")
    file = tmp_path / "orders.csv"
    file.write_text("id,total\n" + "".join(f"{n},{n}\n" for n in range(20_000)))
    env = cluster_env(endpoints, tmp_path / "state")
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(file), table],
        env=os.environ | env,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert program.stdout is not None
    job = program.stdout.readline().strip()
    started = psutil.Process(program.pid).children(recursive=True)
    program.stdout.close()
    program.send_signal(signal.SIGKILL)
    program.wait()
    wait_until(lambda: not any(map(is_alive, started)), "their end", 60)
    assert Client(environment=env).job(job).status().state == "CANCELLED"


def test_the_page_about_python(
    client: Client,
    fleet_env: dict[str, str],
    cassandra_session: Session,
    keyspace: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its blocks run one after the other, with the table in a keyspace of this test."""
    table = create_table(
        cassandra_session, keyspace, "id int PRIMARY KEY, region text, total double", "orders"
    )
    monkeypatch.chdir(tmp_path)
    for name, value in fleet_env.items():
        monkeypatch.setenv(name, value)
    header = "id,region,total\n"
    for name, lines in (
        ("orders/a.csv", "id;region;total\n1;NULL;1\n"),
        ("orders.csv", f"{header}2,west,2\n"),
        ("one.csv", f"{header}3,west,3\n"),
        ("two.csv", f"{header}4,west,4\n"),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(lines)
    frame = pd.DataFrame({"id": [7, 8, 9], "region": ["east"] * 3, "total": [1.0, None, 3.0]})
    names: dict[str, Any] = {
        **{"frame": frame, "day_one": "one.csv", "day_two": "two.csv", "files": "orders.csv"},
    }
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    for block in blocks:
        exec(compile(block.replace("shop.orders", table), "page", "exec"), names)
        names["client"] = client
    assert names["table"].num_rows == 1 and names["result"].rows == 3
    rows = cassandra_session.execute(f"SELECT id, region, total FROM {table}")
    assert sorted(map(tuple, rows)) == [
        *((1, None, 1.0), (2, "west", 2.0), (3, "west", 3.0), (4, "west", 4.0)),
        *((7, "east", 5.0), (8, "east", None), (9, "east", 3.0)),
    ]


def is_alive(process: psutil.Process) -> bool:
    """Return whether it still runs: a zombie does not."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
