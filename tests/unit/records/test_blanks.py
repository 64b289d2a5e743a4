"""Fields that hold nothing, for every type: null, unless the empty text is a value of it."""

from __future__ import annotations

import pytest

from ringhaul.cql.text import ENCODERS
from ringhaul.formats.dialect import CsvDialect
from ringhaul.records.rows import RowEncoder
from tests.cases import each
from tests.loads import blocks, load_job, load_source, table_schema

TEXTS = ("ascii", "blob", "text", "varchar")
NESTED = ("list<int>", "set<text>", "map<text, int>", "tuple<int, text>", "vector<float, 2>")
OTHERS = [*sorted({*ENCODERS} - {*TEXTS}), *NESTED]
UNSET, EMPTY, REJECT = "null", b"", "reject"


def loaded(kind: str, field: bytes, nulls_of: str = "", **options: object) -> object:
    """What becomes of one field: its cell, `UNSET` or `REJECT`."""
    table = table_schema({"id": "int", "v": kind}, ["id"])
    job = load_job(table, load_source(["id", "v"]), dialect=CsvDialect(**options))  # type: ignore[arg-type]
    (block,) = blocks(b"1," + field + b"\n", job.dialect)
    rows, rejects, _ = RowEncoder(job, job.sources[0]).encode(block)
    if rejects:
        return REJECT
    (column,) = [found.columns[1] for found in rows]
    return UNSET if int(column.lengths[0]) < 0 else column.values[0].as_py()


@each("kind", OTHERS)
@each("field", [b"", b'""', b"   ", b'"  "', b"\t"])
@each("nulls", [("",), ("-",)])
def test_nothing_is_null_in_a_column_of_another_type(
    kind: str, field: bytes, nulls: tuple[str, ...]
) -> None:
    assert loaded(kind, field, null_strings=nulls) == UNSET


@pytest.mark.parametrize("kind", TEXTS)
def test_nothing_is_a_text_if_it_is_quoted_or_another_text_means_null(kind: str) -> None:
    assert loaded(kind, b"") == UNSET
    assert loaded(kind, b'""') == EMPTY
    assert loaded(kind, b"", null_strings=("-",)) == EMPTY
    if kind != "blob":
        assert loaded(kind, b"  ") == b"  "


@each("kind", [*TEXTS, *OTHERS])
def test_null_quoted_compares_quoted_fields_too(kind: str) -> None:
    assert loaded(kind, b'""', null_quoted=True) == UNSET
    assert loaded(kind, b'"NULL"', null_strings=("NULL",), null_quoted=True) == UNSET
    word = loaded(kind, b'"NULL"', null_strings=("NULL",))
    assert word == (b"NULL" if kind in ("ascii", "text", "varchar") else REJECT)


@each(
    ("trim", "field", "value"),
    [
        ("none", b" a ", b" a "),
        ("none", b' "a"', b' "a"'),
        ("text", b" a ", b"a"),
        ("text", b' "a" ', b"a"),
        ("text", b'" a "', b" a "),
        ("text", b"  ", UNSET),
        ("text", b'"  "', b"  "),
        ("text", b' "a, b"\t', b"a, b"),
        ("quoted", b'" a "', b"a"),
        ("quoted", b' " a, b\t" ', b"a, b"),
        ("quoted", b'"  "', b""),
    ],
)
def test_blanks_around_texts(trim: str, field: bytes, value: object) -> None:
    assert loaded("text", field, trim=trim) == value


def test_empty_texts_differ_by_column() -> None:
    table = table_schema({"id": "int", "a": "text", "b": "text", "n": "int"}, ["id"])
    text = b'1,,,\n2,"","",""\n3,x,y,4\n'
    for kept in ((), ("a",), ("a", "b")):
        job = load_job(table, load_source(["id", "a", "b", "n"]), empty_texts=kept)
        (block,) = blocks(text, job.dialect)
        (rows,), rejects, _ = RowEncoder(job, job.sources[0]).encode(block)
        lengths = [column.lengths.tolist() for column in rows.columns[1:4]]
        a, b = (0 if name in kept else -2 for name in ("a", "b"))
        assert lengths == [[a, 0, 1], [b, 0, 1], [-2, -2, 4]]
        assert rejects == []


def test_a_blank_write_time_or_ttl_is_none() -> None:
    table = table_schema({"id": "int"}, ["id"])
    source = load_source(["id", "w", "t"], mapping=[("id", "id")])
    for field in (b"", b'""', b"  "):
        job = load_job(table, source)
        timed = type(source)(**{**source.__dict__, "timestamp_field": "w", "ttl_field": "t"})
        (block,) = blocks(b"1," + field + b"," + field + b"\n", job.dialect)
        (rows,), rejects, _ = RowEncoder(job, timed).encode(block)
        assert rejects == []
        assert int(rows.columns[2].lengths[0]) == -2


def test_a_null_key_of_text_names_the_option() -> None:
    table = table_schema({"a": "text", "b": "text", "n": "int"}, ["a", "b"])
    job = load_job(table, load_source(["a", "b", "n"]))
    (block,) = blocks(b",x,1\n", job.dialect)
    _, (reject,), _ = RowEncoder(job, job.sources[0]).encode(block)
    assert "--empty a=text" in reject.reason
