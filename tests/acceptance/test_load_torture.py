"""One difficult file: cut anywhere, with any line end, any compression and either strategy."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import random
from collections.abc import Sequence

import pyarrow as pa
import pytest
from cassandra.cluster import Session

from tests.acceptance.command import Ringhaul
from tests.acceptance.oracle import assert_report, assert_table, create_table, write_times

#: id, a, b: None is an unquoted empty field, "" a quoted one.
Record = tuple[int, str | None, str | None]

COLUMNS = "id int PRIMARY KEY, a text, b text"


def torture_records() -> list[Record]:
    """Return records whose quotes, line ends and sizes are hard to split."""
    pieces = (
        *('"', '""', ",", "\n", "\r\n", "\r", "\n\n", '",', ',"', '"\n"', "\\", "\\n", "'", ";"),
        *("#", " ", "\t", "ř", "漢字", "👩‍👩‍👧", "\u2028", "\x85", "\ufeff", "x", "12,3", "id,a,b"),
    )
    dice = random.Random(2)
    records: list[Record] = [
        (0, None, None),
        (1, "", ""),
        (2, None, ""),
        (3, '"', '"' * 41),
        (4, "\n", "\r\n\r\n"),
        (5, 'says "hi"\nand goes', "0,0,0\n1,1,1\n"),
        # Longer than any of the unit sizes, and full of text that looks like records.
        (6, "6,x,y\n" * 20_000, "end"),
        (7, "\n" * 70_000, '"\n"' * 5_000),
    ]
    for number in range(len(records), 200):
        a, b = ("".join(dice.choices(pieces, k=dice.choice((0, 1, 3, 20)))) for _ in "ab")
        records.append((number, a or None, b))
    return records


def write_csv(records: Sequence[Record], line_end: str, *, final: bool = True) -> bytes:
    """Return RFC 4180 text of the records under a header; every non-null text is quoted."""

    def cell(text: str | None) -> str:
        return "" if text is None else '"' + text.replace('"', '""') + '"'

    lines = ["id,a,b", *(f"{number},{cell(a)},{cell(b)}" for number, a, b in records)]
    return (line_end.join(lines) + (line_end if final else "")).encode()


def count_units(records: Sequence[Record], line_end: str, unit_bytes: int) -> int:
    """Return the number of units, if a unit ends with the record that brings it to `unit_bytes`.

    The line end of the last record does not count towards it.
    """
    units = size_bytes = 0
    for record in records:
        size_bytes += len(write_csv([record], line_end)) - len(write_csv([], line_end))
        if size_bytes - len(line_end) >= unit_bytes:
            units, size_bytes = units + 1, 0
    return units + (size_bytes > 0)


def test_python_reads_the_torture_file_as_its_records() -> None:
    """Python's csv module, which has no nulls, reads the same records."""
    for line_end in ("\n", "\r\n", "\r"):
        text = write_csv(torture_records(), line_end).decode()
        header, *rows = csv.reader(io.StringIO(text, newline=""), strict=True)
        assert header == ["id", "a", "b"]
        assert rows == [[str(number), a or "", b or ""] for number, a, b in torture_records()]


@pytest.mark.parametrize(
    ("unit_bytes", "line_end", "strategy"),
    [
        (1, "\n", "pipeline"),
        (1, "\r", "single"),
        (7, "\r\n", "token-batch"),
        (7, "\r", "pipeline"),
        (65_536, "\n", "single"),
        (65_536, "\r\n", "pipeline"),
        (65_536, "\r", "single"),
    ],
)
def test_records_survive_any_cut(
    fleet: Ringhaul,
    cassandra_session: Session,
    keyspace: str,
    unit_bytes: int,
    line_end: str,
    strategy: str,
) -> None:
    # Given the torture file with one kind of line end
    records = torture_records()
    (fleet.cwd / "torture.csv").write_bytes(write_csv(records, line_end))
    table = create_table(cassandra_session, keyspace, COLUMNS)

    # When it is loaded in units of this size
    done = fleet.run("load", "torture.csv", "-t", table, "--json", "--unit-size", unit_bytes,
                     "--strategy", strategy)  # fmt: skip

    # Then the number of units matches that size
    summary = assert_report(done, rows=len(records))
    assert summary["units"] == count_units(records, line_end, unit_bytes)
    # and every value of every record is in the table
    assert_table(cassandra_session, table, "id, a, b", records)
    # and its write time is that of its place in the file
    base_us = summary["first_timestamp_us"]
    expected_us = {n: base_us + n for n, a, b in records if b is not None}
    times = write_times(cassandra_session, table, "id", "b")
    assert {n: t for n, t in times.items() if t is not None} == expected_us


#: Options that an unload and a load share, and those of the unload alone.
SETS = [
    (("--empty-word", "EMPTY", "--comment", "#", "--encoding", "utf-16"), ("--line-end", "crlf")),
    (("-d", "||", "--quote", "'", "--null", "x", "--empty-word", ","), ("--quote-all",)),
    (("--escape", "\\", "--encoding", "gb18030", "--comment", "x", "--null", "12"), ()),
]


@pytest.mark.parametrize(("both", "writing"), SETS)
def test_records_survive_each_set_of_options(
    fleet: Ringhaul,
    cassandra_session: Session,
    keyspace: str,
    both: Sequence[str],
    writing: Sequence[str],
) -> None:
    # Given the records in a table
    records = torture_records()
    (fleet.cwd / "torture.csv").write_bytes(write_csv(records, "\n"))
    table = create_table(cassandra_session, keyspace, COLUMNS)
    assert fleet.run("load", "torture.csv", "-t", table).code == 0
    # When they are unloaded with the options, and loaded with the same ones in small units
    assert fleet.run("unload", "-t", table, "-o", "out.csv", *both, *writing).code == 0
    again = create_table(cassandra_session, keyspace, COLUMNS, "again")
    done = fleet.run("load", "out.csv", "-t", again, "--json", *both, "--allow-nul",
                     "--unit-size", 7)  # fmt: skip
    # Then each value is the same
    assert_report(done, rows=len(records))
    assert_table(cassandra_session, again, "id, a, b", records)


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("unit_size", ["1", "64KiB"])
def test_a_byte_order_mark_and_a_missing_last_line_end_are_ignored(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str, line_end: str, unit_size: str
) -> None:
    # Given a file that begins with a mark and stops in the middle of its last line
    records = [(1, "one", None), (2, "", "two\nlines"), (3, "three", '"end"'), (4, "x", None)]
    text = b"\xef\xbb\xbf" + write_csv(records, line_end, final=False)
    (fleet.cwd / "bare.csv").write_bytes(text)
    table = create_table(cassandra_session, keyspace, COLUMNS)

    # When it is loaded
    done = fleet.run("load", "bare.csv", "-t", table, "--json", "--unit-size", unit_size)

    # Then the first name has no mark, and the last record is in the table
    assert_report(done, rows=4)
    assert_table(cassandra_session, table, "id, a, b", records)


def _zstd(data: bytes) -> bytes:
    return pa.Codec("zstd").compress(data, asbytes=True)


COMPRESS = {".gz": gzip.compress, ".zst": _zstd, ".bz2": bz2.compress, ".xz": lzma.compress}


def test_files_plain_and_compressed_load_together_in_their_order(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str
) -> None:
    # Given the records distributed over five files: one plain, one for each compression
    records = torture_records()
    shares = [records[0:60], records[60:100], records[100:101], records[101:170], records[170:]]
    names = []
    for share, suffix in zip(shares, [".gz", "", ".zst", ".bz2", ".xz"], strict=True):
        names.append(f"part{len(names)}.csv{suffix}")
        data = write_csv(share, "\n", final=len(share) % 2 == 0)
        (fleet.cwd / names[-1]).write_bytes(COMPRESS.get(suffix, bytes)(data))
    table = create_table(cassandra_session, keyspace, COLUMNS)

    # When one command loads them, the plain one in small units
    done = fleet.run("load", *names, "-t", table, "--json", "--unit-size", "1")

    # Then each source is reported with its counts
    summary = assert_report(done, rows=len(records))
    assert [source["path"] for source in summary["sources"]] == [
        str(fleet.cwd / name) for name in names
    ]
    assert [source["written"] for source in summary["sources"]] == list(map(len, shares))
    assert [source["units"] for source in summary["sources"]] == [1, 40, 1, 1, 1]
    # and the table holds all, with timestamps that continue from file to file
    assert_table(cassandra_session, table, "id, a, b", records)
    times = write_times(cassandra_session, table, "id", "b")
    assert {n: t for n, t in times.items() if t is not None} == {
        n: summary["first_timestamp_us"] + n for n, a, b in records if b is not None
    }


@pytest.mark.parametrize("suffix", COMPRESS)
def test_a_large_compressed_file_is_one_unit(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str, suffix: str
) -> None:
    # Given a compressed file that is larger than a block of the reader when unpacked
    records = torture_records()
    data = write_csv(records, "\r\n")
    (fleet.cwd / f"large.csv{suffix}").write_bytes(COMPRESS[suffix](data))
    table = create_table(cassandra_session, keyspace, COLUMNS)

    # When it is loaded with units far smaller than the file
    done = fleet.run("load", f"large.csv{suffix}", "-t", table, "--json", "--unit-size", "1KiB")

    # Then it is still one unit, and loaded completely
    assert assert_report(done, rows=len(records))["units"] == 1
    assert_table(cassandra_session, table, "id, a, b", records)


@pytest.mark.parametrize("strategy", ["pipeline", "token-batch"])
def test_embedded_workers_load_the_same_rows(
    embedded: Ringhaul, cassandra_session: Session, keyspace: str, strategy: str
) -> None:
    # Given a broker that is not running, and the torture file
    records = torture_records()
    (embedded.cwd / "torture.csv").write_bytes(write_csv(records, "\n"))
    table = create_table(cassandra_session, keyspace, COLUMNS)

    # When three embedded processes load it in small units
    done = embedded.run("load", "torture.csv", "-t", table, "--json", "--unit-size", "1KiB",
                        "-c", 3, "--strategy", strategy, "--broker", "none",
                        RINGHAUL_BROKER_URL="redis://127.0.0.1:1/0")  # fmt: skip

    # Then the table holds all of it
    assert_report(done, rows=len(records))
    assert_table(cassandra_session, table, "id, a, b", records)


def test_an_escape_character_makes_the_next_one_ordinary(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str
) -> None:
    # Given a file with backslash escapes in and outside quotes, cut at every record
    rows = [
        (r"1,say \"hi\",x", ('say "hi"', "x")),
        (r'2,"say \"hi\", and","a\\"', ('say "hi", and', "a\\")),
        (r"3,comma\, here,\\", ("comma, here", "\\")),
        ('4,"line\none\\"\n","2"', ('line\none"\n', "2")),
        ('5,line\\\nout of quotes,""', ("line\nout of quotes", "")),
        (r'6,"both ""ways\"",\,', ('both "ways"', ",")),
        (r"7,\N,", ("N", None)),
    ]
    text = "id,a,b\n" + "\n".join(line for line, _ in rows) + "\n"
    (fleet.cwd / "escapes.csv").write_text(text, newline="")
    # (Python's csv module reads it the same way)
    _, *read = csv.reader(io.StringIO(text, newline=""), escapechar="\\", strict=True)
    expected = [(number, *values) for number, (_, values) in enumerate(rows, start=1)]
    assert read == [[str(number), a, b or ""] for number, a, b in expected]
    table = create_table(cassandra_session, keyspace, COLUMNS)

    # When it is loaded
    done = fleet.run("load", "escapes.csv", "-t", table, "--json", "--escape", "\\",
                     "--unit-size", "1")  # fmt: skip

    # Then the escaped characters are taken literally
    assert_report(done, rows=len(rows))
    assert_table(cassandra_session, table, "id, a, b", expected)


def test_quotes_inside_fields_are_ordinary_characters(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str
) -> None:
    # Given quotes that neither open nor close a field, in units of one record
    text = 'id,a,b\n1,5" pipe,it"s\n2,x"y"z,"in"side\n3,"a""b"c"d,""\n4,last," x "\n'
    (fleet.cwd / "stray.csv").write_text(text)
    table = create_table(cassandra_session, keyspace, COLUMNS)

    # When it is loaded
    done = fleet.run("load", "stray.csv", "-t", table, "--json", "--unit-size", "1")

    # Then no record contains the next one
    assert_report(done, rows=4)
    expected = [(1, '5" pipe', 'it"s'), (2, 'x"y"z', "inside"), (3, 'a"bc"d', ""),
                (4, "last", " x ")]  # fmt: skip
    _, *read = csv.reader(io.StringIO(text))
    assert read == [[str(number), a, b] for number, a, b in expected]
    assert_table(cassandra_session, table, "id, a, b", expected)


def test_blank_lines_are_skipped_and_a_lone_empty_string_is_a_record(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str
) -> None:
    # Given a file of one field with blank lines, and a line with only a quoted empty string
    table = create_table(cassandra_session, keyspace, "n text, k text, PRIMARY KEY (n, k)")
    (fleet.cwd / "gaps.csv").write_text('\n\nn,k\r\n\r\n\na,""\n\n\nb,x\n\n')

    # When it is loaded in units of one record
    done = fleet.run("load", "gaps.csv", "-t", table, "--json", "--unit-size", "1")

    # Then the blank lines are not counted
    assert_report(done, rows=2)
    assert_table(cassandra_session, table, "n, k", [("a", ""), ("b", "x")])
