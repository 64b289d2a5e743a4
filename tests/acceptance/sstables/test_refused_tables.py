"""`load --to-sstables` refuses what it cannot write exactly, before it writes anything."""

from __future__ import annotations

import pytest

from tests.acceptance.command import Finished, Ringhaul
from tests.sstable_tools import Node


@pytest.mark.parametrize(
    ("definition", "names", "why"),
    [
        ("(k int PRIMARY KEY, v set<decimal>)", "k,v", "a set<decimal> that is not frozen"),
        ("(k int PRIMARY KEY, v int) WITH cdc = true", "k,v", "change data capture"),
        ("(k int PRIMARY KEY, v int)", "k,v", "materialized views"),
    ],
)
def test_tables_that_cannot_be_written_exactly_are_refused(
    node: Node, keyspace: str, ringhaul: Ringhaul, definition: str, names: str, why: str
) -> None:
    node.session.execute(f"CREATE TABLE {keyspace}.t {definition}")
    if "views" in why:
        node.session.execute(
            f"CREATE MATERIALIZED VIEW {keyspace}.by_v AS SELECT * FROM {keyspace}.t "
            "WHERE v IS NOT NULL AND k IS NOT NULL PRIMARY KEY (v, k)"
        )
    (ringhaul.cwd / "in.csv").write_text(f"{names}\n")

    done = run_dry(ringhaul, f"{keyspace}.t")

    assert done.code == 2, done
    assert why in done.err
    assert "over CQL" in done.err
    assert not (ringhaul.cwd / "out").exists()


def run_dry(ringhaul: Ringhaul, table: str, *options: object) -> Finished:
    return ringhaul.run(
        "load", "in.csv", "-t", table, "--to-sstables", "out", "--dry-run", *options
    )


def test_a_folder_with_sstables_and_a_ttl_beyond_the_format_are_refused(
    node: Node, keyspace: str, ringhaul: Ringhaul
) -> None:
    node.session.execute(f"CREATE TABLE {keyspace}.t (k int PRIMARY KEY)")
    (ringhaul.cwd / "in.csv").write_text("k\n1\n")
    assert run_dry(ringhaul, f"{keyspace}.t").code == 0

    late = run_dry(ringhaul, f"{keyspace}.t", "--ttl", 600_000_000)
    later = run_dry(ringhaul, f"{keyspace}.t", "--sstable-version", "oa")
    folder = ringhaul.cwd / "out" / keyspace / "t"
    folder.mkdir(parents=True)
    (folder / "nb-1-big-Data.db").touch()
    there = run_dry(ringhaul, f"{keyspace}.t")
    sent = run_dry(ringhaul, f"{keyspace}.t", "--consistency", "ONE")

    assert (late.code, there.code, sent.code, later.code) == (2, 2, 2, 2)
    assert "ends after 2038-01-19, the last day that SSTables of version nb store" in late.err
    assert "or --sstable-version oa for nodes with storage_compatibility_mode NONE" in late.err
    assert "--sstable-version oa: storage_compatibility_mode is CASSANDRA_4" in later.err
    assert "has SSTables already" in there.err
    assert "--consistency says how rows are sent" in sent.err
