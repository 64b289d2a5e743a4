"""`load --via import`: a node imports SSTables, SAI indexes included; and what it cannot import is
refused before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.command import Finished, Ringhaul
from tests.acceptance.oracle import assert_report
from tests.acceptance.sstables.comparison import US, assert_equal_after_compaction
from tests.acceptance.sstables.loading import over_cql
from tests.acceptance.sstables.readings import KEEP_FILES, ROWS, TABLE, TIMES, write_readings
from tests.servers import JMX_PASSWORD, JMX_USER
from tests.sstable_tools import Node


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that this host and the node see."""
    place = tmp_path / "imports"
    place.mkdir()
    return place


@pytest.fixture
def ringhaul(embedded: Ringhaul, node: Node, tmp_path: Path, folder: Path) -> Ringhaul:
    """The command with the settings of imports."""
    (tmp_path / "jmx").write_text(f"{JMX_PASSWORD}\n")
    env = {
        "RINGHAUL_IMPORTS_FOLDER": f"{folder}/{{node}}",
        "RINGHAUL_IMPORTS_JMX_PORT": str(node.jmx_port),
        "RINGHAUL_IMPORTS_JMX_USER": JMX_USER,
        "RINGHAUL_IMPORTS_JMX_PASSWORD_FILE": str(tmp_path / "jmx"),
        "RINGHAUL_IMPORTS_INPUT_BYTES_MIN": "0",
    }
    return Ringhaul(embedded.env | env, tmp_path)


def load(ringhaul: Ringhaul, table: str, *options: object, **env: str) -> Finished:
    return ringhaul.run("load", "in.csv", "-t", table, "--timestamp", US, "--json", *options, **env)


def test_a_table_with_an_sai_index_is_filled_as_cql_would(
    node: Node, keyspace: str, ringhaul: Ringhaul, folder: Path
) -> None:
    # Given a table filled over CQL, and an empty one with two indexes
    write_readings(ringhaul.cwd)
    by_cql, imported = f"{keyspace}.a", f"{keyspace}.b"
    for table in (by_cql, imported):
        node.session.execute(f"CREATE TABLE {table} ({TABLE}) WITH {KEEP_FILES}")
    node.session.execute(f"CREATE INDEX ON {imported} (sensor) USING 'sai'")
    node.session.execute(f"CREATE INDEX ON {imported} (temp) USING 'sai'")
    over_cql(ringhaul, "in.csv", by_cql, rows=ROWS)

    # When the file is streamed, then that is refused, with what to do
    streamed = load(ringhaul, imported, "--via", "streaming")
    assert streamed.code == 2
    assert "for which nodes take no streamed SSTables; use --via import" in streamed.err

    # When nodes import it, as several SSTables, of units that are sorted on disk
    small = {"RINGHAUL_SSTABLES_SORT_BYTES": "64 KiB"}
    options = ("--via", "import", "--unit-size", "150 KiB")
    summary = assert_report(load(ringhaul, imported, *options, **small), rows=ROWS)
    assert summary["units"] >= 2
    assert summary["sstables"] >= summary["units"]
    assert summary["missed"] == 0
    local = node.session.execute("SELECT broadcast_port FROM system.local").one()
    assert list(summary["streamed_bytes"]) == [f"127.0.0.1:{local.broadcast_port}"]
    assert len(node.sstables(imported)) == summary["sstables"]

    # Then every value and write time is equal, before and after a compaction
    assert_equal_after_compaction(node, imported, by_cql, TIMES)

    # And the indexes find the rows
    rows = list(node.session.execute(f"SELECT id, seq, temp, sensor FROM {by_cql}"))
    for sensor in ("sensor-ä-7", "x" * 90, "absent"):
        found = node.session.execute(f"SELECT id, seq FROM {imported} WHERE sensor = %s", (sensor,))
        assert {(row.id, row.seq) for row in found} == {
            (row.id, row.seq) for row in rows if row.sensor == sensor
        }
    warm = node.session.execute(f"SELECT id, seq FROM {imported} WHERE temp > 25 AND temp < 30")
    assert {(row.id, row.seq) for row in warm} == {
        (row.id, row.seq) for row in rows if 25 < row.temp < 30
    }
    # And nothing is left of the files, here and in the folder
    assert [path.name for path in folder.rglob("*")] == ["127.0.0.1"]
    assert not list(ringhaul.cwd.rglob("*.db"))


@pytest.mark.parametrize(
    ("setting", "value", "why"),
    [
        ("FOLDER", "", "needs a folder that this host, the workers and the nodes share"),
        ("FOLDER", "/no/such/{node}", "/no/such/127.0.0.1 is not there: create it on a disk that"),
        ("FOLDER", "/no such/{node}", "nodetool takes no folder with a blank in its name"),
        ("NODE_FOLDER", "/no/such", "does not exist; it must see imports.folder"),
        ("JMX_PORT", "1", "the JMX port 1 of 127.0.0.1 does not answer (Connection refused)"),
        ("JMX_USER", "stranger", "Invalid username or password; set imports.jmx_user and"),
        ("COMMAND", "/no/such/nodetool {folder}", "cannot run /no/such/nodetool: No such file"),
        ("COMMAND", "echo 'open", "expected words as in a shell, with balanced quotes"),
        ("INPUT_BYTES_MIN", "1 KiB", "is for large loads, and the sources have 4 B"),
    ],
)
def test_what_nodes_cannot_import_is_refused(
    node: Node,
    keyspace: str,
    ringhaul: Ringhaul,
    folder: Path,
    setting: str,
    value: str,
    why: str,
) -> None:
    node.session.execute(f"CREATE TABLE {keyspace}.t (k int PRIMARY KEY)")
    (ringhaul.cwd / "in.csv").write_text("k\n1\n")

    done = load(
        ringhaul, f"{keyspace}.t", "--via", "import", **{f"RINGHAUL_IMPORTS_{setting}": value}
    )

    assert done.code == 2, done
    assert why in done.err
    assert JMX_PASSWORD not in done.err
    assert not node.session.execute(f"SELECT * FROM {keyspace}.t").all()
    assert [path for path in folder.rglob("*") if path.name != "127.0.0.1"] == []


def test_a_dry_run_asks_the_node_and_imports_nothing(
    node: Node, keyspace: str, ringhaul: Ringhaul, folder: Path
) -> None:
    node.session.execute(f"CREATE TABLE {keyspace}.t (k int PRIMARY KEY)")
    (ringhaul.cwd / "in.csv").write_text("k\n1\n")

    done = ringhaul.run("load", "in.csv", "-t", f"{keyspace}.t", "--via", "import", "--dry-run")

    assert done.code == 0, done
    assert f"{keyspace}.t at LOCAL_QUORUM, imported from {folder}/{{node}}" in done.out
    assert not node.session.execute(f"SELECT * FROM {keyspace}.t").all()
    assert [path.name for path in folder.rglob("*")] == ["127.0.0.1"]


def test_options_of_requests_are_refused(node: Node, keyspace: str, ringhaul: Ringhaul) -> None:
    node.session.execute(f"CREATE TABLE {keyspace}.t (k int PRIMARY KEY)")
    (ringhaul.cwd / "in.csv").write_text("k\n1\n")

    done = load(ringhaul, f"{keyspace}.t", "--via", "import", "--strategy", "single")

    assert done.code == 2
    assert "--strategy says how requests are sent, and --via import sends none" in done.err


def test_a_node_that_asks_for_a_password_is_refused_without_one(
    node: Node, keyspace: str, ringhaul: Ringhaul
) -> None:
    node.session.execute(f"CREATE TABLE {keyspace}.t (k int PRIMARY KEY)")
    (ringhaul.cwd / "in.csv").write_text("k\n1\n")
    none = {"RINGHAUL_IMPORTS_JMX_USER": "", "RINGHAUL_IMPORTS_JMX_PASSWORD_FILE": ""}

    done = load(ringhaul, f"{keyspace}.t", "--via", "import", **none)

    assert done.code == 2
    assert "Credentials required" in done.err
    assert "set imports.jmx_user and imports.jmx_password_file" in done.err
