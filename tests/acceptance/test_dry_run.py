"""`load --dry-run`: the plan, as text and as JSON, and nothing written."""

from __future__ import annotations

import json

from cassandra.cluster import Session

from tests.acceptance.command import Ringhaul
from tests.acceptance.oracle import assert_table, create_table


def test_a_dry_run_shows_the_plan_and_writes_nothing(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str
) -> None:
    # Given a file with a bad record on its third line
    table = create_table(cassandra_session, keyspace, "p int, c date, v text, PRIMARY KEY (p, c)")
    (fleet.cwd / "in.csv").write_text("p,when,v,x\n1,2024-01-01,a,?\n2,yesterday,b,?\n")

    # When its load is a dry run
    load = ("load", "in.csv", "-t", table, "-m", "p=p,when=c,v=v")
    done = fleet.run(*load, "--dry-run")

    # Then the mapping, the plan and the reject are on stdout
    assert done.code == 0, done
    lines = [line.split() for line in done.out.splitlines()]
    for mapped in (["p", "p", "int", "partition"], ["when", "c", "date", "clustering"],
                   ["v", "v", "text"]):  # fmt: skip
        assert mapped in lines
    assert "not loaded: x" in done.out
    assert f'INSERT INTO "{keyspace}"."t" ("p", "c", "v") VALUES (?, ?, ?)' in done.out
    assert "2 records, 1 rejected" in done.out
    assert f'{fleet.cwd}/in.csv:3 c: cast date: "yesterday" is not a date' in done.out
    # and as one JSON object with --json
    as_json = fleet.run(*load, "--dry-run", "--json")
    assert (as_json.code, as_json.err) == (0, "")
    plan = json.loads(as_json.out)
    assert (plan["table"], plan["not_loaded"]) == (table, ["x"])
    assert [(pair["field"], pair["column"], pair["key"]) for pair in plan["mapping"]] == [
        ("p", "p", "partition"), ("when", "c", "clustering"), ("v", "v", None)
    ]  # fmt: skip
    assert f" statement  {plan['statement']}" in done.out.splitlines()
    assert plan["samples"][0]["problems"][0]["reason"].startswith('cast date: "yes')
    # and the table is unchanged, and there is no job
    assert_table(cassandra_session, table, "p, c, v", [])
    jobs = json.loads(fleet.run("status", "--json", "--limit", 1000).out)
    assert table not in [job["table"] for job in jobs]

    # Nor is there one if the summary cannot be written; and skipped rows are not shown
    for wrong in ("--summary", "gone/sum.json"), ("--summary", "in.csv/sum.json"):
        refused = fleet.run("load", "in.csv", "-t", table, *wrong)
        assert refused.code == 2
        assert f"there is no folder {wrong[1].rpartition('/')[0]}" in refused.err
    jobs = json.loads(fleet.run("status", "--json", "--limit", 1000).out)
    assert table not in [job["table"] for job in jobs]
    (fleet.cwd / "in.csv").write_text("p,when,v,x\n?,,,\n1,2024-01-01,a,?\n")
    done = fleet.run("load", "in.csv", "-t", table, "-m", "p=p,when=c,v=v", "--dry-run",
                     "--skip-rows", 1)  # fmt: skip
    assert "1 record, 0 rejected" in done.out
