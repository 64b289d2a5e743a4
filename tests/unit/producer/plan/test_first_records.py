"""What a plan asks of the beginning of a file is asked of the first record that is loaded."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from producer.request.load import LoadDraft
from ringhaul.errors import UsageError
from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.header import SourceEmpty
from ringhaul.mapping.language import parse_mapping
from ringhaul.sources.find import find_sources
from tests.heads import dialect_warnings, plan_sources
from tests.unit.producer.plan.conftest import TABLE, Plan

POSITIONS = parse_mapping("0=id,1=n")
LIST = parse_mapping("id,n")
LENIENT = CsvDialect(allow_missing_fields=True)


@pytest.mark.parametrize("mapping", [POSITIONS, LIST])
@pytest.mark.parametrize(
    ("text", "options", "count"),
    [
        ("skip\n1,2\n3,4\n", {"skip_rows": 1}, 2),
        ("a,b,c\nskip\n1,2,3,4\n3,4\n", {"skip_rows": 2}, 4),
        ("# one\nskip\n# two\n1,2,3\n", {"skip_rows": 1, "dialect": CsvDialect(comment="#")}, 3),
        ('"not\nclosed\n1,2\n', {"skip_rows": 2}, 2),
        (f"{'x' * 100}\n" * 3000 + "1,2\n", {"skip_rows": 3000}, 2),
        # Records may be short: as many fields as the mapping names
        ("1\n1,2\n", {"dialect": LENIENT}, 2),
        ("skip\n1\n", {"dialect": LENIENT, "skip_rows": 1}, 2),
        ("1,2,3\n1\n", {"dialect": LENIENT}, 3),
        # No record is left, or none of this file
        ("skip\n", {"skip_rows": 1}, 2),
        ("skip\n", {"skip_rows": 9}, 2),
    ],
)
def test_fields_without_names_are_those_of_the_first_loaded_record(
    plan: Plan, tmp_path: Path, mapping: Any, text: str, options: dict[str, Any], count: int
) -> None:
    (tmp_path / "x.csv").write_text(text)
    with gzip.open(tmp_path / "y.csv.gz", "wb") as file:
        file.write(text.encode())
    sources = plan(header=False, mapping=mapping, **{"bounds_per_source": True, **options})
    assert [source.fields for source in sources] == [tuple(map(str, range(count)))] * 2
    assert sources[0].mapping == (("0", "id"), ("1", "n"))


def test_a_short_record_that_is_loaded_is_counted(plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("1,2\n1\n1,2\n")
    assert len(plan(header=False, mapping=POSITIONS)[0].fields) == 2
    with pytest.raises(UsageError, match="its first loaded record has 1 field, counted from 0"):
        plan(header=False, mapping=POSITIONS, skip_rows=1)


def test_records_are_skipped_over_all_files(plan: Plan, tmp_path: Path) -> None:
    # The skipped ones are all of a and b, and the first of c
    (tmp_path / "a.csv").write_text("x\nx\n")
    (tmp_path / "b.csv").write_text("x,y,z,z\nx\n")
    (tmp_path / "c.csv").write_text("x\n1,2\n")
    (tmp_path / "d.csv").write_text("1,2,3\nx\n")
    sources = plan(header=False, mapping=POSITIONS, skip_rows=5)
    assert [len(source.fields) for source in sources] == [2, 2, 2, 3]
    # Rows of Parquet count, too
    (tmp_path / "b.csv").unlink()
    pq.write_table(pa.table({"id": [1, 2], "n": [1, 2]}), tmp_path / "b.parquet")
    named = {"file_format": "auto", "mapping": parse_mapping("id=id,n=n")}
    (tmp_path / "a.csv").write_text("id,n\n1,2\n")
    (tmp_path / "c.csv").write_text("id,n\n1,2\n")
    (tmp_path / "d.csv").write_text("id,n\n1,2\n")
    assert [source.format for source in plan(skip_rows=4, **named)] == [
        *("csv", "parquet", "csv", "csv")
    ]
    (tmp_path / "b.parquet").unlink()
    for name, text in {"a": "x\nx\n", "b": "x\nx\n", "c": "x\n1,2\n", "d": "1,2,3\nx\n"}.items():
        (tmp_path / f"{name}.csv").write_text(text)
    with pytest.raises(UsageError, match=r"c\.csv: --mapping names field '1'"):
        plan(header=False, mapping=POSITIONS, skip_rows=4)
    # Each file may have its own
    sources = plan(header=False, mapping=POSITIONS, skip_rows=1, dialect=LENIENT,
                   bounds_per_source=True)  # fmt: skip
    assert [len(source.fields) for source in sources] == [2, 2, 2, 2]


def test_the_first_object_that_is_loaded_has_the_names(plan: Plan, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"version": 3}\n{"ID": 1, "N": 2}\n')
    with pytest.raises(UsageError, match="the first record names no column"):
        plan()
    (source,) = plan(skip_rows=1)
    assert {("ID", "id"), ("N", "n")} <= {*source.mapping}
    # Also what --mapping means by a name
    path.write_text('{"total_": 3}\n{"id": 1, "total": 2}\n')
    with pytest.raises(UsageError, match="the first record names no column"):
        plan(mapping=parse_mapping("id=id,totl=n"))
    with pytest.raises(UsageError, match=r"no field is named 'totl'.*did you mean 'total'"):
        plan(mapping=parse_mapping("id=id,totl=n"), skip_rows=1)
    assert plan(skip_rows=2)[0].fields == ("id", "n", "note")
    path.write_text("")
    with pytest.raises(SourceEmpty):
        plan(skip_rows=2)


def warnings_of(path: Path, request: LoadDraft) -> list[str]:
    """Return the warnings about a file."""
    files = find_sources([str(path)])
    sources = [source for source in plan_sources(request, files, TABLE) if source is not None]
    return dialect_warnings(request, sources, TABLE)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("id,note\n1,\\N\n2,x\n", {"skip_rows": 1}),
        ("id,note\n# 3,\\N\n2,x\n", {"dialect": CsvDialect(comment="#")}),
        ('1, "x"\n2,x\n', {"skip_rows": 1, "header": False, "mapping": LIST}),
    ],
)
def test_warnings_are_about_loaded_records(
    tmp_path: Path, text: str, options: dict[str, Any]
) -> None:
    path = tmp_path / "x.csv"
    path.write_text(text)
    request = LoadDraft(keyspace="shop", table="orders", **options)
    assert warnings_of(path, request) == []
    path.write_text(f"{text}3,\\N\n")
    (warning,) = warnings_of(path, request)
    assert r"some fields are \N" in warning
