"""Tables that are moved with their times, by positions, and from files of R, on real services."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from cassandra.cluster import Session

from tests.acceptance.command import Ringhaul
from tests.acceptance.oracle import assert_report, create_table, read_rows

COLUMNS = "id int PRIMARY KEY, v text, n int"
TIMES = "id, v, n, writetime(v), writetime(n)"


def lines_of(folder: Path) -> list[str]:
    return sorted(line for part in folder.glob("*.csv") for line in part.read_text().split())


def test_positions_order_the_fields_of_files_without_a_header(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str, tmp_path: Path
) -> None:
    table = create_table(cassandra_session, keyspace, COLUMNS)
    again = create_table(cassandra_session, keyspace, COLUMNS, "again")
    for number in range(20):
        cassandra_session.execute(
            f"INSERT INTO {table} (id, v, n) VALUES ({number}, 'v{number}', {100 + number})"
        )
    mapping = ["--no-header", "-m", "2=v,0=n,1=id"]
    out = tmp_path / "out"
    assert fleet.run("unload", "-t", table, "-o", out, *mapping).code == 0
    assert lines_of(out) == sorted(f"{100 + n},{n},v{n}" for n in range(20))
    printed = fleet.run("unload", "-t", table, "-o", "-", *mapping, "-q")
    assert sorted(printed.out.split()) == lines_of(out)
    # The same mapping loads them, with and without what the manifest says
    for source in (out, *out.glob("*.csv")):
        assert fleet.run("load", source, "-t", again, *mapping).code == 0
    assert sorted(read_rows(cassandra_session, again, "id, v, n")) == sorted(
        read_rows(cassandra_session, table, "id, v, n")
    )
    # Skipped records do not say how many fields there are
    path = tmp_path / "more.csv"
    path.write_text("skip\n7,50,x\n8\n")
    done = fleet.run("load", path, "-t", again, *mapping, "--skip-rows", 1, "--json")
    assert (done.code, done.summary["rows"], done.summary["rejected"]) == (1, 1, 1)
    assert (50, "x", 7) in read_rows(cassandra_session, again, "id, v, n")
    for wrong in ("1=v,3=id", "1=v,1=id"):
        done = fleet.run("unload", "-t", table, "-o", "-", "--no-header", "-m", wrong)
        assert (done.code, "position" in done.err) == (2, True), done


def test_times_that_the_mapping_names_are_written_once_and_come_back(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str, tmp_path: Path
) -> None:
    table = create_table(cassandra_session, keyspace, COLUMNS)
    again = create_table(cassandra_session, keyspace, COLUMNS, "again")
    for number in range(5):
        cassandra_session.execute(
            f"INSERT INTO {table} (id, v) VALUES ({number}, 'v') USING TIMESTAMP {1000 + number}"
        )
        cassandra_session.execute(
            f"UPDATE {table} USING TIMESTAMP {2000 + number} SET n = 5 WHERE id = {number}"
        )
    options = ["-m", "*=*, vw=writetime(v), vt=ttl(v)", "--preserve-timestamp", "--preserve-ttl"]
    out = tmp_path / "out"
    assert fleet.run("unload", "-t", table, "-o", out, *options).code == 0
    assert lines_of(out)[-1] == "id,n,writetime(n),ttl(n),v,vw,vt"
    done = fleet.run("load", out, "-t", again, *options, "--json")
    assert_report(done, rows=5)
    assert sorted(read_rows(cassandra_session, again, TIMES)) == sorted(
        read_rows(cassandra_session, table, TIMES)
    )


def test_a_table_moves_to_a_new_key_with_the_times_that_are_left(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str, tmp_path: Path
) -> None:
    table = create_table(cassandra_session, keyspace, COLUMNS)
    moved = create_table(
        cassandra_session, keyspace, "v text, id int, n int, PRIMARY KEY (v, id)", "moved"
    )
    for number in range(5):
        cassandra_session.execute(
            f"INSERT INTO {table} (id, v, n) VALUES ({number}, 'v', {number}) USING TIMESTAMP "
            f"{1000 + number}"
        )
    for form in ("csv", "jsonl", "parquet"):
        cassandra_session.execute(f"TRUNCATE {moved}")
        out = tmp_path / form
        keep = ["--preserve-timestamp"]
        assert fleet.run("unload", "-t", table, "-o", out, "--format", form, *keep).code == 0
        done = fleet.run("load", out, "-t", moved, *keep)
        assert done.code == 0, done
        assert "not loaded: writetime(v) (a column of the key has none" in done.err
        assert sorted(read_rows(cassandra_session, moved, "v, id, n, writetime(n)")) == [
            ("v", number, number, 1000 + number) for number in range(5)
        ]
        done = fleet.run("verify", out, "-t", moved, "--times")
        assert done.code == 0, done
        assert "not compared: writetime(v) (the table has no such time: a key has none" in done.err


def test_a_table_without_times_loads_with_the_options_of_its_unload(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str, tmp_path: Path
) -> None:
    columns = "id int PRIMARY KEY, t set<int>, m map<int, int>"
    table = create_table(cassandra_session, keyspace, columns)
    again = create_table(cassandra_session, keyspace, columns, "again")
    cassandra_session.execute(f"INSERT INTO {table} (id, t, m) VALUES (1, {{1, 2}}, {{3: 4}})")
    keep = ["--preserve-timestamp", "--preserve-ttl"]
    out = tmp_path / "out"
    assert fleet.run("unload", "-t", table, "-o", out, *keep).code == 0
    done = fleet.run("load", out, "-t", again, *keep)
    assert done.code == 0, done
    assert "--preserve-timestamp and --preserve-ttl: no loaded column has a time" in done.err
    assert read_rows(cassandra_session, again, "*") == read_rows(cassandra_session, table, "*")


def test_constants_are_write_times_and_ttls(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str, tmp_path: Path
) -> None:
    table = create_table(cassandra_session, keyspace, COLUMNS)
    path = tmp_path / "rows.csv"
    path.write_text("id,v,n\n" + "".join(f"{n},v,{n}\n" for n in range(50)))

    def load(mapping: str, *options: object) -> None:
        cassandra_session.execute(f"TRUNCATE {table}")
        done = fleet.run("load", path, "-t", table, "-m", mapping, *options, "--json")
        assert_report(done, rows=50)

    load("*=*, (int)222222 = ttl(n)", "--timestamp", 7)
    rows = read_rows(cassandra_session, table, "id, v, n, writetime(n), ttl(v), ttl(n)")
    assert sorted(row[:5] for row in rows) == [(n, "v", n, 7 + n, None) for n in range(50)]
    assert all(222_000 < row[5] <= 222_222 for row in rows)
    for strategy in ("pipeline", "token-batch"):
        load("*=*, (int)10000=ttl(*), (timestamp)'2022-02-02T22:22:22Z'=writetime(*)",
             "--strategy", strategy)  # fmt: skip
        rows = read_rows(cassandra_session, table, f"{TIMES}, ttl(v), ttl(n)")
        moment = 1_643_840_542_000_000
        assert sorted(row[:5] for row in rows) == [(n, "v", n, moment, moment) for n in range(50)]
        assert all(9_000 < ttl <= 10_000 for row in rows for ttl in row[5:])


def test_what_a_load_of_a_file_of_r_says_is_right(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str, tmp_path: Path
) -> None:
    table = create_table(cassandra_session, keyspace, COLUMNS)
    path = tmp_path / "frame.csv"
    for header, records in (
        ('"id","v","n"', '"a",1,"x",7\n"b",2,"y",8\n'),  # with the names of rows
        ('"v","n"', '"1","x",7\n"2","y",8\n'),  # these are the key
    ):
        cassandra_session.execute(f"TRUNCATE {table}")
        path.write_text(f"{header}\n{records}")
        done = fleet.run("load", path, "-t", table)
        assert done.code in (1, 2)
        assert read_rows(cassandra_session, table, "*") == []
        found = re.search(r"R's write.table, give (.*?); --allow-extra-fields", done.err)
        assert found is not None, done
        done = fleet.run("load", path, "-t", table, *shlex.split(found[1]), "--json")
        assert_report(done, rows=2)
        assert sorted(read_rows(cassandra_session, table, "id, v, n")) == [(1, "x", 7), (2, "y", 8)]
