"""Hints about written files: what they lead to loads back value by value."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from ringhaul.cql.types import CqlType
from ringhaul.errors import OutputUnusable, UsageError
from ringhaul.formats.write import OutputFormat, refuse_blank_lines
from ringhaul.formats.write.writer import open_writer
from tests.loads import table_schema
from tests.unit.hints.follow import options_named
from tests.unit.hints.load import load

NOTES = table_schema({"id": "int", "note": "text"}, ["id"])
#: Notes that a format can confuse: nulls, empty texts, and the texts that stand for them.
HARD = [None, "", "NULL", "\\N", "N", "a,b", 'say "x"', "5 €", "two\nlines", " x "]


class Case(NamedTuple):
    """Options that are refused, and what the message names, as options of the format."""

    given: dict[str, Any]
    follow: dict[str, Any]
    read: list[str]  #: options of the load that reads the file
    notes: list[str | None] = HARD


MAKERS = {
    f"ringhaul/formats/write/{maker}"
    for maker in (
        "csv.py:_marked",
        "lines.py:_encoded",
        "options.py:_check_characters",
        "options.py:_check_unquoted",
        "options.py:refuse_blank_lines",
    )
}
CASES = [
    Case({"quote": ""}, {"quote": "", "null": "\\N", "escape": "\\"},
         ["--quote", "", "--null", "\\N", "--escape", "\\"]),
    Case({"quote": "", "empty_word": "E", "null": "-"},
         {"empty_word": "E", "quote": '"', "null": "-"}, ["--empty-word", "E", "--null", "-"]),
    Case({"quote": "", "quote_all": True, "null": "-"}, {"quote": '"', "quote_all": True},
         []),
    Case({"encoding": "latin-1"}, {"encoding": "utf-8"}, []),
    Case({"encoding": "latin-1", "kind": "jsonl"}, {"encoding": "utf-8", "kind": "jsonl"}, []),
    Case({"quote": "", "null": "-"}, {"quote": "", "null": "-", "escape": "\\"},
         ["--quote", "", "--null", "-", "--escape", "\\"], ["a,b", None, "-", "x"]),
]  # fmt: skip


def write(path: Path, options: dict[str, Any], notes: list[str | None]) -> None:
    fmt = OutputFormat(**options)
    with path.open("wb") as stream:
        writer = open_writer(fmt, stream, ["id", "note"], [CqlType("int"), CqlType("text")])
        ids = pa.array(range(len(notes)), pa.int32())
        writer.write(
            pa.RecordBatch.from_arrays([ids, pa.array(notes, pa.string())], ["id", "note"])
        )
        writer.close()


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.given))
def test_what_a_hint_writes_loads_back(case: Case, tmp_path: Path) -> None:
    path = tmp_path / ("x.jsonl" if case.given.get("kind") == "jsonl" else "x.csv")
    with pytest.raises((UsageError, OutputUnusable)) as refusal:
        write(path, case.given, case.notes)
    named = {f"--{name.replace('_', '-')}" for name in case.follow}
    assert options_named(str(refusal.value)) & named, refusal.value

    write(path, case.follow, case.notes)
    found = load(path, NOTES, *case.read)
    assert (found.refused, found.rejects) == ("", ())
    assert [row.get("note") for row in found.rows] == case.notes


def test_a_column_alone_gets_a_word_for_null(tmp_path: Path) -> None:
    table = table_schema({"note": "text"}, ["note"])
    with pytest.raises(UsageError) as refusal:
        refuse_blank_lines(OutputFormat(), ["note"])
    assert "give --null NULL" in str(refusal.value)
    fmt = OutputFormat(null="NULL")
    refuse_blank_lines(fmt, ["note"])
    path = tmp_path / "x.csv"
    with path.open("wb") as stream:
        writer = open_writer(fmt, stream, ["note"], [CqlType("text")])
        writer.write(pa.RecordBatch.from_pydict({"note": [None, "NULL", "x"]}))
        writer.close()
    found = load(path, table, "--null", "NULL")
    # A null is no key, and the text NULL is none.
    assert [row.get("note") for row in found.rows] == ["NULL", "x"]
    assert len(found.rejects) == 1 and found.rejects[0].startswith("null in the primary key")
