"""Rejected records are exported from the ledger into files that load again."""

from __future__ import annotations

import json

import pytest
from cassandra.cluster import Session

from tests.acceptance.command import Ringhaul
from tests.acceptance.oracle import (
    assert_report,
    assert_table,
    create_table,
)

COLUMNS = "id int PRIMARY KEY, a text"


@pytest.fixture
def table(cassandra_session: Session, keyspace: str) -> str:
    """An empty table of two columns."""
    return create_table(cassandra_session, keyspace, COLUMNS)


def test_rejects_are_exported_corrected_and_loaded_again(
    fleet: Ringhaul, cassandra_session: Session, table: str
) -> None:
    # Given two files with the same header, with rejects of several kinds in units of one record
    text = 'id,a\n1,x\nnope,"a ""quoted""\nvalue"\n2,y\n,no key\n'
    (fleet.cwd / "one.csv").write_text(text, newline="")
    (fleet.cwd / "two.csv").write_bytes(b"id,a\r\n3,z\r\n4,\xff\r\n5,u,v\r\n")
    done = fleet.run("load", "one.csv", "two.csv", "-t", table, "--json", "--unit-size", "1")
    job = assert_report(done, rows=3, rejected=4)["job"]

    # Then each is listed with its file, line, byte, stage, column and reason
    listed = fleet.run("errors", job)
    assert listed.code == 0
    one, two = fleet.cwd / "one.csv", fleet.cwd / "two.csv"
    no_key = text.index(",no key")
    assert listed.out.splitlines() == [
        f'{one}:3  byte 9  cast  column id: cast int: "nope" is not a whole number',
        f"{one}:6  byte {no_key}  key  column id: null in the primary key; it needs a value",
        f"{two}:3  byte 11  cast  column a: cast text: invalid UTF-8 at byte 1 (0xff); "
        "give --encoding if the file is in another encoding",
        f"{two}:4  byte 16  parse  has 3 fields, expected 2; "
        "--allow-extra-fields leaves out the rest",
    ]
    # and a limit shortens the list
    assert fleet.run("errors", job, "--limit", 1).out.splitlines()[1].startswith("... 3 more")
    # and --json has the same
    as_json = [json.loads(line) for line in fleet.run("errors", job, "--json").out.splitlines()]
    first = fleet.run("errors", job, "--json", "--limit", 1).out.splitlines()
    assert [json.loads(line) for line in first] == as_json[:1]
    assert [reject["line"] for reject in as_json] == [3, 6, 3, 4]

    # When they are exported
    exported = fleet.run("errors", job, "--export", "bad.csv")
    assert exported.code == 0
    assert "4 rejected records written to bad.csv" in exported.err
    # Then the file holds their original bytes under the header
    bad = (fleet.cwd / "bad.csv").read_bytes()
    assert bad == b'id,a\nnope,"a ""quoted""\nvalue"\n,no key\n4,\xff\n5,u,v\n'

    # When it is corrected and loaded
    mended = bad.replace(b"nope", b"7").replace(b",no key", b"8,key").replace(b"\xff", b"")
    (fleet.cwd / "bad.csv").write_bytes(mended.replace(b"u,v", b"u"))
    again = fleet.run("load", "bad.csv", "-t", table, "--json")

    # Then all records of both files are in the table
    assert_report(again, rows=4)
    expected = [(1, "x"), (2, "y"), (3, "z"), (4, None), (5, "u"), (7, 'a "quoted"\nvalue'),
                (8, "key")]  # fmt: skip
    assert_table(cassandra_session, table, "id, a", expected)


def test_an_export_never_loses_records(
    fleet: Ringhaul, cassandra_session: Session, table: str
) -> None:
    # Given rejects that were exported, corrected by hand, and loaded, one of them still bad
    mended = fleet.cwd / "rejects.csv"
    mended.write_text("id,a\n1,x\nnope,y\n2,z\n")
    loaded = fleet.run("load", "rejects.csv", "-t", table)
    assert loaded.code == 1
    job = loaded.err.split()[0]
    # Then the suggested next command does not overwrite them
    assert loaded.err.splitlines()[-1] == (
        f" next     ringhaul errors {job} --export rejects-2.csv"
    )

    # When a command would overwrite them, then it is refused
    refused = fleet.run("errors", job, "--export", "rejects.csv")
    assert (refused.code, refused.out) == (2, "")
    assert refused.err == (
        "error: --export rejects.csv: the job was loaded from this file; give another name\n"
    )
    assert mended.read_text() == "id,a\n1,x\nnope,y\n2,z\n"

    # And a path that cannot be written is reported
    gone = fleet.run("errors", job, "--export", "gone/bad.csv")
    assert gone.code == 2
    assert gone.err == "error: gone/bad.csv: cannot be written: No such file or directory\n"

    # And an export that fails half way keeps the old file: standard output is one
    (fleet.cwd / "other.csv").write_text("a,id\nv,no\n")
    (fleet.cwd / "other.jsonl").write_text('{"id": "none"}\n')
    files = ["rejects.csv", "other.csv", "other.jsonl"]
    several = fleet.run("load", *files, "-t", table, "--json").summary["job"]
    done = fleet.run("errors", several, "--export", "-")
    assert (done.code, "give --export FILE" in done.err) == (2, True), done
    # Each header and format has its own file, and loads again with the options of the load
    (fleet.cwd / "all-2.csv").write_text("kept")
    for line in ("all.csv;", "all.csv, in place of an older file;"):
        done = fleet.run("errors", several, "--export", "all.csv")
        assert done.code == 0
        assert (
            f"3 rejected records written to {line} those with another header or format" in done.err
        )
        assert "to all-3.csv, all-2.jsonl" in done.err
        texts = {name: (fleet.cwd / name).read_text() for name in ("all.csv", "all-3.csv")}
        assert texts == {"all.csv": "id,a\nnope,y\n", "all-3.csv": "a,id\nv,no\n"}
        assert (fleet.cwd / "all-2.jsonl").read_text() == '{"id": "none"}\n'
        assert (fleet.cwd / "all-2.csv").read_text() == "kept"
        again = fleet.run("load", "all.csv", "all-3.csv", "all-2.jsonl", "-t", table, "--json")
        assert_report(again, rows=0, rejected=3)
        (fleet.cwd / "all-3.csv").unlink()
        (fleet.cwd / "all-2.jsonl").unlink()

    # And another file name works
    assert fleet.run("errors", job, "--export", "rejects-2.csv").code == 0
    assert (fleet.cwd / "rejects-2.csv").read_text() == "id,a\nnope,y\n"
    assert sorted(path.name for path in fleet.cwd.iterdir() if path.name.startswith(".")) == []


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_an_export_is_in_the_encoding_of_its_source(
    fleet: Ringhaul, cassandra_session: Session, table: str, encoding: str
) -> None:
    # Given rejects in a file that is not UTF-8
    text = "id,a\n1,ä\nzwei,ö\ndrei,ü\n"
    (fleet.cwd / "in.csv").write_bytes(text.encode(encoding))
    options = ["-t", table, "--json", "--encoding", encoding]
    job = assert_report(fleet.run("load", "in.csv", *options), rows=1, rejected=2)["job"]

    # When they are exported
    assert fleet.run("errors", job, "--export", "bad.csv").code == 0

    # Then the file has the same encoding, and loads with the same options once corrected
    bad = (fleet.cwd / "bad.csv").read_bytes().decode(encoding)
    assert bad == "id,a\nzwei,ö\ndrei,ü\n"
    mended = bad.replace("zwei", "2").replace("drei", "3")
    (fleet.cwd / "bad.csv").write_bytes(mended.encode(encoding))
    assert_report(fleet.run("load", "bad.csv", *options), rows=2)
    assert_table(cassandra_session, table, "id, a", [(1, "ä"), (2, "ö"), (3, "ü")])


def test_a_record_that_cannot_be_decoded_is_rejected_again_after_an_export(
    fleet: Ringhaul, cassandra_session: Session, table: str
) -> None:
    # Given a record in Shift JIS with invalid bytes
    (fleet.cwd / "in.csv").write_bytes("id,a\n1,日本\n".encode("shift_jis") + b"2,\x81\x20 caf\n")
    options = ["-t", table, "--json", "--encoding", "shift_jis"]
    job = assert_report(fleet.run("load", "in.csv", *options), rows=1, rejected=1)["job"]

    # When it is exported and loaded unchanged, then it is rejected again, with the same bytes
    assert fleet.run("errors", job, "--export", "bad.csv").code == 0
    assert_report(fleet.run("load", "bad.csv", *options), rows=0, rejected=1)
    assert_table(cassandra_session, table, "id, a", [(1, "日本")])


def test_an_export_without_a_header_loads_with_the_same_options(
    fleet: Ringhaul, cassandra_session: Session, table: str
) -> None:
    (fleet.cwd / "in.csv").write_text("x;1\ny;z\n")
    options = ["-t", table, "--json", "-d", ";", "--no-header", "--columns", "a,id"]
    job = assert_report(fleet.run("load", "in.csv", *options), rows=1, rejected=1)["job"]

    out = fleet.run("errors", job, "--export", "-").out

    assert out == "y;z\n"
    (fleet.cwd / "bad.csv").write_text(out.replace("z", "2"))
    assert_report(fleet.run("load", "bad.csv", *options), rows=1)
    assert_table(cassandra_session, table, "id, a", [(1, "x"), (2, "y")])
