"""`ringhaul verify`: a file matches the table, or each difference is reported, exported and
repaired by a load."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cassandra.cluster import Session

from ringhaul.ledger.connection import connect
from ringhaul.ledger.ledger import Ledger
from tests.acceptance.command import Finished, Ringhaul, wait_until
from tests.acceptance.hold import Hold
from tests.acceptance.oracle import assert_table, create_table, read_rows
from tests.services import fresh_keyspace

ROWS = 3000
COLUMNS = "id int PRIMARY KEY, v text, n double, tags set<text>"


def records(first: int = 0) -> str:
    lines = [f'{i},v{i},{i / 7!r},"[""b"",""a""]"' for i in range(first, ROWS)]
    return "id,v,n,tags\n" + "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def module_table(cassandra_session: Session) -> Iterator[str]:
    with fresh_keyspace(cassandra_session) as keyspace:
        yield create_table(cassandra_session, keyspace, COLUMNS)


@pytest.fixture
def table(fleet: Ringhaul, cassandra_session: Session, module_table: str) -> str:
    """A table with the records of `in.csv`."""
    cassandra_session.execute(f"TRUNCATE {module_table}")
    (fleet.cwd / "in.csv").write_text(records())
    assert fleet.run("load", "in.csv", "-t", module_table).code == 0
    return module_table


@pytest.fixture
def ledger(fleet: Ringhaul) -> Iterator[Ledger]:
    with connect(fleet.env["RINGHAUL_BROKER_URL"]) as client:
        yield Ledger(client)


def assert_compared(done: Finished, *, same: int, missing: int = 0, differing: int = 0) -> str:
    """Assert that the summary has exactly these counts, and return the job."""
    found, others = done.summary, missing + differing
    assert (found["kind"], found["rows"], found["rejected"]) == ("verify", same, others), done
    assert (found["missing"], found["differing"]) == (missing, differing)
    assert found["records"] == same + others
    assert found["state"] == ("PARTIAL" if others else "COMPLETE")
    assert found["exit_code"] == done.code == int(others > 0)
    return str(found["job"])


def test_differences_are_listed_exported_and_repaired_by_a_load(
    fleet: Ringhaul, cassandra_session: Session, table: str
) -> None:
    # Given a loaded table, then every record is the same
    before = sorted(map(repr, read_rows(cassandra_session, table, "id, v, n, writetime(v)")))
    done = fleet.run("verify", "in.csv", "-t", table)
    assert (done.code, done.out) == (0, "")
    assert done.err.splitlines()[-1] == f" complete: 3,000 records are the same in {table}"
    assert f"verify {table}   1 file" in done.err.splitlines()[0]
    # and verify wrote no row
    after = sorted(map(repr, read_rows(cassandra_session, table, "id, v, n, writetime(v)")))
    assert after == before

    # When some rows change
    for change in (
        f"DELETE FROM {table} WHERE id = 7",
        f"UPDATE {table} SET v = 'other', n = 0.5 WHERE id = 8",
        f"DELETE tags FROM {table} WHERE id = 2999",
        f"INSERT INTO {table} (id, v) VALUES (123456, 'not in the file')",
    ):
        cassandra_session.execute(change)
    done = fleet.run("verify", "in.csv", "-t", table, "--json", "--unit-size", "10K")
    job = assert_compared(done, same=ROWS - 3, missing=1, differing=2)
    assert done.summary["units"] > 1
    assert done.summary["reject_reasons"] == {"missing": 1, "differs v": 1, "differs tags": 1}

    # Then each is listed with its line, its column, and both values
    path = fleet.cwd / "in.csv"
    lines = fleet.run("errors", job).out.splitlines()
    assert [line.split("  byte ")[0] for line in lines] == [f"{path}:{n}" for n in (9, 10, 3001)]
    assert lines[0].endswith("  missing  no row has this key")
    assert lines[1].endswith(
        '  differs  column v: the table has "other", the source "v8"; so does n'
    )
    assert lines[2].endswith(
        '  differs  column tags: the table has no value, the source "["b","a"]"'
    )

    # When they are exported and loaded
    assert fleet.run("errors", job, "--export", "wrong.csv").code == 0
    wrong = (fleet.cwd / "wrong.csv").read_text().splitlines()
    assert wrong == [records().splitlines()[n] for n in (0, 8, 9, 3000)]
    assert fleet.run("load", "wrong.csv", "-t", table).code == 0
    # Then the table matches the file again
    assert_compared(fleet.run("verify", "in.csv", "-t", table, "--json"), same=ROWS)


def test_files_with_some_of_the_columns(
    fleet: Ringhaul, cassandra_session: Session, table: str
) -> None:
    # Given unloads of some columns, then the others are neither compared nor changed by the load
    for form in ("csv", "jsonl", "parquet"):
        unload = ("unload", "-t", table, "--columns", "id,v", "-o", form, "--format", form)
        assert fleet.run(*unload).code == 0
    cassandra_session.execute(f"UPDATE {table} SET v = 'x' WHERE id = 5")
    before = read_rows(cassandra_session, table, "id, n, writetime(n)")
    for form in ("csv", "jsonl", "parquet"):
        done = fleet.run("verify", form, "-t", table, "--json")
        job = assert_compared(done, same=ROWS - 1, differing=1)
        name = "wrong.csv" if form == "csv" else "wrong.jsonl"
        assert fleet.run("errors", job, "--export", name).code == 0
    for name in ("wrong.csv", "wrong.jsonl"):
        assert fleet.run("load", name, "-t", table).code == 0
        assert fleet.run("verify", name, "-t", table).code == 0
    assert_table(cassandra_session, table, "id, n, writetime(n)", before)


def test_which_records_and_columns_are_compared(
    fleet: Ringhaul, cassandra_session: Session, table: str
) -> None:
    cassandra_session.execute(f"UPDATE {table} SET v = 'x' WHERE id = 5")
    cassandra_session.execute(f"UPDATE {table} SET n = null WHERE id = 6")

    def differing(*options: object, same: int = ROWS) -> int:
        done = fleet.run("verify", "in.csv", "-t", table, "--json", *options)
        found: int = done.summary["differing"]
        assert_compared(done, same=same - found, differing=found)
        return found

    assert differing() == 2
    assert differing("--skip-columns", "v") == 1
    assert differing("--mapping", "id=id,tags=tags") == 0
    assert differing("--skip-rows", 6, same=ROWS - 6) == 1
    assert differing("--max-rows", 6, same=6) == 1
    done = fleet.run("verify", "in.csv", "-t", table, "--json", "--where", "id < 6")
    found = done.summary
    assert (found["rows"], found["differing"], found["filtered"]) == (5, 1, ROWS - 6)
    # A field without a value is not compared, or expects a null
    (fleet.cwd / "sparse.csv").write_text("id,v\n1,\n2,v2\n")
    sparse = fleet.run("verify", "sparse.csv", "-t", table, "--json", "--nulls", "tombstone")
    assert_compared(sparse, same=1, differing=1)
    sparse = fleet.run("verify", "sparse.csv", "-t", table, "--json")
    assert_compared(sparse, same=2)


def test_the_last_record_of_a_key_is_compared(
    fleet: Ringhaul, cassandra_session: Session, table: str
) -> None:
    (fleet.cwd / "twice.csv").write_text("id,v\n1,first\n1,last\n")
    assert fleet.run("load", "twice.csv", "-t", table).code == 0
    done = fleet.run("verify", "twice.csv", "-t", table, "--json")
    job = assert_compared(done, same=1, differing=1)
    assert ":2  " in fleet.run("errors", job).out


def test_standard_input_and_records_that_cannot_be_read(fleet: Ringhaul, table: str) -> None:
    done = fleet.run(
        *("verify", "-", "-t", table, "--json"),
        stdin=b"id,v\n1,v1\nx,v2\n3,other\n999999,v\n",
    )
    found = done.summary
    assert (done.code, found["rows"], found["rejected"]) == (1, 1, 3)
    assert (found["missing"], found["differing"]) == (1, 1)
    assert found["reject_reasons"] == {"cast id": 1, "differs v": 1, "missing": 1}


def test_too_many_differences_stop_a_verification_and_resume_continues_it(
    fleet: Ringhaul, cassandra_session: Session, table: str
) -> None:
    cassandra_session.execute(f"TRUNCATE {table}")
    done = fleet.run(
        *("verify", "in.csv", "-t", table, "--json", "--unit-size", "10K", "--max-errors", 100)
    )
    assert (done.code, done.summary["state"]) == (3, "STOPPED")
    job = done.summary["job"]
    again = fleet.run("resume", job, "--max-errors", -1, "--json")
    assert_compared(again, same=0, missing=ROWS)


def test_a_verification_is_a_job_like_others(
    fleet: Ringhaul, hold: Hold, ledger: Ledger, table: str
) -> None:
    # Given a detached verification whose units wait
    hold.from_unit(0)
    left = fleet.run(
        *("verify", "in.csv", "-t", table, "--detach", "--unit-size", "10K"),
        *("--job-id", "nightly-check"),
    )
    assert (left.code, left.out.strip()) == (7, "nightly-check")
    # Then it is listed, and can be paused and sped up
    listed = fleet.run("status").out.splitlines()
    assert any(line.split()[:2] == ["nightly-check", "verify"] for line in listed)
    assert fleet.run("pause", "nightly-check").code == 0
    wait_until(lambda: ledger.status("nightly-check").paused, "the pause")
    assert fleet.run("throttle", "nightly-check", "--off").code == 0
    hold.release()
    done = fleet.run("resume", "nightly-check", "--json")
    assert done.code in (0, 7), done
    # When the command is repeated, then it reports the end of that job
    again = fleet.run("verify", "in.csv", "-t", table, "--job-id", "nightly-check", "--json")
    assert_compared(again, same=ROWS)
    # and a load with that id is refused
    load = fleet.run("load", "in.csv", "-t", table, "--job-id", "nightly-check")
    assert load.code == 2
    assert "the job with this id is a verify" in load.err


def test_verify_without_a_broker_starts_embedded_workers(
    embedded: Ringhaul, cassandra_session: Session, module_table: str
) -> None:
    path = embedded.cwd / "one.csv"
    path.write_text("id,v\n1,v1\n")
    cassandra_session.execute(f"TRUNCATE {module_table}")
    done = embedded.run("verify", path, "-t", module_table, "-c", 1)
    assert done.code == 1, done
    assert done.err.splitlines()[-2] == (
        f" complete with differences: 0 records are the same in {module_table}, 1 missing"
    )
    assert_table(cassandra_session, module_table, "id", [])


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_write_times_and_ttls_are_compared(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str, tmp_path: Path, form: str
) -> None:
    """Those of a static and a quoted column among them; a column of a collection has none."""
    write = cassandra_session.execute
    columns = 'p int, c int, s int static, "V" text, w int, l list<int>, PRIMARY KEY (p, c)'
    table = create_table(cassandra_session, keyspace, columns)
    for p in range(5):
        write(f"UPDATE {table} USING TIMESTAMP {p + 9} SET s = {p} WHERE p = {p}")
        for c in range(8):
            ttl = f"AND TTL {80_000 + c}" if c % 2 else ""
            write(
                f"INSERT INTO {table} (p, c, \"V\", w, l) VALUES ({p}, {c}, 'v', {c}, [{c}]) "
                f"USING TIMESTAMP {1000 + c} {ttl}"
            )
    out, keep = tmp_path / "out", ["--preserve-timestamp", "--preserve-ttl"]
    assert fleet.run("unload", "-t", table, "-o", out, "--format", form, *keep).code == 0
    assert_compared(fleet.run("verify", out, "-t", table, "--times", "--json"), same=40)
    # The same values written later; for longer; and, without end before, with one
    for p, c, using in (
        (0, 1, "TIMESTAMP 5000 AND TTL 70000"),
        (1, 1, "TIMESTAMP 1001 AND TTL 100000"),
        (2, 0, "TIMESTAMP 1000 AND TTL 100000"),
    ):
        write(f"UPDATE {table} USING {using} SET \"V\" = 'v' WHERE p = {p} AND c = {c}")
    done = fleet.run("verify", out, "-t", table, "--times", "--json")
    job = assert_compared(done, same=38, differing=2)
    listed = " ".join(fleet.run("errors", job).out.split())
    assert 'writetime(V): the table has "5000", the source "1001"' in listed
    assert 'ttl(V): the table has "' in listed and 'the source "' in listed
    # An empty field is compared if it means null
    options = ["--times", "--nulls", "tombstone", "--json"]
    assert_compared(fleet.run("verify", out, "-t", table, *options), same=37, differing=3)
    # Without the option only values are
    done = fleet.run("verify", out, "-t", table, "--json")
    assert_compared(done, same=40)
    assert "--times compares write times and TTLs" in done.err
    done = fleet.run("verify", out, "-t", table, "--times", "--no-header")
    assert (done.code, "--columns" in done.err) == (2, True)
