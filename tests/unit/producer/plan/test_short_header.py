"""A header that lacks its first name: what the plan says, and that it is right when followed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from producer.request.load import LoadDraft
from ringhaul.cql.cells import Cells
from ringhaul.errors import UsageError
from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.split import Position
from ringhaul.mapping.language import parse_mapping
from ringhaul.records.job import LoadSource
from tests.heads import dialect_warnings, sample
from tests.loads import load_job
from tests.unit.producer.plan.conftest import TABLE, Plan

SPACES = CsvDialect(delimiter=" ")
LATIN = CsvDialect(delimiter="\t", quote=None, escape="\\", encoding="latin-1")


def said(plan: Plan, options: dict[str, Any]) -> str:
    """Return the refusal of a plan, or its warnings."""
    try:
        sources = plan(**options)
    except UsageError as error:
        return str(error)
    request = LoadDraft(keyspace="shop", table="orders", **options)
    return "".join(dialect_warnings(request, sources, TABLE))


def rows_of(source: LoadSource, dialect: CsvDialect, first: int) -> list[list[bytes]]:
    """Return the values of all rows, by column."""
    job = load_job(TABLE, source, dialect=dialect, ordinal_first=first)
    start = Position(source.start_offset_bytes, 0, source.start_line)
    (part,) = sample(job, source, start)
    assert not part.rejects
    (rows,) = part.rows
    return [values(column) for column in rows.columns[: len(source.columns)]]


def values(cells: Cells) -> list[bytes]:
    fixed = cells.fixed_values
    return cells.values.to_pylist() if fixed is None else [str(one).encode() for one in fixed]


@pytest.mark.parametrize(
    ("text", "options", "follow"),
    [
        # The key has no name
        ('"n","note"\n"1",7,"x"\n"2",8,"y"\n', {}, "--columns id,n,note"),
        ('"n" "note"\n"1" 7 "x y"\n', {"dialect": SPACES}, "--columns id,n,note"),
        ("n\tnote\n1\t7\t\xe9\n", {"dialect": LATIN}, "--columns id,n,note"),
        ("N,NOTE\n1,7,x\n", {}, "--columns id,N,NOTE"),
        ("# R\nn,note\nskip\n1,7,x\n", {"skip_rows": 1, "dialect": CsvDialect(comment="#")},
         "--columns id,n,note"),
        ("title\n\nn,note\n1,7,x\n", {"header_at": 3}, "--columns id,n,note"),
        # A number of the row, which no column takes
        ("id,n,note\nr1,1,7,x\nr2,2,8,y\n", {}, "--columns row,id,n,note --skip-columns row"),
        ("id,n,note\nr1,1,7,x\n", {"mapping": parse_mapping("id=id,note=note")},
         "--columns row,id,n,note --skip-columns row"),
    ],
)  # fmt: skip
def test_what_is_said_loads_each_value_into_its_column(
    plan: Plan, tmp_path: Path, text: str, options: dict[str, Any], follow: str
) -> None:
    dialect = options.get("dialect", CsvDialect())
    (tmp_path / "r.csv").write_text(text, encoding=dialect.encoding)
    words = said(plan, options)
    assert "If the first field has no name, as in files of R's write.table, give" in words
    assert f"give {follow};" in words
    found = re.findall(r"--([a-z-]+) ('[^']*'|\S+?)(?=[; ])", follow + " ")
    given = {name.replace("-", "_"): shlex.split(names)[0].split(",") for name, names in found}
    (source,) = plan(**options, **given)
    columns = dict(zip(source.columns, rows_of(source, dialect, options.get("skip_rows", 0)),
                       strict=True))  # fmt: skip
    assert columns["id"][0] == b"1"
    assert columns.get("n", [b"7"])[0] == b"7"
    assert columns["note"][0] in ("é".encode(), b"x", b"x y")
    # To leave out the last field, which would shift all values, is warned of, too
    dialect = CsvDialect(**{**dialect.to_json(), "allow_extra_fields": True})
    assert f"give {follow};" in said(plan, {**options, "dialect": dialect})


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("id,n,note\n1,7,x\n", {}),
        ("id,n,note\n1,7,x\n2,8,y,z\n", {}),
        ("id,n,note\n1,7,x,z\n2,8,y\n", {}),
        ("id,n,note\n1,7,x,y,z\n", {}),
        # A delimiter at the end of each line
        ("id,n,note\n1,7,x,\n2,8,y,\n", {}),
        ("1,7,x,z\n", {"header": False, "mapping": parse_mapping("0=id")}),
        ("id,n,note\n", {}),
        ("n,note\n", {}),
        ("n,note\n7,x\n", {}),
    ],
)
def test_nothing_is_said_of_other_files(
    plan: Plan, tmp_path: Path, text: str, options: dict[str, Any]
) -> None:
    (tmp_path / "r.csv").write_text(text)
    assert "has no name" not in said(plan, options)


def test_columns_name_a_field_more_only_if_the_header_has_the_others(
    plan: Plan, tmp_path: Path
) -> None:
    (tmp_path / "r.csv").write_text("n,note\n1,7,x\n")
    for columns in (["id", "note", "n"], ["n", "note", "id"], ["a", "id", "n", "note"]):
        with pytest.raises(UsageError, match=r"names \d fields, its header has 2: n, note"):
            plan(columns=columns)
