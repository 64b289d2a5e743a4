"""An unload to one file, and to files with chosen names: every row once, and it loads again."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from cassandra.cluster import Session
from cassandra.concurrent import execute_concurrent_with_args

from ringhaul.ledger.connection import connect
from ringhaul.ledger.ledger import Ledger
from tests.acceptance.command import Ringhaul, wait_until
from tests.acceptance.hold import Hold
from tests.acceptance.oracle import assert_table, create_table, read_rows

ROWS = 2_000
COLUMNS = "id, u, note"
DDL = "id int PRIMARY KEY, u uuid, note text"


@pytest.fixture(scope="module")
def table(cassandra_session: Session, module_keyspace: str) -> str:
    name = create_table(cassandra_session, module_keyspace, DDL, "orders")
    insert = cassandra_session.prepare(
        f"INSERT INTO {name} (id, u, note) VALUES (?, 6f8eb2a5-21a4-4b0f-9d4b-0a4ae5aef9d8, ?)"
    )
    notes = [None, "", 'quote "', "line\nend", " blanks ", "ünï", "{}", "\\N"]
    rows = [(n, notes[n % len(notes)]) for n in range(ROWS)]
    execute_concurrent_with_args(cassandra_session, insert, rows, concurrency=100)
    return name


def assert_loads(
    fleet: Ringhaul, session: Session, table: str, source: object, *options: str
) -> None:
    """Assert that a load of what was written restores the table."""
    again = create_table(session, table.split(".")[0], DDL, "again")
    done = fleet.run("load", source, "-t", again, "--json", *options)
    assert (done.code, done.summary["rows"], done.summary["rejected"]) == (0, ROWS, 0), done
    assert_table(session, again, COLUMNS, read_rows(session, table, COLUMNS))
    session.execute(f"DROP TABLE {again}")


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("out.csv", ()),
        ("out.csv.br", ()),
        ("out.parquet", ()),
        ("out.json", ("--json-layout", "documents")),
    ],
)
def test_one_file_holds_every_row_and_loads_again(
    fleet: Ringhaul,
    cassandra_session: Session,
    table: str,
    tmp_path: Path,
    name: str,
    options: tuple[str, ...],
) -> None:
    # Given an older file of this name, which the new one replaces
    out = tmp_path / name
    out.write_text("older")
    layout = ("--json-layout", "array") if options else ()
    done = fleet.run("unload", "-t", table, "-o", out, "--json", *layout)
    assert (done.code, done.summary["rows"], done.summary["files"]) == (0, ROWS, 1), done
    assert done.summary["output"] == str(out)
    assert list(tmp_path.iterdir()) == [out], "the parts are gone"
    assert_loads(fleet, cassandra_session, table, out, *options)


def test_one_file_in_a_folder_has_a_manifest(
    fleet: Ringhaul, cassandra_session: Session, table: str, tmp_path: Path
) -> None:
    dialect = ("-d", ";", "--null", "NULL", "--no-header")
    done = fleet.run("unload", "-t", table, "-o", f"{tmp_path}/", "--single-file", *dialect)
    assert done.code == 0, done
    assert sorted(path.name for path in tmp_path.iterdir()) == ["_manifest.json", "orders.csv"]
    (part,) = json.loads((tmp_path / "_manifest.json").read_text())["parts"]
    assert (part["name"], part["rows"]) == ("orders.csv", ROWS)
    assert_loads(fleet, cassandra_session, table, tmp_path)


def test_files_get_names_by_a_pattern(
    fleet: Ringhaul, cassandra_session: Session, table: str, tmp_path: Path
) -> None:
    names = ("--file-name-format", "{table}-%04d.csv", "--max-rows-per-file", "300")
    done = fleet.run("unload", "-t", table, "-o", tmp_path, "--json", *names)
    assert done.code == 0, done
    manifest = json.loads((tmp_path / "_manifest.json").read_text())
    listed = [part["name"] for part in manifest["parts"]]
    assert listed == [f"orders-{n:04}.csv" for n in range(1, done.summary["files"] + 1)]
    assert {path.name for path in tmp_path.iterdir()} == {*listed, "_manifest.json"}
    assert_loads(fleet, cassandra_session, table, tmp_path)
    # When the manifest is lost, then resume writes it with the same names.
    (tmp_path / "_manifest.json").unlink()
    assert fleet.run("resume", done.summary["job"]).code == 0
    assert json.loads((tmp_path / "_manifest.json").read_text()) == manifest


def test_a_pattern_that_gives_one_name_is_refused(
    fleet: Ringhaul, table: str, tmp_path: Path
) -> None:
    refused = fleet.run("unload", "-t", table, "-o", tmp_path, "--file-name-format", "a.csv")
    assert (refused.code, "gives all files one name" in refused.err) == (2, True), refused


def test_an_unload_to_one_file_that_was_cut_short_is_resumed(
    fleet: Ringhaul, hold: Hold, fleet_env: dict[str, str], table: str, tmp_path: Path
) -> None:
    out, log = tmp_path / "out.csv", tmp_path / "log"
    unload = ("unload", "-t", table, "-o", out, "--on-interrupt", "cancel")
    hold.from_unit(1)
    with (
        connect(fleet_env["RINGHAUL_BROKER_URL"]) as client,
        fleet.started(*unload, "--json", log=log) as process,
    ):
        ledger = Ledger(client)
        found: list[str] = []

        def some_done() -> bool:
            found[:] = re.findall(r"^ul-[0-9a-f]{6}", log.read_text(), re.MULTILINE)
            return bool(found) and ledger.status(found[0]).done >= 1

        wait_until(some_done, "some units to be done")
        ledger.cancel(found[0])
        assert process.wait(60) == 6
    hold.release()
    assert not out.exists()
    assert (tmp_path / f".out.csv.{found[0]}").is_dir(), "what is read is kept, out of sight"
    done = fleet.run("resume", found[0], "--json")
    assert (done.code, done.summary["rows"]) == (0, ROWS), done
    lines = [line for line in out.read_text().splitlines() if re.match(r"[0-9]+,", line)]
    assert sorted(int(line.split(",")[0]) for line in lines) == list(range(ROWS))
    # It is complete: resuming once more changes nothing, and says where the rows are.
    again = fleet.run("resume", found[0])
    assert (again.code, f"its rows are in {out}" in again.err) == (0, True), again
    out.unlink()
    gone = fleet.run("resume", found[0])
    assert (gone.code, "run the unload again" in gone.err) == (4, True), gone


def test_a_value_with_nul_is_warned_of_where_no_manifest_tells_of_it(
    fleet: Ringhaul, cassandra_session: Session, module_keyspace: str, tmp_path: Path
) -> None:
    name = create_table(cassandra_session, module_keyspace, "id int PRIMARY KEY, v text", "nuls")
    insert = cassandra_session.prepare(f"INSERT INTO {name} (id, v) VALUES (?, ?)")
    for number, text in enumerate(["a\0b", "plain", "", "\0"]):
        cassandra_session.execute(insert, (number, text))
    rows = sorted(read_rows(cassandra_session, name, "id, v"))
    warning = "2 rows cannot be loaded again from these files: column v: a NUL byte, which a load"
    for output, options, warned in (
        (tmp_path / "one.csv", ["--allow-nul"], True),
        (tmp_path / "folder", [], False),
        (tmp_path / "one.jsonl", [], False),
    ):
        done = fleet.run("unload", "-t", name, "-o", output)
        assert (done.code, warning in done.err) == (0, warned), done
        cassandra_session.execute(f"TRUNCATE {name}")
        assert fleet.run("load", output, "-t", name, *options).code == 0
        assert sorted(read_rows(cassandra_session, name, "id, v")) == rows
    done = fleet.run("unload", "-t", name, "-o", "-")
    assert (done.code, warning in done.err) == (0, True), done
