"""The result of a query: as a table, CSV, JSON or Parquet."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import threading
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from producer.report.result_table import ROWS_SHOWN, print_result
from ringhaul.cql.types import CqlType
from ringhaul.errors import OutputUnusable


def types(*names: str) -> list[CqlType]:
    return [CqlType(name) for name in names]


RESULT = pa.table(
    {
        "region": ["north", None, 'a "b", c'],
        "count": [3, 20, 1],
        "sum": [Decimal("1.50"), None, Decimal("-2.00")],
        "big": pa.array([Decimal(2**64), None, Decimal(-1)], pa.decimal128(38, 0)),
        "key": pa.array([b"\x01\xff", b"", None], pa.binary()),
        "avg": [0.1, float("nan"), 1e300],
    }
)
TYPES = types("text", "bigint", "decimal", "varint", "blob", "double")

#: CQL type -> a value in its Arrow form, its text, and its JSON.
SPELT = {
    "uuid": (bytes(range(16)), "00010203-0405-0607-0809-0a0b0c0d0e0f", None),
    "timeuuid": (bytes(range(16)), "00010203-0405-0607-0809-0a0b0c0d0e0f", None),
    "time": (1, "00:00:00.000000001", None),
    "timestamp": (253_402_300_800_000, "+10000-01-01T00:00:00.000Z", None),
    "date": (-(2**31), "-5877641-06-23", None),
    "float": (0.1, "0.1", 0.1),
    "double": (float("-inf"), "-Infinity", None),
    "boolean": (True, "true", True),
    "counter": (-3, "-3", -3),
    "decimal": ("1E+999", "1E+999", None),  # no decimal type of Arrow holds it
}


def test_rows_wider_than_the_terminal_have_a_line_for_each_value(
    capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = RESULT.select(["region", "count", "key"]).slice(0, 2)
    names = types("text", "bigint", "blob")

    def printed(columns: int, *, terminal: bool = True, vertical: bool = True) -> str:
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setattr("sys.stdout.isatty", lambda: terminal)
        print_result(shown, names, "table", None, vertical=vertical)
        return capsysbinary.readouterr().out.decode()

    wide = printed(23)
    assert wide.splitlines() == [
        " region  count  key",
        " ------  -----  ------",
        " north       3  0x01ff",
        " null       20  0x",
    ]
    assert printed(10, terminal=False) == printed(10, vertical=False) == wide
    assert printed(21) == (
        " row 1\n  region  north\n  count   3\n  key     0x01ff\n"
        " row 2\n  region  null\n  count   20\n  key     0x\n"
    )


def test_a_table_aligns_numbers_to_the_right(capsysbinary) -> None:  # type: ignore[no-untyped-def]
    print_result(RESULT.select(["region", "count", "sum"]), TYPES[:3], "table", None)
    assert capsysbinary.readouterr().out.decode() == (
        " region    count    sum\n"
        " --------  -----  -----\n"
        " north         3   1.50\n"
        " null         20   null\n"
        ' a "b", c      1  -2.00\n'
    )


def test_a_table_shows_null_and_empty_text_differently(capsysbinary) -> None:  # type: ignore[no-untyped-def]
    table = pa.table({"id": ["", None], "n": pa.array([None, 1], pa.int64())})
    print_result(table, types("text", "bigint"), "table", None)
    assert capsysbinary.readouterr().out.decode() == (
        " id       n\n ----  ----\n       null\n null     1\n"
    )


def test_csv_is_the_default_without_a_terminal(capsysbinary) -> None:  # type: ignore[no-untyped-def]
    print_result(RESULT, TYPES, "auto", None)
    rows = list(csv.reader(io.StringIO(capsysbinary.readouterr().out.decode())))
    assert rows == [
        ["region", "count", "sum", "big", "key", "avg"],
        ["north", "3", "1.50", "18446744073709551616", "0x01ff", "0.1"],
        ["", "20", "", "", "0x", "NaN"],
        ['a "b", c', "1", "-2.00", "-1", "", "1e+300"],
    ]


def test_csv_writes_null_and_empty_text_differently(capsysbinary) -> None:  # type: ignore[no-untyped-def]
    table = pa.table({"region": ["", None, " a"], 'a "b"': [None, "", "x,y"]})
    print_result(table, types("text", "text"), "csv", None)
    out = capsysbinary.readouterr().out.decode()
    assert out == 'region,"a ""b"""\n"",\n,""\n" a","x,y"\n'
    print_result(table.select(["region"]), types("text"), "csv", None)
    assert capsysbinary.readouterr().out.decode() == 'region\n""\n\n" a"\n'


def no_constant(text: str) -> None:
    raise AssertionError(f"{text} is no JSON")


@pytest.mark.parametrize("name", ["r.json", "r.jsonl", "r.NDJSON"])
def test_json_has_a_line_for_each_row(tmp_path: Path, name: str) -> None:
    print_result(RESULT, TYPES, "auto", str(tmp_path / name))
    lines = (tmp_path / name).read_text().splitlines()
    rows = [json.loads(line, parse_constant=no_constant) for line in lines]
    first = {"region": "north", "count": 3, "sum": "1.50", "big": 2**64, "key": "0x01ff"}
    assert rows[0] == first | {"avg": 0.1}
    assert rows[1] == dict.fromkeys(first) | {"count": 20, "key": "0x", "avg": "NaN"}
    assert (rows[2]["region"], rows[2]["big"]) == ('a "b", c', -1)


def test_whole_numbers_are_json_numbers_however_long(tmp_path: Path) -> None:
    texts = ["9" * 80, "-1", None]
    for column in (texts, [None if text is None else int(text) % 2**63 for text in texts]):
        print_result(pa.table({"n": column}), types("varint"), "json", str(tmp_path / "r"))
        lines = (tmp_path / "r").read_text().splitlines()
        found = [json.loads(line)["n"] for line in lines]
        assert found == [None if value is None else int(value) for value in column]


@pytest.mark.parametrize("name", SPELT)
def test_values_of_every_type_are_spelled_as_by_an_unload(name: str, tmp_path: Path) -> None:
    value, text, plain = SPELT[name]
    (cql_type,) = types(name)
    table = pa.table({'a "key"': pa.array([value, None], _raw(cql_type)).cast(cql_type.arrow())})
    path = tmp_path / "r"
    print_result(table, [cql_type], "csv", str(path))
    assert list(csv.reader(io.StringIO(path.read_text()))) == [['a "key"'], [text], []]
    print_result(table, [cql_type], "json", str(path))
    lines = path.read_text().splitlines()
    found = [json.loads(line, parse_constant=no_constant) for line in lines]
    assert found == [{'a "key"': text if plain is None else plain}, {'a "key"': None}]
    print_result(table, [cql_type], "table", str(path))
    assert path.read_text().split("\n")[2].strip() == text


def _raw(cql_type: CqlType) -> pa.DataType:
    """Build the array by hand: Python has no values for some of these."""
    of = {"date": pa.int32(), "time": pa.int64(), "timestamp": pa.int64()}
    return of.get(cql_type.name, cql_type.arrow())


@pytest.mark.parametrize("form", ["csv", "json", "table", "parquet"])
@pytest.mark.parametrize("chunked", [False, True])
def test_a_result_without_rows(form: str, chunked: bool, tmp_path: Path) -> None:
    table = RESULT.slice(1, 0)
    if chunked:
        table = pa.table([pa.chunked_array([], f.type) for f in RESULT.schema], RESULT.schema.names)
    print_result(table, TYPES, form, str(tmp_path / "r"))
    assert ((tmp_path / "r").read_bytes() == b"") == (form == "json")


def test_parquet_by_suffix_keeps_types(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    print_result(RESULT, TYPES, "auto", str(path))
    assert pq.read_table(path).schema.types == RESULT.schema.types
    assert [p.name for p in tmp_path.iterdir()] == ["r.parquet"], "no temporary file is left"


@pytest.mark.parametrize("rows", [ROWS_SHOWN, ROWS_SHOWN + 7])
def test_a_long_table_on_a_terminal_says_what_it_leaves_out(  # type: ignore[no-untyped-def]
    rows: int, capsysbinary, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    print_result(pa.table({"n": range(rows)}), types("bigint"), "table", None)
    is_noted = "... 7 more rows (--format csv shows all)" in capsysbinary.readouterr().out.decode()
    assert is_noted == (rows > ROWS_SHOWN)


def test_a_long_table_in_a_file_or_a_pipe_is_whole(  # type: ignore[no-untyped-def]
    tmp_path: Path, capsysbinary, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = pa.table({"n": range(ROWS_SHOWN + 7)})
    print_result(long, types("bigint"), "table", None)
    piped = capsysbinary.readouterr().out
    assert len(piped.splitlines()) == 2 + ROWS_SHOWN + 7
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    print_result(long, types("bigint"), "table", str(tmp_path / "r.txt"))
    assert (tmp_path / "r.txt").read_bytes() == piped


N, N_TYPES = pa.table({"n": [1]}), types("bigint")


def test_a_file_is_on_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, synced = tmp_path / "r.csv", []
    path.write_text("old\n")

    def fsync(descriptor: int) -> None:
        synced.append(os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")))
        assert len(synced) > 1 or path.read_text() == "old\n"

    monkeypatch.setattr(os, "fsync", fsync)
    print_result(N, N_TYPES, "csv", str(path))
    assert re.fullmatch(r"\.r\.csv\.[0-9a-f]{8}\.tmp", synced[0])
    assert synced[1:] == [tmp_path.name]
    assert path.read_text() == "n\n1\n"


def test_two_writers_of_one_file_do_not_collide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Like `query` and `status -f` at the job's end, in two containers with equal process ids."""
    path, fsync, others = tmp_path / "r.csv", os.fsync, [pa.table({"n": [2]})]

    def meanwhile(descriptor: int) -> None:
        fsync(descriptor)
        if others:
            print_result(others.pop(), N_TYPES, "csv", str(path))
            assert path.read_text() == "n\n2\n"

    monkeypatch.setattr(os, "fsync", meanwhile)
    print_result(N, N_TYPES, "csv", str(path))
    assert path.read_text() == "n\n1\n"
    assert [there.name for there in tmp_path.iterdir()] == ["r.csv"]


@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_a_link(there: bool, tmp_path: Path) -> None:
    target, link = tmp_path / "there" / "r.csv", tmp_path / "latest.csv"
    target.parent.mkdir()
    if there:
        target.write_text("old\n")
    link.symlink_to("there/r.csv")
    print_result(N, N_TYPES, "auto", str(link))
    assert link.is_symlink()
    assert target.read_text() == "n\n1\n"
    assert [path.name for path in target.parent.iterdir()] == ["r.csv"]


def test_a_pipe_is_written_and_stays_a_pipe(tmp_path: Path) -> None:
    path, read = tmp_path / "pipe", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: read.append(path.read_text()), daemon=True)
    reader.start()
    print_result(N, N_TYPES, "csv", str(path))
    reader.join(10)
    assert read == ["n\n1\n"]
    assert path.is_fifo()


def test_a_pipe_of_the_shell_is_written() -> None:
    """With `-o >(cmd)` the shell gives a name in /dev/fd that resolves to no path."""
    reading, writing = os.pipe()
    print_result(N, N_TYPES, "csv", f"/dev/fd/{writing}")
    os.close(writing)
    with open(reading) as file:
        assert file.read() == "n\n1\n"


def test_a_pipe_whose_reader_goes_away_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    many = pa.table({"n": range(100_000)})  # more than a pipe holds
    reader = threading.Thread(target=lambda: path.open("rb", buffering=0).close(), daemon=True)
    reader.start()
    with pytest.raises(OutputUnusable, match="Broken pipe"):
        print_result(many, N_TYPES, "csv", str(path))
    reader.join(10)


def test_a_device_is_written_in_place(tmp_path: Path) -> None:
    link = tmp_path / "nowhere"  # a replaced file would be this link, not the device
    link.symlink_to("/dev/null")
    print_result(N, N_TYPES, "csv", str(link))
    assert link.is_char_device()
    link.unlink()
    link.symlink_to("/dev/full")
    with pytest.raises(OutputUnusable, match="No space left"):
        print_result(N, N_TYPES, "csv", str(link))
    assert link.is_char_device()


def test_a_dash_is_standard_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.chdir(tmp_path)
    print_result(N, N_TYPES, "auto", "-")
    assert capsysbinary.readouterr().out == b"n\n1\n"
    assert list(tmp_path.iterdir()) == []
