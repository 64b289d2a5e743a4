"""Paths of --mapping into the objects of JSON."""

from __future__ import annotations

from pathlib import Path

import pytest

from producer.request.load import LoadDraft
from ringhaul.errors import UsageError
from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.split import START
from ringhaul.mapping.language import parse_mapping
from ringhaul.records.job import LoadSource
from ringhaul.records.rejects import Reject
from ringhaul.records.rows import bound_values
from ringhaul.sources.find import find_sources
from tests.heads import plan_source, plan_sources, sample
from tests.loads import load_job, table_schema

TABLE = table_schema({"id": "int", "s": "text", "n.o": "text", "tags": "list<int>"}, ["id"])


def plan(folder: Path, text: str, mapping: str, dialect: CsvDialect) -> LoadSource:
    path = folder / "x.jsonl"
    path.write_text(text)
    parsed = parse_mapping(mapping)
    request = LoadDraft(keyspace="k", table="t", mapping=parsed, dialect=dialect)
    (file,) = find_sources([str(path)])
    source = plan_source(request, file, TABLE)
    assert LoadSource.from_json(source.to_json()) == source
    return source


def loaded(
    folder: Path, text: str, mapping: str, layout: str = "lines"
) -> tuple[list[dict[str, bytes | None]], list[Reject]]:
    """Return the rows of a file, and the records that are none."""
    dialect = CsvDialect(json_layout=layout)
    source = plan(folder, text, mapping, dialect)
    parts = sample(load_job(TABLE, source, dialect=dialect), source, START)
    rows = [
        dict(zip(source.columns, bound_values(encoded, row), strict=False))
        for part in parts
        for encoded in part.rows
        for row in range(len(encoded))
    ]
    return rows, [reject for part in parts for reject in part.rejects]


@pytest.mark.parametrize("mapping", ["id=id,user.s=s", "*=*,user.s=s", "id=id,user.s:s"])
@pytest.mark.parametrize("layout", ["lines", "documents", "commented"])
def test_a_path_leads_to_a_value_within_objects(tmp_path: Path, mapping: str, layout: str) -> None:
    text = (
        '{"id": 1, "user": {"s": "x", "t": [1]}}\n{"id": 2}\n{"user": null, "id": 3}\n'
        '{"id": 4, "user": {}}\n{"id": 5, "user": {"s": null}}\n{"id": 6, "user": "no"}\n'
        '{"id": 7, "user": [{"s": "x"}]}\n{"id": 8, "user": {"s": "y"}}\n'
    )
    rows, rejects = loaded(tmp_path, text, mapping, layout)
    found = [(int.from_bytes(row["id"] or b""), row["s"]) for row in rows]
    assert found == [(1, b"x"), (2, None), (3, None), (4, None), (5, None), (8, b"y")]
    # What is no object is no null
    reason = '"user" is not an object, so there is no user.s in it'
    assert [(one.line, one.column, one.reason) for one in rejects] == [
        (6, "user.s", reason), (7, "user.s", reason)
    ]  # fmt: skip


def test_a_path_may_be_deep_and_lead_to_any_value(tmp_path: Path) -> None:
    text = '{"a": {"b": {"id": 1, "tags": [5, 6], "s": {"t": 1}}}}\n{"a": {"b": {"id": 2}}}\n'
    rows, rejects = loaded(tmp_path, text, "a.b.id=id,a.b.tags=tags,a.b.s=s")
    assert [row["id"] for row in rows] == [b"\0\0\0\2"]
    assert [one.line for one in rejects] == [1]  # an object is not a text
    rows, rejects = loaded(tmp_path, text, "a.b.id=id,a.b.tags=tags")
    assert not rejects
    assert (rows[0]["tags"] or b"")[-4:] == b"\0\0\0\6"


def test_a_name_with_a_dot_is_a_name_first(tmp_path: Path) -> None:
    flat = '{"id": 1, "user.s": "flat", "user": {"s": "deep"}}\n{"id": 2, "user.s": null}\n'
    for mapping in ("id=id,user.s=s", 'id=id,"user.s"=s'):
        rows, _ = loaded(tmp_path, flat, mapping)
        assert [row["s"] for row in rows] == [b"flat", None]
    # In quotes it is nothing else, and so is a column with a dot
    deep = '{"id": 1, "user": {"s": "deep"}, "n": {"o": "deep"}}\n'
    rows, _ = loaded(tmp_path, deep, 'id=id,"user.s"=s')
    assert rows[0]["s"] is None
    source = plan(tmp_path, '{"id": 1}\n', "*=*", CsvDialect())
    assert source.paths == ()
    rows, _ = loaded(tmp_path, '{"id": 1, "n.o": "x", "n": {"s": "y"}}\n', "*=*,n.s=s")
    assert (rows[0]["n.o"], rows[0]["s"]) == (b"x", b"y")


@pytest.mark.parametrize(
    ("mapping", "meant"),
    [("id=id,user.a=s", "user.s"), ("id=id,user.deep.m=s", "user.deep.n"), ("*=*,usr.s=s", "user")],
)
def test_a_misspelt_path_is_refused(tmp_path: Path, mapping: str, meant: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"id": 1}\n{"id": 2, "user": {"s": "x", "deep": {"n": 1}}}\n')
    request = LoadDraft(keyspace="k", table="t", mapping=parse_mapping(mapping))
    with pytest.raises(UsageError, match=f"did you mean '{meant}'"):
        plan_sources(request, find_sources([str(path)]), TABLE)
