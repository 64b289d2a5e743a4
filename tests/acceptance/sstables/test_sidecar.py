"""`load --via sidecar`: a node imports what its Sidecar was sent, SAI indexes included, whatever
the Sidecar answers; and what it would not take is refused before anything starts.

The Sidecar is one of tests that speaks the published interface; the node and its import are real.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.acceptance.command import Ringhaul
from tests.acceptance.conftest import cluster_env
from tests.acceptance.oracle import assert_report, read_rows
from tests.acceptance.sstables.comparison import US
from tests.acceptance.sstables.readings import ROWS, TABLE, write_readings
from tests.acceptance.sstables.test_import import load
from tests.certificates import Authority
from tests.sidecar import Fault, Sidecar, running_sidecar, server_tls
from tests.sstable_tools import Node

ADDRESS = "127.0.0.1"
EPOCH = datetime(1970, 1, 1)
TOKEN = "eyJhbGciOi.dGVzdA.c2lnbmVk"
#: Options of Sidecar's imports -> what nodetool calls the opposite.
_CHECKS = {"verifySSTables": "--no-verify", "verifyTokens": "--no-tokens"}


def of_node(node: Node, staging: Path) -> Sidecar:
    """Return a Sidecar whose node imports by nodetool, and says which tables it has."""

    def importer(
        host: str, keyspace: str, table: str, folder: Path, options: dict[str, str]
    ) -> str:
        flags = [flag for name, flag in _CHECKS.items() if options.get(name) == "false"]
        if options.get("extendedVerify", "true") == "true":
            flags.append("--extended-verify")
        try:
            node.nodetool("import", *flags, keyspace, table, str(folder))
        except AssertionError as error:
            return f"Failed to import from directories: [{folder}]: {error}"
        return ""

    def knows(keyspace: str, table: str) -> bool:
        found = node.session.execute(
            "SELECT id FROM system_schema.tables WHERE keyspace_name = %s AND table_name = %s",
            (keyspace, table),
        )
        return bool(found.all())

    return Sidecar(staging, importer, {ADDRESS}, knows)


@pytest.fixture
def sidecar(node: Node, tmp_path: Path) -> Iterator[Sidecar]:
    with running_sidecar(of_node(node, tmp_path / "staging")) as found:
        yield found


def command(node: Node, sidecar: Sidecar, folder: Path, **more: str) -> Ringhaul:
    env = cluster_env(node.endpoints, folder / "state")
    settings = {"PORT": str(sidecar.port), "INPUT_BYTES_MIN": "0", "REQUEST_TIMEOUT_S": "5"}
    return Ringhaul(
        env | {f"RINGHAUL_SIDECAR_{name}": value for name, value in (settings | more).items()},
        folder,
    )


@pytest.fixture
def ringhaul(node: Node, sidecar: Sidecar, tmp_path: Path) -> Ringhaul:
    return command(node, sidecar, tmp_path)


def rows_of_input(folder: Path) -> dict[tuple[str, int], tuple[object, ...]]:
    """Return what the input says of each key: temp, sensor, ts in ms, and the write time."""
    with (folder / "in.csv").open(newline="", encoding="utf-8") as file:
        records = list(csv.DictReader(file))
    return {
        (record["id"], int(record["seq"])): (
            float(record["temp"]),
            record["sensor"] or None,
            int(record["ts"]),
            US + ordinal,
        )
        for ordinal, record in enumerate(records)
    }


def rows_of_table(node: Node, table: str) -> dict[tuple[str, int], tuple[object, ...]]:
    """Return the same of a table."""
    columns = "id, seq, temp, sensor, ts, writetime(temp)"
    return {
        (key, seq): (temp, sensor, (ts - EPOCH) // timedelta(milliseconds=1), written_us)
        for key, seq, temp, sensor, ts, written_us in read_rows(node.session, table, columns)
    }


def test_every_row_is_imported_whatever_the_sidecar_answers(
    node: Node, keyspace: str, ringhaul: Ringhaul, sidecar: Sidecar
) -> None:
    # Given a table with an index, whose name needs quotes
    write_readings(ringhaul.cwd)
    table = f'{keyspace}."B"'
    node.session.execute(f"CREATE TABLE {table} ({TABLE})")
    node.session.execute(f"CREATE INDEX ON {table} (sensor) USING 'sai'")

    # When a load goes through a Sidecar that is busy, loses connections and answers, and reports
    # a failure
    sidecar.faults["upload"] += [
        Fault(status=429, retry_after="0", file="Data.db"),
        Fault(status=503, retry_after="0", file="Statistics.db"),
        Fault(cut_after=5000, file="Data.db"),
    ]
    sidecar.faults["import"] += [
        Fault(forgets=True, file="Data.db"),
        Fault(status=500, file="Data.db"),
    ]
    sidecar.import_s = 0.3
    small = {"RINGHAUL_SSTABLES_SORT_BYTES": "64 KiB"}
    options = ("--via", "sidecar", "--unit-size", "250 KiB")
    summary = assert_report(load(ringhaul, f"{keyspace}.B", *options, **small), rows=ROWS)

    # Then all of that happened
    assert not any(sidecar.faults.values())
    assert {202, 0, 500, 200} <= set(sidecar.statuses("import"))
    assert {429, 503, 0, 200} <= set(sidecar.statuses("upload"))
    assert summary["units"] >= 2
    assert summary["sstables"] >= summary["units"]
    assert summary["retries"] >= 2
    assert summary["missed"] == 0
    local = node.session.execute("SELECT broadcast_port FROM system.local").one()
    (sent_to, sent_bytes), *others = summary["streamed_bytes"].items()
    assert (sent_to, others) == (f"{ADDRESS}:{local.broadcast_port}", [])
    assert sent_bytes > 100_000

    # And every value and write time is that of the input
    expected = rows_of_input(ringhaul.cwd)
    assert len(expected) == ROWS
    assert rows_of_table(node, table) == expected

    # And the index finds what is there
    found = node.session.execute(f"SELECT id, seq FROM {table} WHERE sensor = 'sensor-ä-7'")
    assert {(row.id, row.seq) for row in found} == {
        key for key, row in expected.items() if row[1] == "sensor-ä-7"
    }
    # And nothing is left of the files
    assert sidecar.uploads() == []
    assert not list(ringhaul.cwd.rglob("*.db"))


@pytest.mark.parametrize(
    ("settings", "always", "why"),
    [
        ({"PORT": "1"}, {}, "127.0.0.1:1) does not answer (Connection refused), and LOCAL_QUORUM"),
        ({"HOST": "http://{node}"}, {}, "expected the name or address of a host without scheme"),
        ({"TLS": "true"}, {}, "TLS failed (wrong version number); check sidecar.tls, tls_ca,"),
        ({"TOKEN_FILE": "/no/such"}, {}, "sidecar.token_file needs sidecar.tls = true"),
        ({"TLS": "true", "TOKEN_FILE": "/no/such"}, {}, "sidecar.token_file: cannot read /no/such"),
        ({"INPUT_BYTES_MIN": "1 KiB"}, {}, "is for large loads, and the sources have 4 B"),
        ({}, {"health": Fault(status=503)}, "the Sidecar is not healthy, and LOCAL_QUORUM needs"),
        ({}, {"upload": Fault(status=401)}, "401 out of order; set sidecar.token_file"),
        ({}, {"upload": Fault(status=403)}, "403 out of order; this user needs STAGED_SSTABLE"),
        ({}, {"upload": Fault(status=507)}, "507 out of order; free space on its staging_dir"),
        ({}, {"import": Fault(status=500)}, "did not import: 500 out of order; its log says why"),
    ],
)
def test_what_sidecars_would_not_take_is_refused(
    node: Node,
    keyspace: str,
    sidecar: Sidecar,
    tmp_path: Path,
    settings: dict[str, str],
    always: dict[str, Fault],
    why: str,
) -> None:
    node.session.execute(f"CREATE TABLE {keyspace}.t (k int PRIMARY KEY)")
    (tmp_path / "in.csv").write_text("k\n1\n")
    sidecar.always = always

    done = load(command(node, sidecar, tmp_path, **settings), f"{keyspace}.t", "--via", "sidecar")

    assert done.code == 2, done
    assert why in done.err
    assert not node.session.execute(f"SELECT * FROM {keyspace}.t").all()
    assert sidecar.uploads() == []


def test_a_sidecar_of_another_node_or_cluster_is_refused(
    node: Node, keyspace: str, ringhaul: Ringhaul, sidecar: Sidecar
) -> None:
    node.session.execute(f"CREATE TABLE {keyspace}.t (k int PRIMARY KEY)")
    (ringhaul.cwd / "in.csv").write_text("k\n1\n")
    sidecar.hosts = {"10.0.0.1"}
    other_node = load(ringhaul, f"{keyspace}.t", "--via", "sidecar")
    sidecar.hosts = {ADDRESS}
    sidecar.knows = lambda keyspace, table: False
    other_cluster = load(ringhaul, f"{keyspace}.t", "--via", "sidecar")

    assert (other_node.code, other_cluster.code) == (2, 2)
    assert "421 Instance with host address '127.0.0.1' not found; its cassandra" in other_node.err
    assert "400 Invalid table name 't' supplied for keyspace" in other_cluster.err


def test_a_dry_run_asks_the_sidecar_and_imports_nothing(
    node: Node, keyspace: str, ringhaul: Ringhaul, sidecar: Sidecar
) -> None:
    node.session.execute(f"CREATE TABLE {keyspace}.t (k int PRIMARY KEY)")
    (ringhaul.cwd / "in.csv").write_text("k\n1\n")

    done = ringhaul.run("load", "in.csv", "-t", f"{keyspace}.t", "--via", "sidecar", "--dry-run")

    assert done.code == 0, done
    assert f"{keyspace}.t at LOCAL_QUORUM, imported through the nodes' Sidecars" in done.out
    assert sidecar.statuses("import")[-1] == 200
    assert not node.session.execute(f"SELECT * FROM {keyspace}.t").all()
    assert sidecar.uploads() == []


def test_rows_go_over_tls_and_the_token_is_nowhere_else(
    node: Node, keyspace: str, tmp_path: Path
) -> None:
    # Given a Sidecar that wants certificates and a token
    node.session.execute(f"CREATE TABLE {keyspace}.t (k int PRIMARY KEY, v text)")
    (tmp_path / "in.csv").write_text("k,v\n" + "".join(f"{n},value {n}\n" for n in range(500)))
    known = Authority("known")
    (tmp_path / "ca.pem").write_text(known.certificate)
    for name, address in (("server", ADDRESS), ("client", None)):
        key, certificate = known.issue(name, address)
        (tmp_path / f"{name}.pem").write_text(certificate)
        (tmp_path / f"{name}_key.pem").write_text(key)
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    served = of_node(node, tmp_path / "staging")
    served.token = TOKEN
    tls = server_tls(*(tmp_path / f"{n}.pem" for n in ("server", "server_key", "ca")))
    files = {"TLS_CA": "ca.pem", "TLS_CERT": "client.pem", "TLS_KEY": "client_key.pem"}
    settings = {"TLS": "true"} | {name: str(tmp_path / file) for name, file in files.items()}

    # When rows are loaded, then they are there only with both
    with running_sidecar(served, tls):
        without = load(
            command(node, served, tmp_path, **settings), f"{keyspace}.t", "--via", "sidecar"
        )
        assert without.code == 2, without
        assert "401 Unauthorized; set sidecar.token_file" in without.err
        with_token = settings | {"TOKEN_FILE": str(tmp_path / "token")}
        done = load(
            command(node, served, tmp_path, **with_token), f"{keyspace}.t", "--via", "sidecar"
        )
    assert_report(done, rows=500)
    found = read_rows(node.session, f"{keyspace}.t", "k, v")
    assert dict(found) == {n: f"value {n}" for n in range(500)}
    # And the token is in no output and no file of the command
    assert TOKEN not in done.out + done.err
    kept = [path for path in (tmp_path / "state").rglob("*") if path.is_file()]
    assert not [path for path in kept if TOKEN.encode() in path.read_bytes()]
