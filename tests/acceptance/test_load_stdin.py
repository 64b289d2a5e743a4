"""Loads of standard input: spooled for running workers and for a resume, and removed afterwards."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cassandra.cluster import Session

from tests.acceptance.command import Ringhaul
from tests.acceptance.hold import Hold
from tests.acceptance.oracle import assert_report, assert_table, create_table


@pytest.fixture
def table(cassandra_session: Session, keyspace: str) -> str:
    return create_table(cassandra_session, keyspace, "id int PRIMARY KEY, a text, b text")


def test_standard_input_is_a_source(
    embedded: Ringhaul, fleet: Ringhaul, cassandra_session: Session, table: str
) -> None:
    # Given a text on standard input, with quoted line ends
    text = 'id,a,b\n1,"two\nlines",x\n2,,\n3,"",y\n'
    expected = [(1, "two\nlines", "x"), (2, None, None), (3, "", "y")]
    for command in (fleet, embedded):
        spool = Path(command.env["RINGHAUL_STATE_DIR"]) / "spool"
        kept_before = set(spool.glob("*"))
        cassandra_session.execute(f"TRUNCATE {table}")

        # When it is loaded, by running workers and by embedded ones
        done = command.run("load", "-", "-t", table, "--json", "--unit-size", "1",
                           stdin=text.encode())  # fmt: skip

        # Then it is in the table, and no copy of the data remains
        assert assert_report(done, rows=3)["units"] == 3
        assert_table(cassandra_session, table, "id, a, b", expected)
        assert set(spool.glob("*")) == kept_before


def test_commands_with_the_same_job_id_keep_its_spooled_standard_input(
    fleet: Ringhaul, hold: Hold, cassandra_session: Session, table: str
) -> None:
    # Given a load of standard input that stopped at its first record, while later units wait
    hold.from_unit(20)
    state, job = fleet.cwd / "state", f"ld-{fleet.cwd.name[-40:]}"
    load = ("load", "-", "-t", table, "--job-id", job, "--unit-size", 1, "--max-errors", 0)
    rows = [(n, f"a{n}", None) for n in range(300)]
    text = "id,a,b\nno,x,y\n" + "".join(f"{n},{a},\n" for n, a, _ in rows)
    stopped = fleet.run(*load, stdin=text.encode(), RINGHAUL_STATE_DIR=str(state))
    assert stopped.code == 3, stopped
    hold.release()
    (kept,) = (state / "spool").iterdir()

    # When other commands with its id only plan, or fail
    for more, code in ((), 0), (("--columns", "x,y,z"), 2):
        planned = fleet.run(*load, "--dry-run", *more, stdin=b"id,a,b\n1,x,y\n",
                            RINGHAUL_STATE_DIR=str(state))  # fmt: skip
        assert planned.code == code, planned
        # (the message has the name that the user gave)
        assert "standard input: " in planned.out + planned.err and "spool" not in planned.out
    # (and the rejects do not change their source either)
    listed = fleet.run("errors", job)
    assert listed.out.startswith("standard input:2  byte 7  cast  column id: "), listed
    reject = json.loads(fleet.run("errors", job, "--json").out)
    assert (reject["file"], reject["line"], reject["offset"]) == ("standard input", 2, 7)
    assert fleet.run("errors", job, "--export", "-").out == "id,a,b\nno,x,y\n"

    # Then its records still exist, and are loaded when it is resumed
    assert list((state / "spool").iterdir()) == [kept]
    done = fleet.run("resume", job, "--max-errors", 9, "--json", RINGHAUL_STATE_DIR=str(state))
    assert (done.code, done.summary["rejected"]) == (1, 1), done
    assert [source["path"] for source in done.summary["sources"]] == ["standard input"]

    # And the rejects load again under their header, although the piped data is gone
    assert list((state / "spool").iterdir()) == []
    rejects = fleet.cwd / "rejects.csv"
    assert fleet.run("errors", job, "--export", rejects).code == 0
    assert rejects.read_text() == "id,a,b\nno,x,y\n"
    rejects.write_text(rejects.read_text().replace("no", "999"))
    assert_report(fleet.run("load", rejects, "-t", table, "--json"), rows=1)
    assert_table(cassandra_session, table, "id, a, b", [*rows, (999, "x", "y")])
