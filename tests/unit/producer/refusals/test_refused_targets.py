"""Targets and options that cannot be used are refused before a job exists.

Exit code 2 if the command line or a setting is wrong, 4 if the cluster lacks what is named.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.planning import PlannedRinghaul
from tests.refusals import assert_refused


def test_a_missing_table(fleet: PlannedRinghaul, source: Path, keyspace: str) -> None:
    finished = fleet.run("load", source, "-k", keyspace, "-t", "order")
    assert_refused(
        finished, 4, f"no table 'order' in keyspace {keyspace!r}; did you mean 'orders'?"
    )
    finished = fleet.run("load", source, "-k", keyspace, "-t", "ORDERS")
    assert_refused(
        finished, 4, f"no table 'ORDERS' in keyspace {keyspace!r}; did you mean 'orders'?"
    )


def test_a_missing_table_without_a_similar_one(
    fleet: PlannedRinghaul, source: Path, keyspace: str
) -> None:
    assert_refused(
        fleet.run("load", source, "-k", keyspace, "-t", "zzz"),
        4,
        f"no table 'zzz' in keyspace {keyspace!r}; --create-table makes one for what the files "
        "hold",
    )
    assert_refused(
        fleet.run("verify", source, "-k", keyspace, "-t", "zzz"),
        4,
        f"no table 'zzz' in keyspace {keyspace!r}",
    )


def test_a_type_that_cannot_be_loaded(fleet: PlannedRinghaul, keyspace: str) -> None:
    path = fleet.cwd / "in.csv"
    path.write_text("id,n\n1,1\n")
    finished = fleet.run("load", path, "-k", keyspace, "-t", "hits")
    assert_refused(
        finished,
        2,
        f"{path}: column 'n' has type counter: a counter is only ever added to, not set; "
        "`ringhaul exec` adds to it",
    )
    # Keys alone make no row there either: the server refuses every INSERT
    path.write_text("id\n1\n")
    assert_refused(
        fleet.run("load", path, "-k", keyspace, "-t", "hits"),
        2,
        f"{keyspace}.hits has counters, so no row can be inserted: `ringhaul exec` adds to 'n' "
        "with an UPDATE",
    )


def test_a_password_on_the_command_line(
    fleet: PlannedRinghaul, source: Path, keyspace: str
) -> None:
    finished = fleet.run(
        *("load", source, "-t", f"{keyspace}.orders"),
        *("--broker", "redis://:sesame@127.0.0.1:1/0"),
    )
    assert_refused(
        finished,
        2,
        "--broker holds a password, which every user of this host can see; put the URL into "
        "RINGHAUL_BROKER_URL or the password into a file (broker.password_file)",
    )


OPTIONS = {
    "an unknown consistency": (
        ["--consistency", "LOCAL_QUORM"],
        "cluster.consistency = \"LOCAL_QUORM\" (--consistency): expected 'ANY', 'ONE', 'TWO', "
        "'THREE', 'QUORUM', 'ALL', 'LOCAL_QUORUM', 'EACH_QUORUM' or 'LOCAL_ONE'",
    ),
    "a consistency that one replica cannot give": (
        ["--consistency", "TWO"],
        "consistency TWO needs 2 replicas, keyspace {keyspace} has 1 (SimpleStrategy); "
        "lower --consistency or raise the replication",
    ),
    # As from an unset shell variable: it must not mean all.
    "no condition": (
        ["--where", ""],
        "--where is empty: give a condition, or leave it out",
    ),
    "no columns": (
        ["--columns", " "],
        "--columns is empty: give some columns, or leave it out",
    ),
    "no columns to leave out": (
        ["--skip-columns", ","],
        "--skip-columns is empty: give some columns, or leave it out",
    ),
    "no mapping": (
        ["--mapping", ""],
        "--mapping is empty: give FIELD=COLUMN, or leave it out",
    ),
    "a mapping of nothing": (
        ["--mapping", "="],
        "--mapping '=': expected FIELD=COLUMN, separated by commas",
    ),
    "a mapping of no field": (
        ["--mapping", "idd=id,name=name"],
        "{path}: --mapping names field 'idd', which it does not have; its fields are "
        "id, name, total; did you mean 'id'?",
    ),
    "a mapping to no column": (
        ["--mapping", "id=id,name=nam"],
        "{path}: field 'name' has no column 'nam' in {table}. Leave it out with "
        "--skip-columns name, or name its column with --mapping name=COLUMN; did you mean 'name'?",
    ),
    "a mapping of two fields to a column": (
        ["--mapping", "id=id,total=id"],
        "{path}: two fields go to column 'id' (--mapping)",
    ),
    "a mapping without the key": (
        ["--mapping", "name=name"],
        "{path}: no field for primary key column 'id' of {table}; name one with --mapping FIELD=id",
    ),
    "the key left out": (
        ["--skip-columns", "id"],
        "{path}: no field for primary key column 'id' of {table}; name one with --mapping FIELD=id",
    ),
    "no field left out": (
        ["--skip-columns", "nme"],
        "{path}: --skip-columns names 'nme', which is not one of its fields; did you mean 'name'?",
    ),
    "too few names of fields": (
        ["--columns", "id,name"],
        "{path}: --columns names 2 fields, its header has 3: id, name, total. It names all of "
        "them; --mapping loads only some",
    ),
    "a ttl below 0": (["--ttl", "-5"], "--ttl -5: give 0 to 630720000 seconds (20 years)"),
    "a ttl of 32 years": (
        ["--ttl", "999999999"],
        "--ttl 999999999: give 0 to 630720000 seconds (20 years)",
    ),
    "a misspelt delimiter": (
        ["--delimiter", "semi"],
        "--delimiter: 'semi' is not a name of one, and letters and digits alone cannot divide "
        "fields; give characters such as ; or ||, \\x with two digits, ^A, or tab, \\t, comma, "
        "semicolon, pipe, space",
    ),
    "a quote that delimits": (
        ["--quote", ","],
        "--quote: ',' is already the delimiter; give another character",
    ),
    "an unknown encoding": (
        ["--encoding", "utf9"],
        "--encoding: 'utf9' is not known; give for example utf-8, utf-16, latin-1 or cp1252",
    ),
    "no number of errors": (
        ["--max-errors", "many"],
        'load.max_errors = "many" (--max-errors): expected a number of records such as 1000, '
        'a share such as "0.5%", or -1 for no limit (at most 15 digits, four decimals)',
    ),
    "no size": (
        ["--unit-size", "1X"],
        'load.unit_bytes = "1X" (--unit-size): expected a size such as 65536, "64 KiB" or "1.5 MB"',
    ),
    "no moment": (
        ["--timestamp", "yesterday"],
        "--timestamp 'yesterday': give microseconds since 1970, a date such as "
        "2026-01-31T12:00:00Z, or now",
    ),
    "no time zone": (
        ["--timezone", "Mars/Olympus"],
        '--timezone "Mars/Olympus" is unknown: use an IANA name such as Europe/Paris',
    ),
    "no unit of time": (
        ["--epoch-unit", "w"],
        '--epoch-unit "w" is unknown: use one of s, ms, us, ns, min, h, d',
    ),
    "another keyspace": (
        ["--keyspace", "shop"],
        "--table names keyspace {keyspace}, --keyspace shop",
    ),
    "embedded workers": (
        ["-c", "2"],
        "-c applies to embedded workers, and a broker is configured: its workers have the "
        "processes that `ringhaul worker -c` started (--broker none: embedded workers all the "
        "same)",
    ),
    "no broker": (
        ["--broker", ""],
        "--broker is empty: give redis://host:port/database, or none for the command's own workers",
    ),
    "a summary of what is not waited for": (
        ["--summary", "s.json", "--detach"],
        "--summary is written at the end of the job, and --detach does not wait for it: leave one "
        "of them out (`ringhaul status -f JOB --json` has the summary then)",
    ),
    "no settings file": (
        ["--config", "no.toml"],
        "no such settings file: {cwd}/no.toml (named by --config)",
    ),
}


@pytest.mark.parametrize(("options", "message"), OPTIONS.values(), ids=OPTIONS)
def test_an_option_that_cannot_be_used(
    fleet: PlannedRinghaul, source: Path, keyspace: str, options: list[str], message: str
) -> None:
    table = f"{keyspace}.orders"
    finished = fleet.run("load", source, "-t", table, *options)
    expected = message.format(path=source, table=table, keyspace=keyspace, cwd=fleet.cwd)
    assert_refused(finished, 2, expected)


def test_a_consistency_that_the_cluster_cannot_meet(
    fleet: PlannedRinghaul, source: Path, keyspace: str
) -> None:
    # Given a keyspace with three replicas in a cluster of one node
    one, name = ("--range", "id:1..3", "--consistency"), "copied"
    nodes = (
        f"needs 2 nodes, as keyspace {name} has replication factor 3 (SimpleStrategy), and the "
        "cluster knows of 1 node that can hold its rows: add nodes, or lower "
    )
    finished = fleet.run("load", source, "-t", f"{name}.orders", "--consistency", "QUORUM")
    expected = f"consistency QUORUM {nodes}--consistency or the replication factor"
    assert_refused(finished, 2, expected)
    insert = f"INSERT INTO {name}.orders (id) VALUES (?) IF NOT EXISTS"
    finished = fleet.run("exec", insert, *one, "ONE")
    assert_refused(finished, 2, f"a condition (IF) {nodes}the replication factor")
    # and levels that the server would refuse for each row
    insert = f"INSERT INTO {keyspace}.orders (id) VALUES (?) IF NOT EXISTS"
    finished = fleet.run("exec", insert, *one, "EACH_QUORUM")
    assert_refused(
        finished,
        2,
        "consistency EACH_QUORUM allows conditions (IF) only in keyspaces of "
        f"NetworkTopologyStrategy, keyspace {keyspace} is of SimpleStrategy: choose another "
        "--consistency, such as QUORUM",
    )
    finished = fleet.run("exec", f"DELETE FROM {keyspace}.hits WHERE id = ?", *one, "ANY")
    assert_refused(
        finished,
        2,
        "consistency ANY is not for counters: choose another --consistency, such as ONE",
    )


def test_a_table_without_a_keyspace(fleet: PlannedRinghaul, source: Path) -> None:
    finished = fleet.run("load", source, "-t", "orders")
    assert_refused(finished, 2, "no keyspace: give --keyspace, or --table KEYSPACE.TABLE")
