"""Inputs that are less, or others, than they look: arrays that were cut short, pipes, and lists of
unloads that an earlier version wrote."""

from __future__ import annotations

import gzip
import json
import shlex
from pathlib import Path

import pytest
from cassandra.cluster import Session

from tests.acceptance.command import Ringhaul
from tests.acceptance.oracle import assert_table, create_table

DDL = "id int PRIMARY KEY, v text"
ROWS = [(n, f"v{n}") for n in range(40)]
OBJECTS = [json.dumps({"id": n, "v": v}) for n, v in ROWS]
CSV = "id,v\n" + "".join(f"{n},{v}\n" for n, v in ROWS)


@pytest.fixture
def table(cassandra_session: Session, keyspace: str) -> str:
    return create_table(cassandra_session, keyspace, DDL)


@pytest.mark.parametrize("suffix", ["json", "json.gz"])
def test_an_array_that_was_cut_between_two_objects_is_damaged(
    fleet: Ringhaul, cassandra_session: Session, table: str, tmp_path: Path, suffix: str
) -> None:
    # Given an array, without its end
    whole = "[" + ",\n".join(OBJECTS)
    path = tmp_path / f"in.{suffix}"
    pack = gzip.compress if suffix.endswith("gz") else bytes
    path.write_bytes(pack(whole.encode()))
    for verb in ("load", "verify"):
        done = fleet.run(verb, path, "-t", table, "--unit-size", "100")
        assert done.code == 4, done
        assert f"{path}: the JSON array is not closed at the end of the file" in done.err
    # When the end is there, it is read as documents without the option, and a line says so.
    path.write_bytes(pack(f"{whole}]".encode()))
    for verb in ("load", "verify"):
        done = fleet.run(verb, path, "-t", table, "--unit-size", "100", "--json")
        assert (done.code, done.summary["rows"]) == (0, len(ROWS)), done
        assert f"{path} begins with [, as a JSON array does: read by --json-layout" in done.err
    assert_table(cassandra_session, table, "id, v", ROWS)


def test_pipes_and_names_of_standard_input_are_spooled(
    fleet: Ringhaul, cassandra_session: Session, table: str, tmp_path: Path
) -> None:
    (tmp_path / "in.csv").write_text(CSV)
    real = Ringhaul(fleet.env, fleet.cwd, fresh=True)  # which gets the descriptors of the shell
    done = real.run_script(
        f"""
        set -e
        ringhaul load /dev/stdin -t {table} --json < in.csv
        ringhaul load --urlfile <(echo "$PWD/in.csv") -t {table} --json
        ringhaul verify <(cat in.csv) -t {table} --json
        ringhaul lookup -t {table} --keys <(cut -d, -f1 in.csv) -o - > found.csv
        ringhaul exec {shlex.quote(f"INSERT INTO {table} (id, v) VALUES (?, ?)")} \\
            --params /dev/stdin --json < in.csv
        """
    )
    assert done.code == 0, done
    rows = [summary.get("rows", summary.get("records")) for summary in done.messages("summary")]
    assert rows[:3] == [len(ROWS)] * 3, done
    assert sorted((tmp_path / "found.csv").read_text().splitlines()) == sorted(CSV.splitlines())
    assert_table(cassandra_session, table, "id, v", ROWS)
    refused = real.run_script(f"ringhaul load <(cat in.csv) in.csv -t {table}")
    assert refused.code == 2
    assert "(a pipe) cannot be given together with other sources" in refused.err


def test_the_list_of_an_earlier_version_is_read_and_replaced(
    fleet: Ringhaul, cassandra_session: Session, table: str, tmp_path: Path
) -> None:
    (tmp_path / "in.csv").write_text(CSV)
    assert fleet.run("load", "in.csv", "-t", table).code == 0
    out, dialect = tmp_path / "out", ("-d", ";", "--null", "NULL")
    done = fleet.run("unload", "-t", table, "-o", out, *dialect, "--json")
    assert done.code == 0, done
    written = (out / "_manifest.json").read_bytes()
    # Given a folder as an earlier version wrote it, and a file that its list does not name
    (out / "_manifest.json").rename(out / "manifest.json")
    (out / "orphan.csv").write_text("id;v\n1;other\n")
    for verb in ("load", "verify"):
        read = fleet.run(verb, out, "-t", table, "--json")
        assert (read.code, read.summary["rows"]) == (0, len(ROWS)), read
        assert "delimiter ';'" in read.err and "as its manifest says" in read.err
    # When the job writes its list again, then there is one list, under its name of today.
    assert fleet.run("resume", done.summary["job"]).code == 0
    assert (out / "_manifest.json").read_bytes() == written
    assert not (out / "manifest.json").exists()
