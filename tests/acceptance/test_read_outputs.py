"""Outputs that fail: each is reported with a message and its documented exit code."""

from __future__ import annotations

import csv
import json
import os
import re
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest
import redis
from cassandra.cluster import Session
from cassandra.concurrent import execute_concurrent_with_args

from ringhaul.ledger.connection import Caller
from ringhaul.ledger.workers import Workers
from tests.acceptance.command import TIMEOUT_S, Ringhaul
from tests.acceptance.mounts import Namespaced
from tests.acceptance.oracle import create_table

ROWS = 2_000
NOTE = "n" * 200


@pytest.fixture(scope="module")
def table(cassandra_session: Session, module_keyspace: str) -> str:
    """A table with rows of 200 bytes."""
    name = create_table(cassandra_session, module_keyspace, "id int PRIMARY KEY, note text")
    insert = cassandra_session.prepare(f"INSERT INTO {name} (id, note) VALUES (?, ?)")
    execute_concurrent_with_args(cassandra_session, insert, [(n, NOTE) for n in range(ROWS)])
    return name


@contextmanager
def small_disk(fleet: Ringhaul, bytes_max: int) -> Iterator[None]:
    """Limit the file size of the fleet's processes in the block, as a full disk would."""
    with redis.Redis.from_url(fleet.env["RINGHAUL_BROKER_URL"]) as client:
        parents = [psutil.Process(worker.pid) for worker in Workers(Caller(client)).alive()]
    pids = [child.pid for parent in parents for child in parent.children(recursive=True)]
    before = {
        pid: resource.prlimit(pid, resource.RLIMIT_FSIZE, (bytes_max, resource.RLIM_INFINITY))
        for pid in pids
    }
    assert before
    try:
        yield
    finally:
        for pid, limits in before.items():
            with suppress(ProcessLookupError):  # it had its number of tasks, and was replaced
                resource.prlimit(pid, resource.RLIMIT_FSIZE, limits)


def unloaded(out: Path) -> list[tuple[int, str]]:
    """Return the sorted rows of the manifest's parts, and assert that there is no other file."""
    manifest = json.loads((out / "_manifest.json").read_text())
    assert sorted(path.name for path in out.iterdir()) == sorted(
        ["_manifest.json", *(part["name"] for part in manifest["parts"])]
    )
    found = []
    for part in manifest["parts"]:
        with (out / part["name"]).open(newline="") as file:
            found += [(int(row["id"]), row["note"]) for row in csv.DictReader(file)]
    return sorted(found)


def test_an_unload_to_a_full_disk_resumes_when_there_is_room(
    fleet: Ringhaul, table: str, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with small_disk(fleet, 20_000):
        full = fleet.run("unload", "-t", table, "-o", out)
    assert full.code == 4, full
    assert "--max-file-size" in full.err and "Traceback" not in full.err
    assert not (out / "_manifest.json").exists()
    (job,) = set(re.findall(r"ul-[0-9a-f]{6}", full.err))
    assert fleet.run("resume", job).code == 0
    assert unloaded(out) == [(n, NOTE) for n in range(ROWS)]


def test_an_unload_to_a_file_system_that_is_full(
    embedded: Ringhaul, mounts: int, table: str, tmp_path: Path
) -> None:
    """A real file system of 100 KiB for 400 KiB of data. Enlarged, it takes the rest."""
    out = tmp_path / "out"
    out.mkdir()
    inside = Namespaced(embedded.env, embedded.cwd, mounts)
    inside.mount(out, "size=100k")
    seen = inside.seen(out)
    full = inside.run("unload", "-t", table, "-o", out)
    assert full.code == 4, full
    assert f"{out}: no space is left; make room there, or name another folder" in full.err
    assert "Traceback" not in full.err
    assert not (seen / "_manifest.json").exists()
    (job,) = set(re.findall(r"ul-[0-9a-f]{6}", full.err))
    inside.mount(out, "remount,size=10m")
    assert inside.run("resume", job).code == 0
    assert not list(out.iterdir())  # everything went to the file system under test
    assert unloaded(seen) == [(n, NOTE) for n in range(ROWS)]


@pytest.mark.parametrize("command", ["unload", "lookup"])
def test_rows_to_a_standard_output_that_is_full(
    fleet: Ringhaul, table: str, tmp_path: Path, command: str
) -> None:
    keys = tmp_path / "keys.csv"
    keys.write_text("id\n1\n2\n")
    given = ["--keys", keys] if command == "lookup" else []
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            fleet.argv(command, "-t", table, *given, "-o", "-"),
            stdout=full,
            stderr=subprocess.PIPE,
            env=fleet.env,
            cwd=fleet.cwd,
            timeout=TIMEOUT_S,
        )
    err = done.stderr.decode().splitlines()
    assert done.returncode == 4, err
    assert err[-1] == (
        "error: standard output cannot be written: No space left on device; the job is cancelled"
    )
    assert not any(line.startswith("Traceback") for line in err)


@pytest.mark.parametrize(
    ("given", "code", "words"),
    [
        (["unload", "-t", "{t}", "-o", "{here}/out"], 0, "complete: 2,000 rows"),
        (["unload", "-t", "{t}", "-o", "-"], 4, "standard output cannot be written"),
        (["lookup", "-t", "{t}", "--keys", "{keys}"], 4, "standard output cannot be written"),
        (["count", "-t", "{t}"], 4, "standard output: the result cannot be written"),
        (["status", "--json"], 4, "output cannot be written"),
        (["--version"], 4, "output cannot be written"),
    ],
)
def test_a_standard_output_that_was_closed(
    fleet: Ringhaul, table: str, tmp_path: Path, given: list[str], code: int, words: str
) -> None:
    keys = tmp_path / "keys.csv"
    keys.write_text("id\n1\n2\n")
    places = {"t": table, "keys": keys, "here": tmp_path}
    argv = fleet.argv(*(word.format(**places) for word in given))
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *argv],
        stderr=subprocess.PIPE,
        env=fleet.env,
        cwd=fleet.cwd,
        timeout=TIMEOUT_S,
    )
    err = done.stderr.decode()
    assert done.returncode == code, err
    assert words in err and "Traceback" not in err


def test_standard_error_that_was_closed(fleet: Ringhaul, table: str) -> None:
    argv = fleet.argv("count", "-t", table)
    for closed in ("2>&-", "2>&- <&-"):
        done = subprocess.run(
            ["sh", "-c", f'exec "$@" {closed}', "sh", *argv],
            stdout=subprocess.PIPE,
            env=fleet.env,
            cwd=fleet.cwd,
            timeout=TIMEOUT_S,
        )
        assert (done.returncode, done.stdout.decode()) == (0, f"count\n{ROWS}\n"), closed


def test_a_column_of_the_servers_own_type(
    fleet: Ringhaul, cassandra_session: Session, module_keyspace: str, tmp_path: Path
) -> None:
    custom = "'org.apache.cassandra.db.marshal.LexicalUUIDType'"
    name = create_table(
        cassandra_session, module_keyspace, f"id int PRIMARY KEY, v {custom}, n int", name="custom"
    )
    cassandra_session.execute(f"INSERT INTO {name} (id, n) VALUES (1, 7)")
    keys = tmp_path / "keys.csv"
    keys.write_text("id\n1\n")
    words = f"column 'v' of {name} has type {custom}, which ringhaul does not know: name the"
    refused = [
        ["unload", "-t", name, "-o", tmp_path / "out"],
        ["count", "-t", name, "--where", "v IS NULL"],
        ["query", f"SELECT max(v) FROM {name}"],
        ["lookup", "-t", name, "--keys", keys],
    ]
    for given in refused:
        done = fleet.run(*given)
        assert (done.code, done.out) == (2, ""), done
        assert words in done.err, done
    done = fleet.run("exec", f"SELECT v FROM {name} WHERE id = ?", "--params", keys)
    assert done.code == 2 and "which ringhaul does not know" in done.err, done
    # Every command can read the other columns
    answered = [
        (["unload", "-t", name, "--columns", "id,n", "-o", "-"], "id,n\n1,7\n"),
        (["count", "-t", name, "--where", "n > 6"], "count\n1\n"),
        (["query", f"SELECT max(n) AS n FROM {name}"], "n\n7\n"),
        (["lookup", "-t", name, "--columns", "id,n", "--keys", keys], "id,n\n1,7\n"),
    ]
    for given, out in answered:
        done = fleet.run(*given)
        assert (done.code, done.out) == (0, out), done


def test_bad_keys_are_reported_by_line_column_and_value(
    fleet: Ringhaul, table: str, tmp_path: Path
) -> None:
    keys = tmp_path / "keys.csv"
    keys.write_text("id,more\n1,\none,\n,\n2,\n3,4,5\n2147483648,\n")
    done = fleet.run("lookup", "-t", table, "--columns", "id", "--keys", keys)
    assert done.code == 1 and done.out == "id\n1\n2\n", done
    assert "4 rejected" in done.err
    job = re.search(r"lk-[0-9a-f]{6}", done.err)
    assert job is not None
    errors = sorted(fleet.run("errors", job[0]).out.splitlines())
    wanted = (
        (3, 'column id: cast int: "one" is not '),
        (4, "column id: missing, and it is part of the key"),
        (6, "has 3 fields, expected 2; --values-allow-extra-fields leaves out the rest"),
        (7, "column id: cast int: 2147483648 is outside"),
    )
    for line, (number, words) in zip(errors, wanted, strict=True):
        assert line.startswith(f"{keys}:{number}  byte ") and words in line, errors


def test_a_state_folder_that_cannot_be_made(fleet: Ringhaul, table: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    state = tmp_path / "file" / "state"
    done = fleet.run("unload", "-t", table, "-o", "-", RINGHAUL_STATE_DIR=str(state))
    assert (done.code, done.out) == (2, ""), done
    assert f"the state folder {state} cannot be used: Not a directory" in done.err, done


def test_resume_prints_a_result_that_could_not_be_written(fleet: Ringhaul, table: str) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            fleet.argv("count", "-t", table),
            stdout=full,
            stderr=subprocess.PIPE,
            env=fleet.env,
            cwd=fleet.cwd,
            timeout=TIMEOUT_S,
        )
    err = done.stderr.decode()
    assert done.returncode == 4, err
    found = re.search(r"No space left on device; `ringhaul resume (ct-[0-9a-f]{6})`", err)
    assert found is not None, err
    again = fleet.run("resume", found[1])
    assert (again.code, again.out) == (0, f"count\n{ROWS}\n"), again


@pytest.mark.parametrize("command", ["count", "query", "lookup", "exec", "load"])
def test_a_reader_that_closes_the_pipe(
    fleet: Ringhaul, table: str, tmp_path: Path, command: str
) -> None:
    keys = tmp_path / "keys.csv"
    keys.write_text("id\nnone\n" if command == "load" else "id\n1\n2\n")
    given: list[object] = {
        "count": ["-t", table],
        "query": [f"SELECT count(*) FROM {table}"],
        "lookup": ["-t", table, "--keys", keys],
        "exec": [f"SELECT id FROM {table} WHERE id = ?", "--params", keys],
        "load": [keys, "-t", table, "--json"],
    }[command]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        fleet.argv(command, *given),
        stdout=writing,
        stderr=subprocess.PIPE,
        env=fleet.env,
        cwd=fleet.cwd,
        timeout=TIMEOUT_S,
    )
    os.close(writing)
    err = done.stderr.decode()
    # A result is complete; some rows are missing; a load continues without its messages.
    codes = {"count": 0, "query": 0, "lookup": 6, "exec": 6, "load": 1}
    assert done.returncode == codes[command], err
    assert ("standard output was closed" in err) == (command in ("lookup", "exec"))
    assert "Traceback" not in err


REFUSED = {
    "a folder with files": (["lookup", "-t", "{t}", "--keys", "{keys}", "-o", "{here}"], "empty"),
    "exec into it": (
        ["exec", "SELECT id FROM {t} WHERE id = ?", "--params", "{keys}", "-o", "{here}"],
        "is not empty",
    ),
    "a folder for a result": (["query", "SELECT count(*) FROM {t}", "-o", "{here}"], "give a file"),
    "nowhere": (
        ["query", "SELECT count(*) FROM {t}", "-o", "{here}/no/result.csv"],
        "there is no folder {here}/no",
    ),
    "consistency": (["unload", "-t", "{t}", "-o", "out", "--consistency", "SOME"], '"SOME"'),
    "consistency of a count": (["count", "-t", "{t}", "--consistency", "SOME"], '"SOME"'),
    "consistency of keys": (
        ["lookup", "-t", "{t}", "--keys", "{keys}", "--consistency", "SOME"],
        '"SOME"',
    ),
    "consistency of writes": (
        ["unload", "-t", "{t}", "-o", "out", "--consistency", "ANY"],
        "writes",
    ),
    "consistency of writes, of a query": (
        ["query", "SELECT count(*) FROM {t}", "--consistency", "ANY"],
        "for writes only",
    ),
    "consistency of writes, of keys": (
        ["lookup", "-t", "{t}", "--keys", "{keys}", "--consistency", "ANY"],
        "for writes only",
    ),
    "consistency of writes, of exec": (
        ["exec", "SELECT id FROM {t} WHERE id = ?", "--params", "{keys}", "--consistency", "ANY"],
        "for writes only",
    ),
    "consistency of two": (
        ["exec", "DELETE FROM {t} WHERE id = ?", "--params", "{keys}", "--consistency", "TWO"],
        "consistency TWO needs 2 replicas",
    ),
    "rows as Parquet": (["unload", "-t", "{t}", "-o", "-", "--format", "parquet"], "give a folder"),
    "rows and summary": (["unload", "-t", "{t}", "-o", "-", "--json"], "give one of them"),
    "rows and progress": (
        ["lookup", "-t", "{t}", "--keys", "{keys}", "--progress", "json"],
        "-o - and --progress json both want standard output",
    ),
    "result and summary": (
        ["query", "SELECT count(*) FROM {t}", "--format", "json", "--json"],
        "the result and --json both want standard output",
    ),
    "number and progress": (
        ["count", "-t", "{t}", "--progress", "json"],
        "the result and --progress json both want standard output",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_an_unusable_output_is_refused_at_once(
    fleet: Ringhaul, table: str, tmp_path: Path, case: str
) -> None:
    arguments, words = REFUSED[case]
    keys = tmp_path / "keys.csv"
    keys.write_text("id\n1\n")
    names = {"t": table, "keys": keys, "here": tmp_path}
    done = fleet.run(*(argument.format(**names) for argument in arguments))
    assert done.code == 2, done
    assert words.format(**names) in done.err
    assert "Traceback" not in done.err
    assert done.out == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["keys.csv"]
