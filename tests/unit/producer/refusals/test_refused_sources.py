"""Sources that cannot be loaded are refused before a job exists (exit code 2, 4 for damage).

Given a table and a source that is missing, empty, misnamed or not for this table, when it is
loaded, then one message says what is wrong, where and what to do. The acceptance tests have
one test of each exit code.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.planning import PlannedRinghaul
from tests.refusals import assert_refused

GOOD = b"id,name,total\n1,a,10\n"


def test_a_file_in_a_missing_folder(fleet: PlannedRinghaul, table: str) -> None:
    finished = fleet.run("load", "nowhere/orders.csv", "-t", table)
    assert_refused(finished, 2, "nowhere/orders.csv: no such file; there is no directory nowhere")


def test_one_missing_file_among_others_stops_all(fleet: PlannedRinghaul, table: str) -> None:
    (fleet.cwd / "first.csv").write_bytes(GOOD)
    finished = fleet.run("load", "first.csv", "2.csv", "-t", table)
    assert_refused(finished, 2, "2.csv: no such file")
    # When only the list of them is piped in
    listed = b"first.csv\n2.csv\n"
    finished = fleet.run("load", "--urlfile", "-", "--dry-run", "-t", table, stdin=listed)
    assert_refused(finished, 2, "standard input, line 2: 2.csv: no such file")


def test_a_glob_that_matches_nothing(fleet: PlannedRinghaul, table: str) -> None:
    finished = fleet.run("load", "2026-*.csv", "-t", table)
    assert_refused(finished, 2, "2026-*.csv: no file matches")


def test_a_directory_without_a_csv_file(fleet: PlannedRinghaul, table: str) -> None:
    (fleet.cwd / "in").mkdir()
    (fleet.cwd / "in" / "orders.xml").write_text("{}")
    finished = fleet.run("load", "in", "-t", table)
    assert_refused(
        finished,
        2,
        "in: the directory holds no .csv, .tsv, .txt, .jsonl, .ndjson, .json, .parquet file, plain "
        "or compressed (.gz, .bz2, .xz, .lzma, .zst, .zstd, .lz4, .br); name the files, or use "
        "a glob. Names that begin with _ or . count as hidden",
    )


EMPTY = {
    "nothing": b"",
    "only a byte order mark": b"\xef\xbb\xbf",
    "only line ends": b"\n\r\n\n",
}


@pytest.mark.parametrize("content", EMPTY.values(), ids=EMPTY)
@pytest.mark.parametrize("header", ["--header", "--no-header"])
def test_an_empty_file(fleet: PlannedRinghaul, table: str, content: bytes, header: str) -> None:
    path = fleet.cwd / "orders.csv"
    path.write_bytes(content)
    finished = fleet.run("load", path, "-t", table, header)
    lacks = "no header and no records" if header == "--header" else "no records"
    assert_refused(finished, 2, f"{path} is empty: it has {lacks}")


def test_several_files_that_are_all_empty(fleet: PlannedRinghaul, table: str) -> None:
    for name in ("b.csv", "a.csv", "c.jsonl"):
        (fleet.cwd / name).write_bytes(b"")
    finished = fleet.run("load", "b.csv", "a.csv", "c.jsonl", "-t", table)
    message = f"{fleet.cwd / 'b.csv'} is empty: it has no header and no records"
    assert_refused(finished, 2, message)


def test_an_empty_archive_and_an_empty_standard_input(fleet: PlannedRinghaul, table: str) -> None:
    path = fleet.cwd / "orders.csv.gz"
    path.write_bytes(gzip.compress(b""))
    assert_refused(
        fleet.run("load", path, "-t", table, "--no-header"),
        2,
        f"{path} is empty: it has no records",
    )
    message = "standard input is empty: it has no header and no records"
    assert_refused(fleet.run("load", "-", "-t", table, stdin=b""), 2, message)
    assert_refused(fleet.run("lookup", "-t", table, "--keys", "-", stdin=b""), 2, message)


def test_a_compressed_standard_input(fleet: PlannedRinghaul, table: str) -> None:
    finished = fleet.run("load", "-", "-t", table, stdin=gzip.compress(GOOD))
    message = "standard input is compressed by gzip: unpack it in the pipe (gzip -dc FILE | "
    assert_refused(finished, 2, f"{message}ringhaul ...)")


def test_standard_input_beside_other_sources(fleet: PlannedRinghaul, table: str) -> None:
    message = "- (standard input) cannot be given together with other sources"
    assert_refused(fleet.run("load", "-", "a.csv", "-t", table, stdin=GOOD), 2, message)
    assert_refused(fleet.run("load", "-", "-", "-t", table, stdin=GOOD), 2, message)


HEADERS = {
    "no column of the table": (
        b"x,y,z\n1,a,1\n",
        "{path}: the header names no column of {table} (it reads x, y, z; the table has "
        "id, name, total). If the file has no header, give --no-header and the names of its fields "
        "with --columns; without them its fields fill the table's columns in this order",
    ),
    "an unknown column": (
        b"id,name,totl\n1,a,1\n",
        "{path}: field 'totl' has no column 'totl' in {table}. Leave it out with "
        "--skip-columns totl, or name its column with --mapping totl=COLUMN; "
        "did you mean 'total'?",
    ),
    "no primary key": (
        b"name,total\na,1\n",
        "{path}: no field for primary key column 'id' of {table}; name one with --mapping FIELD=id",
    ),
    "a name twice": (
        b"id,name,name\n1,a,b\n",
        "{path} header: 'name' names 2 fields (2, 3); make the names differ, "
        "or name all fields by --columns, with --no-header if the first record is data",
    ),
    "no name": (
        b"id,,total\n1,a,1\n",
        "{path} header: field 2 of 3 has no name; name it, "
        "or name all fields by --columns, with --no-header if the first record is data",
    ),
    "another delimiter": (
        b"id;name;total\n1;a;1\n",
        "{path}: the header is one field, 'id;name;total'; give --delimiter ';' if that stands "
        "between its fields",
    ),
    "an archive without its suffix": (
        gzip.compress(b"id,name,total\n1,a,1\n" * 9),
        "{path} is compressed by gzip: give it a name that ends in .gz, or unpack it",
    ),
    "another encoding": (
        "id,größe,total\n".encode("latin-1"),
        '{path} header: field 2 is not valid utf-8; --encoding cp1252 reads it as "größe"',
    ),
    "UTF-16": (
        "id,name,total\n".encode("utf-16"),
        "{path} holds NUL bytes in its header, as UTF-16 text does; give its encoding, "
        "for example --encoding utf-16",
    ),
    "an open quote": (
        b'"id,name,total\n1,a,1\n',
        "{path} has no readable header: line 1: the quote that opens at byte 1 of the line is not "
        "closed within 16,777,216 bytes or before the end of the input; close it, or double "
        "it if it belongs to the value, or give another --quote",
    ),
}


@pytest.mark.parametrize(("content", "message"), HEADERS.values(), ids=HEADERS)
def test_a_header_that_cannot_be_used(
    fleet: PlannedRinghaul, table: str, content: bytes, message: str
) -> None:
    path = fleet.cwd / "orders.csv"
    path.write_bytes(content)
    finished = fleet.run("load", path, "-t", table)
    assert_refused(finished, 2, message.format(path=path, table=table))


def test_a_header_of_100_megabytes(fleet: PlannedRinghaul, table: str) -> None:
    path = fleet.cwd / "orders.csv"
    write_long(path, b"", b",name,total\n1,a,1\n")
    finished = fleet.run("load", path, "-t", table)
    assert_refused(
        finished,
        2,
        f"{path} has no readable header: line 1: the record is longer than 16,777,216 bytes, "
        "the most that is read; shorten it, or check that --delimiter and --quote fit the file",
    )


def write_long(path: Path, before: bytes, after: bytes) -> None:
    """Write 100 MB of x between two texts."""
    with path.open("wb") as file:
        file.write(before)
        for _ in range(100):
            file.write(b"x" * 10**6)
        file.write(after)
