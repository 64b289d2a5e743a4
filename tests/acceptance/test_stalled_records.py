"""A record that hangs or kills its process is rejected alone."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cassandra.cluster import Session

from tests.acceptance.command import Ringhaul
from tests.acceptance.oracle import assert_table, create_table

#: `spin` never returns, in compiled code that holds the GIL, as a regular expression that
#: backtracks does; `die` ends as after an out-of-memory kill.
MODULE = """
import os, re, signal
from ringhaul.transform import each_row

@each_row
def strange(record):
    if record["t"] == "spin":
        re.match("(a|a)*b", "a" * 60)
    if record["t"] == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    return record
"""
ROWS = 20_000
SHORT = {"RINGHAUL_WORKER_LEASE_S": "12", "RINGHAUL_WORKER_SWEEP_S": "1"}
#: For processes that are killed by wall clock, several times, after two thirds of a lease each. A
#: busy machine takes longer, so these tests run alone.
SHORTER = {"RINGHAUL_WORKER_LEASE_S": "6", "RINGHAUL_WORKER_SWEEP_S": "0.5"}


@pytest.mark.parametrize("format_", ["csv", "parquet"])
# The first one starts the servers, beside other tests.
@pytest.mark.parametrize("strange", ["die", pytest.param("spin", marks=pytest.mark.alone)])
def test_a_record_that_kills_its_process_is_rejected_and_all_others_are_loaded(
    embedded: Ringhaul,
    cassandra_session: Session,
    keyspace: str,
    tmp_path: Path,
    strange: str,
    format_: str,
) -> None:
    # Given 20,000 records, one of which hangs or kills its process
    (tmp_path / "etl").mkdir()
    (tmp_path / "etl" / "rh_strange.py").write_text(MODULE)
    table = create_table(cassandra_session, keyspace, "id int PRIMARY KEY, t text")
    rows = [(n, f"value {n}") for n in range(ROWS)]
    culprit = 15_123
    given = [(n, strange if n == culprit else text) for n, text in rows]
    source = tmp_path / f"in.{format_}"
    if format_ == "csv":
        source.write_text("id,t\n" + "".join(f"{n},{text}\n" for n, text in given))
    else:
        columns = zip(*given, strict=True)
        names = {"id": pa.int32(), "t": pa.string()}
        arrays = [pa.array(c, kind) for c, kind in zip(columns, names.values(), strict=True)]
        pq.write_table(pa.table(arrays, list(names)), source)

    done = embedded.run(
        "load", source, "-t", table, "--json", "-c", 1, "--transform", "rh_strange:strange",
        RINGHAUL_TRANSFORM_ALLOWED="rh_strange:*",
        RINGHAUL_TRANSFORM_PATH=str(tmp_path / "etl"),
        **(SHORTER if strange == "spin" else SHORT),
    )  # fmt: skip

    # Then it is rejected with the cause, and every other row is in the table
    summary = done.summary
    log = "".join(path.read_text() for path in (tmp_path / "state" / "logs").iterdir())
    assert (done.code, summary["state"]) == (1, "PARTIAL"), [done.err, log]
    assert (summary["records"], summary["rows"], summary["rejected"]) == (ROWS, ROWS - 1, 1)
    listed = embedded.run("errors", summary["job"], "--json", **SHORT)
    (reject,) = [json.loads(line) for line in listed.out.splitlines()]
    assert reject["line"] == culprit + (2 if format_ == "csv" else 1)
    assert reject["stage"] == "transform"
    words = "without progress" if strange == "spin" else "killed its process"
    assert words in reject["reason"], reject
    assert_table(cassandra_session, table, "id, t", [row for row in rows if row[0] != culprit])


def test_a_record_that_kills_a_verifying_process_is_rejected_and_all_others_are_compared(
    embedded: Ringhaul, cassandra_session: Session, keyspace: str, tmp_path: Path
) -> None:
    # Given a table that holds 20,000 records, one of which kills a transform
    (tmp_path / "etl").mkdir()
    (tmp_path / "etl" / "rh_strange.py").write_text(MODULE)
    table = create_table(cassandra_session, keyspace, "id int PRIMARY KEY, t text")
    source, rows, culprit = tmp_path / "in.csv", ROWS, 15_123
    lines = [f"{n},{'die' if n == culprit else n}\n" for n in range(rows)]
    source.write_text("id,t\n" + "".join(lines))
    assert embedded.run("load", source, "-t", table, "-c", 1).code == 0

    done = embedded.run(
        "verify", source, "-t", table, "--json", "-c", 1, "--transform", "rh_strange:strange",
        RINGHAUL_TRANSFORM_ALLOWED="rh_strange:*",
        RINGHAUL_TRANSFORM_PATH=str(tmp_path / "etl"),
        **SHORT,
    )  # fmt: skip

    # Then it is named, and every other row compares equal
    assert done.code == 1, done.err
    assert (done.summary["rows"], done.summary["rejected"]) == (rows - 1, 1), done.summary
    listed = embedded.run("errors", done.summary["job"], "--json", **SHORT)
    (reject,) = [json.loads(line) for line in listed.out.splitlines()]
    assert (reject["line"], reject["stage"]) == (culprit + 2, "transform")
