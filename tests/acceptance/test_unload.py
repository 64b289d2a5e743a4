"""Unload: every row of the table is in the files exactly once, unchanged, and loads again."""

from __future__ import annotations

import csv
import json
import random
import subprocess
import zlib
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from cassandra.cluster import Session
from cassandra.concurrent import execute_concurrent_with_args

from tests.acceptance.command import Finished, Ringhaul, wait_until
from tests.acceptance.hold import Hold
from tests.acceptance.oracle import assert_table, create_table, read_rows

ROWS = 20_000
COLUMNS = "id, seq, v, note"


@pytest.fixture(scope="module")
def table(cassandra_session: Session, module_keyspace: str) -> str:
    """A table with partitions of 1 to 9 rows; some values are null, empty or need quoting."""
    name = create_table(
        cassandra_session,
        module_keyspace,
        "id text, seq int, v double, note text, PRIMARY KEY (id, seq)",
    )
    numbers = random.Random(7)
    notes = [
        None,
        "",
        "plain",
        'quote "',
        "comma, here",
        "line\nend\r\n",
        " blanks ",
        "ünï©ode 👩‍👧",
    ]
    rows: list[tuple[Any, ...]] = []
    while len(rows) < ROWS:
        key = f"k{len(rows)}"
        for seq in range(numbers.randint(1, 9)):
            v = numbers.choice([None, 0.1, -0.0, 1e300, numbers.random()])
            rows.append((key, seq, v, numbers.choice(notes)))
    insert = cassandra_session.prepare(f"INSERT INTO {name} ({COLUMNS}) VALUES (?, ?, ?, ?)")
    execute_concurrent_with_args(cassandra_session, insert, rows[:ROWS], concurrency=200)
    return name


def manifest(folder: Path) -> dict[str, Any]:
    """Check the manifest against the files, and return it."""
    found: dict[str, Any] = json.loads((folder / "_manifest.json").read_text())
    names = [part["name"] for part in found["parts"]]
    assert sorted(names) == names, "parts are in token order"
    assert {path.name for path in folder.iterdir()} == {*names, "_manifest.json"}
    for part in found["parts"]:
        data = (folder / part["name"]).read_bytes()
        assert (part["bytes"], part["checksum"]) == (len(data), f"crc32:{zlib.crc32(data):08x}")
    assert found["totals"]["parts"] == len(names)
    return found


def csv_rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text.splitlines(keepends=True)))


def unloaded_csv(folder: Path) -> list[dict[str, str]]:
    """Return the records of all parts, each of which has a header."""
    rows: list[dict[str, str]] = []
    for part in manifest(folder)["parts"]:
        records = csv_rows((folder / part["name"]).read_bytes().decode())
        assert len(records) == part["rows"]
        rows += records
    return rows


def assert_unloaded(finished: Finished, rows: int) -> dict[str, Any]:
    assert finished.code == 0, finished
    summary = finished.summary
    assert (summary["rows"], summary["state"]) == (rows, "COMPLETE")
    assert summary["units_done"] == summary["units"]
    return summary


def test_csv_holds_every_row_once_and_loads_again_bit_for_bit(
    fleet: Ringhaul, cassandra_session: Session, table: str, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    summary = assert_unloaded(fleet.run("unload", "-t", table, "-o", out, "--json"), ROWS)
    found = manifest(out)
    assert (found["totals"]["rows"], found["totals"]["parts"]) == (ROWS, summary["files"])
    assert len(summary["workers"]) >= 1
    assert len(unloaded_csv(out)) == ROWS

    again = create_table(
        cassandra_session,
        table.split(".")[0],
        "id text, seq int, v double, note text, PRIMARY KEY (id, seq)",
        "again",
    )
    loaded = fleet.run("load", out, "-t", again, "--json")
    assert (loaded.code, loaded.summary["rows"], loaded.summary["rejected"]) == (0, ROWS, 0)
    assert_table(cassandra_session, again, COLUMNS, read_rows(cassandra_session, table, COLUMNS))


def test_another_dialect_loads_again_without_options(
    fleet: Ringhaul, cassandra_session: Session, table: str, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    dialect = ("--delimiter", ";", "--quote", "'", "--null", "NULL", "--no-header")
    assert_unloaded(fleet.run("unload", "-t", table, "-o", out, *dialect, "--json"), ROWS)
    again = create_table(
        cassandra_session,
        table.split(".")[0],
        "id text, seq int, v double, note text, PRIMARY KEY (id, seq)",
        "of_another_dialect",
    )
    loaded = fleet.run("load", out, "-t", again, "--json")
    assert (loaded.code, loaded.summary["rows"], loaded.summary["rejected"]) == (0, ROWS, 0)
    assert f"{out}: CSV with delimiter ';', quote \"'\", null 'NULL', no header" in loaded.err
    assert_table(cassandra_session, again, COLUMNS, read_rows(cassandra_session, table, COLUMNS))


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_other_formats_hold_the_same_rows(
    fleet: Ringhaul, cassandra_session: Session, table: str, tmp_path: Path, form: str
) -> None:
    out = tmp_path / "out"
    assert_unloaded(fleet.run("unload", "-t", table, "-o", out, "--format", form, "--json"), ROWS)
    found = []
    for part in manifest(out)["parts"]:
        path = out / part["name"]
        if form == "parquet":
            rows = pq.read_table(path).to_pylist()
        else:
            rows = [json.loads(line) for line in path.read_text().splitlines()]
        assert len(rows) == part["rows"]
        found += [(r["id"], r["seq"], r.get("v"), r.get("note")) for r in rows]
    wanted = read_rows(cassandra_session, table, COLUMNS)
    assert sorted(map(repr, found)) == sorted(map(repr, wanted))


def test_where_and_columns_and_write_times(
    fleet: Ringhaul, cassandra_session: Session, table: str, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    finished = fleet.run(
        *("unload", "-t", table, "-o", out, "--json"),
        *("--columns", "id,seq,writetime(v)", "--where", "seq >= 3 AND v IS NOT NULL"),
    )
    wanted = {
        (row[0], str(row[1]), str(row[2]))
        for row in read_rows(cassandra_session, table, "id, seq, writetime(v), v")
        if row[1] >= 3 and row[3] is not None
    }
    summary = assert_unloaded(finished, len(wanted))
    assert summary["rows_read"] == ROWS
    rows = unloaded_csv(out)
    assert {tuple(row.values()) for row in rows} == wanted
    assert list(rows[0]) == ["id", "seq", "writetime(v)"]


def test_a_partition_key_in_where_reads_only_those_partitions(
    fleet: Ringhaul, cassandra_session: Session, table: str, tmp_path: Path
) -> None:
    keys = sorted({row[0] for row in read_rows(cassandra_session, table, "id")})[:3]
    listed = ", ".join(f"'{key}'" for key in keys)
    out = tmp_path / "out"
    finished = fleet.run("unload", "-t", table, "-o", out, "--where", f"id IN ({listed})", "--json")
    wanted = [row for row in read_rows(cassandra_session, table, "id, seq") if row[0] in keys]
    summary = assert_unloaded(finished, len(wanted))
    assert summary["rows_read"] == len(wanted), "the server sent only these rows"
    found = [(row["id"], int(row["seq"])) for row in unloaded_csv(out)]
    assert sorted(found) == sorted(wanted)


def test_files_have_the_chosen_size(fleet: Ringhaul, table: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    finished = fleet.run(
        *("unload", "-t", table, "-o", out, "--json", "--max-rows-per-file", 700),
        *("--compression", "gzip"),
    )
    assert_unloaded(finished, ROWS)
    rows = [part["rows"] for part in manifest(out)["parts"]]
    assert sum(rows) == ROWS
    assert max(rows) == 700


def test_stdout_in_token_order_is_reproducible(
    fleet: Ringhaul, cassandra_session: Session, table: str
) -> None:
    first = fleet.run("unload", "-t", table, "-o", "-", "--order", "token", "-q")
    second = fleet.run("unload", "-t", table, "-o", "-", "--order", "token", "-q")
    assert (first.code, second.code) == (0, 0), first
    assert first.out == second.out
    records = csv_rows(first.out)
    assert len(records) == ROWS, "one header, at the beginning"
    tokens = {row[0]: row[1] for row in read_rows(cassandra_session, table, "id, token(id)")}
    order = [tokens[record["id"]] for record in records]
    assert order == sorted(order)


def test_a_reader_that_closes_the_pipe_ends_an_unload(
    fleet: Ringhaul, table: str, tmp_path: Path
) -> None:
    # A worker that writes a part meanwhile makes the folder again; the next command removes it.
    env = fleet.env | {"RINGHAUL_STATE_DIR": str(tmp_path)}
    command = fleet.argv("unload", "-t", table, "-o", "-")
    with subprocess.Popen(
        command, env=env, cwd=fleet.cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        line = process.stdout.readline()
        process.stdout.close()
        err = process.stderr.read().decode()
        code = process.wait(60)
    assert line == b"id,seq,note,v\n"
    assert code == 6, err
    assert "standard output was closed" in err
    assert "Traceback" not in err


def test_the_next_unload_removes_the_spool_files_of_a_killed_one(
    fleet: Ringhaul, hold: Hold, table: str, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    spool = state / "spool"
    unload = ("unload", "-t", table, "-o", "-")
    env = {"RINGHAUL_STATE_DIR": str(state)}
    # Given an unload that is killed while it runs
    log = tmp_path / "killed.log"
    hold.from_unit(0)
    with fleet.started(*unload, log=log, **env) as killed:
        wait_until(lambda: spool.exists() and any(spool.iterdir()), "the folder of its parts")
        killed.kill()
        killed.wait()
    hold.release()
    assert [path.name[:3] for path in spool.iterdir()] == ["ul-"]

    # When others follow, then its files are removed, once its worker has noticed the kill
    def follow() -> bool:
        done = fleet.run(*unload, "--where", "seq > 7", "-q", **env)
        assert done.code == 0, done
        return not any(spool.iterdir())

    wait_until(follow, "an empty spool folder")


REFUSED = {
    "no such table": (["-t", "{keyspace}.tt"], 4, "no table 'tt'"),
    "unknown column": (["-t", "{table}", "--columns", "id,nota"], 2, "nota"),
    "unknown in where": (["-t", "{table}", "--where", "sec > 1"], 2, "sec"),
    "wrong type": (["-t", "{table}", "--where", "seq > 'x'"], 2, "seq"),
    "aggregate": (["--query", "SELECT count(*) FROM {table}"], 2, "ringhaul query"),
    "no such keyspace": (["-t", "nowhere.t"], 4, "no keyspace 'nowhere' in this cluster"),
    "blank lines": (["-t", "{table}", "--columns", "note"], 2, "give --null NULL"),
}
#: Refused without a connection to the cluster.
REFUSED_BEFORE = {
    "no columns": (["-t", "{table}", "--columns", ""], "--columns '' names no column"),
    "no condition": (["-t", "{table}", "--where", " "], "--where is empty: give a condition"),
    "no bytes": (["-t", "{table}", "--max-file-size", "0"], "'0': a file has a byte at least"),
    "bad size": (["-t", "{table}", "--max-file-size", "x"], "--max-file-size 'x': "),
    "no table": (["--columns", "id"], "give --table, or --query with a SELECT"),
    "both": (["-t", "{table}", "--query", "SELECT 1"], "leave --table out"),
    "no keyspace": (["-t", "t"], "no keyspace: give --keyspace"),
    "parquet option": (["-t", "{table}", "--format", "parquet", "--delimiter", ";"], "CSV"),
    "compression": (["-t", "{table}", "--compression", "lzo"], "--compression: csv can have"),
    "detached": (["-t", "{table}", "-o", "-", "--detach"], "give -o a folder"),
    "broken sql": (["--query", "SELECT FROM WHERE"], "cannot read the query"),
    "broken where": (["-t", "{table}", "--where", "seq >"], "cannot read the query"),
    "rejects": (["-t", "{table}", "--max-errors", "5"], "--max-errors applies to transforms"),
    "a file in parts": (
        ["-t", "{table}", "-o", "{here}/mine.txt", "--max-rows-per-file", "5"],
        "make several files, and you want one",
    ),
    "a file of another format": (
        ["-t", "{table}", "-o", "{here}/a.csv", "--format", "jsonl"],
        "has the name of csv, and --format is jsonl",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_an_unload_that_cannot_work_is_refused_before_any_read(
    fleet: Ringhaul, table: str, tmp_path: Path, case: str
) -> None:
    options, code, words = REFUSED[case]
    names = {"table": table, "keyspace": table.split(".")[0]}
    out = tmp_path / "out"
    finished = fleet.run("unload", "-o", out, *(option.format(**names) for option in options))
    assert finished.code == code, finished
    assert words in finished.err
    assert "Traceback" not in finished.err
    assert not out.exists() or not any(out.iterdir())


@pytest.mark.parametrize("case", REFUSED_BEFORE)
def test_an_invalid_unload_is_refused_before_the_cluster_is_contacted(
    fleet: Ringhaul, tmp_path: Path, case: str
) -> None:
    (tmp_path / "mine.txt").write_text("keep me")
    options, words = REFUSED_BEFORE[case]
    names = {"table": "shop.orders", "here": tmp_path}
    closed_port = ("--contact-points", "127.0.0.1", "--port", 1)
    given = (option.format(**names) for option in options)
    finished = fleet.run("unload", "-o", tmp_path / "out", *closed_port, *given)
    assert finished.code == 2, finished
    assert words.format(**names) in finished.err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_folder_with_files_is_refused(fleet: Ringhaul, table: str, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep me")
    finished = fleet.run("unload", "-t", table, "-o", tmp_path)
    assert finished.code == 2
    assert f"{tmp_path} is not empty" in finished.err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_folder_that_cannot_be_created_is_reported(
    fleet: Ringhaul, table: str, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    finished = fleet.run("unload", "-t", table, "-o", tmp_path / "file" / "out")
    assert finished.code == 2
    assert f"{tmp_path / 'file'} is not a folder" in finished.err


def test_a_command_that_follows_a_detached_unload_writes_its_manifest(
    fleet: Ringhaul, table: str, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    left = fleet.run("unload", "-t", table, "-o", out, "--detach")
    assert left.code == 7, left
    job = left.out.strip()
    followed = fleet.run("status", "-f", job, "--json")
    assert followed.code == 0, followed
    manifest = json.loads((out / "_manifest.json").read_text())
    assert manifest["job"] == job
    assert sum(part["rows"] for part in manifest["parts"]) == followed.summary["rows"]
    # `status` does not write a deleted manifest again, and `resume` does
    (out / "_manifest.json").unlink()
    assert fleet.run("status", "-f", job).code == 0
    assert not (out / "_manifest.json").exists()
    assert fleet.run("resume", job).code == 0
    assert json.loads((out / "_manifest.json").read_text()) == manifest
    # and a finished job is reported also without its files
    for path in out.iterdir():
        path.unlink()
    assert fleet.run("status", "-f", job).code == 0
    assert not list(out.iterdir())


def test_dry_run_reads_nothing(fleet: Ringhaul, table: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    finished = fleet.run("unload", "-t", table, "-o", out, "--dry-run")
    assert finished.code == 0
    assert "would unload" in finished.out
    assert "token(" in finished.out
    plan = json.loads(fleet.run("unload", "-t", table, "-o", out, "--dry-run", "--json").out)
    assert (plan["table"], plan["output"]) == (table, str(out))
    assert f" statement  {plan['statement']}" in finished.out.splitlines()
    assert [column["column"] for column in plan["columns"]] == ["id", "seq", "note", "v"]
    assert not out.exists()
