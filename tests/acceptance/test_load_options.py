"""Options for reading a file and mapping its fields to columns."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cassandra.cluster import Session

from tests.acceptance.command import Ringhaul
from tests.acceptance.oracle import assert_report, assert_table, create_table

COLUMNS = "id int PRIMARY KEY, a text, b text"


@pytest.fixture
def table(cassandra_session: Session, keyspace: str) -> str:
    """An empty table of three columns."""
    return create_table(cassandra_session, keyspace, COLUMNS)


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        pytest.param(
            "id\ta\tb\n1\tx, y\t\n2\t\"t\ta\tb\"\t''\n",
            ["-d", "\\t"],
            [(1, "x, y", None), (2, "t\ta\tb", "''")],
            id="tab",
        ),
        pytest.param(
            "id|a|b\n1|'it''s | it'|\"\n2|''|x\n",
            ["-d", "|", "--quote", "'"],
            [(1, "it's | it", '"'), (2, "", "x")],
            id="quote",
        ),
        pytest.param(
            'id,a,b\n1,"x,"y"\n2,"",5"\n',
            ["--quote", ""],
            [(1, '"x', '"y"'), (2, '""', '5"')],
            id="no quote",
        ),
        pytest.param(
            "id,a,b\n1,NULL,\n2,\\N,\"NULL\"\n3,null,''\n",
            ["--null", "NULL", "--null", "\\N"],
            [(1, None, ""), (2, None, "NULL"), (3, "null", "''")],
            id="null strings",
        ),
        pytest.param(
            "# a title, with commas\nid,a,b\n#1,x,y\n2,x,#y\n#\"\n\n3,\"#\n#z\",\n# end",
            ["--comment", "#"],
            [(2, "x", "#y"), (3, "#\n#z", None)],
            id="comment",
        ),
        pytest.param(
            "id;a;b\n" + "".join(f"{n};{n};x\n" for n in range(1, 30)),
            ["-d", ";", "--skip-rows", "10", "--max-rows", "7", "--unit-size", "20"],
            [(n, str(n), "x") for n in range(11, 18)],
            id="skip and max rows",
        ),
        pytest.param(
            "id,a,junk,b,more\n1,x,?,y,?\n2,,?,,?\n",
            ["--skip-columns", "junk,more"],
            [(1, "x", "y"), (2, None, None)],
            id="skip columns",
        ),
        pytest.param(
            "key,left,right\n1,x,y\n",
            ["-m", "key=id,right=a,left=b"],
            [(1, "y", "x")],
            id="mapping by name",
        ),
        pytest.param(
            "id,a,b\n1,x,y\n",
            ["-m", "0=id,2=a"],
            [(1, "y", None)],
            id="mapping by position",
        ),
        pytest.param(
            "x,1,y\n,2,\n",
            ["--no-header", "-m", "1=id,0=a,2=b", "--columns", "f0,f1,f2"],
            [(1, "x", "y"), (2, None, None)],
            id="no header, mapping by position",
        ),
        pytest.param("1,x,y\n2,,\n", ["--no-header"], [(1, "x", "y"), (2, None, None)],
                     id="no header"),
        pytest.param("x,y,1\n", ["--no-header", "--columns", "b, a, id"], [(1, "y", "x")],
                     id="no header, columns"),
        pytest.param("Nr,Name,Wert\n1,x,y\n", ["--columns", "id,a,b"], [(1, "x", "y")],
                     id="columns instead of the header"),
        pytest.param("B,ID,A\ny,1,x\n", ["-m", "ID=id,A=a,B=b"], [(1, "x", "y")],
                     id="header in another case"),
        pytest.param("b, id ,a\ny,1,x\n", [], [(1, "x", "y")], id="header in another order"),
        pytest.param(
            "id,a,b\n1,x,y,z\n2,x,y\n3,x,y,,\n",
            ["--allow-extra-fields"],
            [(1, "x", "y"), (2, "x", "y"), (3, "x", "y")],
            id="extra fields",
        ),
        pytest.param(
            'id,a,b\n1,x\n2,x,y\n3\n4,""\n',
            ["--allow-missing-fields"],
            [(1, "x", None), (2, "x", "y"), (3, None, None), (4, "", None)],
            id="missing fields",
        ),
        pytest.param("id,a,b\n1,x\0y,\n", ["--allow-nul"], [(1, "x\0y", None)], id="nul"),
        pytest.param("id,a,b\n", [], [], id="header only"),
    ],
)  # fmt: skip
def test_a_file_is_read_with_its_options(
    fleet: Ringhaul,
    cassandra_session: Session,
    table: str,
    text: str,
    options: Sequence[str],
    expected: Sequence[tuple[int, str | None, str | None]],
) -> None:
    (fleet.cwd / "in.csv").write_text(text, newline="")

    done = fleet.run("load", "in.csv", "-t", table, "--json", *options)

    assert_report(done, rows=len(expected))
    assert_table(cassandra_session, table, "id, a, b", expected)


TEXT = "id,a,b\n" + "".join(
    f'{n},"ä €\n{n}",{"é" * n}\n' if n % 2 else f"{n},ß{n},\n" for n in range(1, 60)
)


@pytest.mark.parametrize(
    ("encoding", "name"),
    [
        ("latin-1", "plain.csv"),
        ("cp1252", "plain.csv"),
        ("utf-16", "plain.csv"),
        ("utf-16-le", "packed.csv.gz"),
        ("utf-8-sig", "packed.csv.gz"),
        ("shift_jis", "plain.csv"),
    ],
)
def test_other_encodings_become_the_same_text(
    fleet: Ringhaul, cassandra_session: Session, table: str, encoding: str, name: str
) -> None:
    # Given a text with letters of the encoding, plain or compressed
    text = TEXT.encode(encoding, "ignore").decode(encoding)
    data = text.encode(encoding)
    (fleet.cwd / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    # (the oracle is Python's csv module on text that Python decoded)
    _, *rows = csv.reader(io.StringIO(text, newline=""))
    expected = [(int(number), a, b or None) for number, a, b in rows]

    # When it is loaded in units far smaller than the file
    done = fleet.run("load", name, "-t", table, "--json", "--encoding", encoding,
                     "--unit-size", "100")  # fmt: skip

    # Then every letter is correct
    assert_report(done, rows=59)
    assert_table(cassandra_session, table, "id, a, b", expected)


def test_extra_and_missing_fields_are_rejects_by_default(
    fleet: Ringhaul, cassandra_session: Session, table: str
) -> None:
    (fleet.cwd / "in.csv").write_text("id,a,b\n1,x\n2,x,y\n3,x,y,z\n")

    done = fleet.run("load", "in.csv", "-t", table, "--json")

    summary = assert_report(done, rows=1, rejected=2)
    assert_table(cassandra_session, table, "id, a, b", [(2, "x", "y")])
    errors = fleet.run("errors", summary["job"])
    assert errors.out.splitlines() == [
        f"{fleet.cwd}/in.csv:2  byte 7  parse  has 2 fields, expected 3; "
        "--allow-missing-fields takes the others as nulls",
        f"{fleet.cwd}/in.csv:4  byte 17  parse  has 4 fields, expected 3; "
        "--allow-extra-fields leaves out the rest",
    ]


def test_globs_and_directories_name_their_files(
    fleet: Ringhaul, cassandra_session: Session, table: str
) -> None:
    # Given a tree of files, some of which are not input
    for number, name in enumerate(
        ["b/1.csv", "b/deep/2.TSV", "c_3.csv", "c_4.csv", "b/5.txt.gz", "b/.6.csv", "b/7.log"]
    ):
        path = fleet.cwd / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = f"id,a,b\n{number},{name},\n".encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)

    (fleet.cwd / "lists").mkdir()
    (fleet.cwd / "lists" / "names.txt").write_text("# of today\n\nc_*.csv\n c_3.csv \n")
    # When the directory and a glob are given, and one file twice; then some files by a list
    given = ["c_*.csv", "c_3.csv"], ["--urlfile", "lists/names.txt"]
    for names in given:
        cassandra_session.execute(f"TRUNCATE {table}")
        done = fleet.run("load", "b", *names, "-t", table, "--json")

        # Then visible text files are loaded, each once
        summary = assert_report(done, rows=5)
        assert [source["path"] for source in summary["sources"]] == [
            str(fleet.cwd / name)
            for name in ("b/1.csv", "b/5.txt.gz", "b/deep/2.TSV", "c_3.csv", "c_4.csv")
        ]
        expected = [(0, "b/1.csv"), (1, "b/deep/2.TSV"), (2, "c_3.csv"), (3, "c_4.csv"),
                    (4, "b/5.txt.gz")]  # fmt: skip
        assert_table(cassandra_session, table, "id, a", expected)


def test_fields_named_in_other_case_are_loaded_verified_and_looked_up(
    fleet: Ringhaul, cassandra_session: Session, table: str
) -> None:
    (fleet.cwd / "x.csv").write_text("ID,A,b\n1,x,y\n")
    (fleet.cwd / "y.jsonl").write_text('{"Id": 2, "a": "x", "B": "y"}\n{"Id": 3}\n')
    done = fleet.run("load", "x.csv", "y.jsonl", "-t", table)
    assert done.code == 0, done
    assert "field ID is loaded into column id, A loaded into a, Id loaded into id, and 1 more" in (
        done.err
    )
    expected = [(1, "x", "y"), (2, "x", "y"), (3, None, None)]
    assert_table(cassandra_session, table, "id, a, b", expected)
    same = fleet.run("verify", "x.csv", "y.jsonl", "-t", table)
    assert same.code == 0 and "field ID is compared with column id" in same.err, same
    found = fleet.run("lookup", "-t", table, "--keys", "x.csv", "-o", "-")
    assert found.code == 0 and found.out == "id,a,b\n1,x,y\n", found
    assert "field ID is taken for column id" in found.err


def test_rows_are_skipped_and_limited_in_each_file(
    fleet: Ringhaul, cassandra_session: Session, table: str
) -> None:
    # Given files of several formats, plain and compressed, of 9, 9, 9, 9, 1 and 2 records
    folder = fleet.cwd / "in"
    folder.mkdir()

    def csv_of(first: int, last: int) -> bytes:
        return b"id,a,b\n" + b"".join(b'%d,"x\ny",z\n' % n for n in range(first, last))

    (folder / "1.csv").write_bytes(csv_of(0, 9))
    (folder / "2.csv.gz").write_bytes(gzip.compress(csv_of(10, 19)))
    (folder / "3.jsonl").write_text("".join(f'{{"id": {n}, "a": "j"}}\n' for n in range(20, 29)))
    columns = {"id": range(30, 39), "a": ["p"] * 9}
    pq.write_table(pa.table(columns), folder / "4.parquet", row_group_size=2)
    (folder / "5.csv").write_bytes(csv_of(40, 41))
    (folder / "6.csv").write_bytes(csv_of(50, 52))
    # When each is loaded from its third record on, up to three of them
    bounds = ("--skip-rows", 2, "--max-rows", 3, "--rows-per", "file")
    done = fleet.run("load", "in", "-t", table, *bounds, "--unit-size", 16, "--json")
    # Then exactly these are in the table
    rows = [(n, "x\ny", "z") for n in (2, 3, 4, 12, 13, 14)]
    rows += [(n, "j", None) for n in (22, 23, 24)] + [(n, "p", None) for n in (32, 33, 34)]
    assert_report(done, rows=len(rows))
    assert_table(cassandra_session, table, "id, a, b", rows)
    # And the same are verified, looked up, and sampled by a dry run
    same = fleet.run("verify", "in", "-t", table, *bounds, "--unit-size", 16, "--json")
    assert_report(same, rows=len(rows))
    values = [
        f"--values{str(option)[1:]}" if str(option)[:2] == "--" else option for option in bounds
    ]
    keys = ("--keys", "in/2.csv.gz", "--key", "id", "--no-header")
    found = fleet.run("lookup", "-t", table, *keys, "--columns", "id", *values)
    assert found.out.split() == ["12", "13", "14"]
    plan = fleet.run("load", "in", "-t", table, *bounds, "--dry-run", "--json")
    assert json.loads(plan.out)["samples"][0]["records"] == 3

    # Nothing is loaded of none; and what would have no effect is refused
    none = fleet.run("load", "in/1.csv", "-t", table, "--max-rows", 0, "--json")
    assert_report(none, rows=0)
    for option in ("--rows-per", "--values-rows-per"):
        command = ("load", "in") if option == "--rows-per" else ("lookup", "--keys", "in/1.csv")
        refused = fleet.run(*command, "-t", table, option, "file")
        assert refused.code == 2 and f"{option} says what" in refused.err


def test_the_summary_is_printed_in_the_chosen_form(
    fleet: Ringhaul, cassandra_session: Session, table: str
) -> None:
    (fleet.cwd / "in.csv").write_text("id,a,b\n1,x,y\nno,x,y\n2,x,y\n")

    # On stderr as text: a table and the next command; stdout stays empty
    shown = fleet.run("load", "in.csv", "-t", table)
    assert (shown.code, shown.out) == (1, "")
    assert f"load -> {table}" in shown.err
    assert f"complete with rejects: 2 records were written to {table}, 1 rejected" in shown.err
    assert "ringhaul errors ld-" in shown.err

    # As JSON Lines, with only the first line on stderr
    as_json = fleet.run("load", "in.csv", "-t", table, "--json")
    kinds = [json.loads(line)["message_type"] for line in as_json.out.splitlines()]
    assert kinds[-1] == "summary"
    assert set(kinds[:-1]) <= {"status"}
    assert_report(as_json, rows=2, rejected=1)

    # Only in a file
    quiet = fleet.run("load", "in.csv", "-t", table, "-q", "--summary", "sum.json")
    assert (quiet.code, quiet.out) == (1, "")
    assert quiet.err.count("\n") == 2 and "complete with rejects: " in quiet.err
    saved = json.loads((fleet.cwd / "sum.json").read_text())
    assert (saved["rows"], saved["rejected"], saved["exit_code"]) == (2, 1, 1)
    assert_table(cassandra_session, table, "id, a, b", [(1, "x", "y"), (2, "x", "y")])


def test_sizes_and_limits_are_accepted_in_the_spellings_of_the_help(
    fleet: Ringhaul, cassandra_session: Session, table: str
) -> None:
    # Given more bad records than the default allows, and the spellings that --help shows
    (fleet.cwd / "in.csv").write_text("id,a,b\n" + "bad,x,y\n" * 1500 + "1,x,y\n")

    done = fleet.run("load", "in.csv", "-t", table, "--json", "--unit-size", "16M",
                     "--max-errors", "-1")  # fmt: skip

    assert_report(done, rows=1, rejected=1500)
    assert_table(cassandra_session, table, "id, a, b", [(1, "x", "y")])


def test_names_keep_their_case_if_the_schema_is_case_sensitive(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str
) -> None:
    create_table(cassandra_session, keyspace, '"Id" int PRIMARY KEY, "a b" text', name='"Tab"')
    (fleet.cwd / "in.csv").write_text("Id,a b\n1,x\n")

    done = fleet.run("load", "in.csv", "-k", keyspace, "-t", "Tab", "--json")

    assert_report(done, rows=1)
    assert_table(cassandra_session, f'{keyspace}."Tab"', '"Id", "a b"', [(1, "x")])


def test_bounds_of_the_command_hold_on_running_workers(
    fleet: Ringhaul, cassandra_session: Session, table: str, tmp_path: Path
) -> None:
    """
    Given workers without bounds on requests
    When a command with bounds in its own settings loads rows that would share requests
    Then each request has so many rows at most, and so many requests are on their way
    """
    rows = [(n, "x", "y") for n in range(3000)]
    path = tmp_path / "rows.csv"
    path.write_text("id,a,b\n" + "".join(f"{n},x,y\n" for n, _, _ in rows))
    done = fleet.run(
        *("load", path, "-t", table, "--json"),
        RINGHAUL_LOAD_IN_FLIGHT_REQUESTS_MAX="40",
        RINGHAUL_LOAD_BATCH_ROWS_MAX="2",
    )
    assert_report(done, rows=3000)
    assert 0 < done.summary["window_max"] <= 40
    assert_table(cassandra_session, table, "id, a, b", rows)
    # The next job is without bounds again, on the same connections
    assert fleet.run("load", path, "-t", table, "--json").summary["window_max"] >= 256
