"""Sources of a load: the names in their headers, and files without records among others."""

from __future__ import annotations

import errno
import gzip
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from producer.plan.dry_run import dry_run_text
from producer.plan.field_notes import case_notes, left_out_notes, shifted_times_notes
from producer.plan.sources import plan_sources, with_empty
from producer.plan.units import split_sources
from producer.request.load import LoadRequest, check_request, refuse_unread
from ringhaul.errors import SourceMissing, UsageError
from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.header import SourceEmpty
from ringhaul.formats.suffixes import format_of
from ringhaul.ledger.kinds import JobKind
from ringhaul.records.job import LoadSource
from ringhaul.records.mapping_text import parse_mapping
from ringhaul.records.unit import UNCOUNTED
from ringhaul.sources.find import find_sources
from tests.loads import load_job, table_schema

TABLE = table_schema({"id": "int", "n": "bigint", "note": "text"}, ["id"])
Plan = Callable[..., tuple[LoadSource, ...]]


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    """Plans a load of the files of `tmp_path`."""

    def planned(**options: Any) -> tuple[LoadSource, ...]:
        request = LoadRequest(keyspace="shop", table="orders", **options)
        files = find_sources([str(tmp_path)], request.dialect, request.file_format)
        found = plan_sources(request, files, TABLE)
        return with_empty(request, files, found, [source for source in found if source])

    return planned


# --- options about text that apply to no file

UNREAD: list[tuple[str, str, dict[str, Any], str]] = [
    ("x.jsonl", "auto", {"null_strings": ("NULL",)}, "--null is of no use"),
    ("x.jsonl", "auto", {"encoding": "latin-1", "allow_nul": True}, ""),
    ("x.parquet", "auto", {"allow_nul": True, "allow_missing_fields": True}, ""),
    ("x.csv", "jsonl", {"delimiter": ";"}, "--delimiter is of no use"),
    ("x.csv", "auto", {"delimiter": ";", "quote": None}, ""),
    (
        "x.parquet",
        "auto",
        {"encoding": "latin-1"},
        "nothing that is read is CSV or fixed-width text or JSON Lines;",
    ),
    ("x.parquet", "auto", {"quote": None, "option_prefix": "values-"}, "--values-quote is of no"),
]


@pytest.mark.parametrize(("name", "form", "given", "message"), UNREAD)
def test_options_of_text_that_apply_to_no_file_are_refused(
    name: str, form: str, given: dict[str, Any], message: str
) -> None:
    dialect = CsvDialect(**given)
    request = LoadRequest(keyspace="shop", table="orders", dialect=dialect, file_format=form)
    formats = {format_of(name, form)}
    refuse_unread(request, {*formats, "csv"})
    if message:
        with pytest.raises(UsageError, match=message):
            refuse_unread(request, formats)
        if form != "auto":  # before any file is opened
            with pytest.raises(UsageError, match=message):
                check_request(request)
    else:
        refuse_unread(request, formats)


# --- names in a header


def test_columns_replace_unusable_names(plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(",n,n\n0,1,2\n")  # pandas writes an index like this
    with pytest.raises(UsageError, match=r"field 1 of 3 has no name; .* --columns"):
        plan()
    (source,) = plan(columns=["id", "n", "note"])
    assert source.fields == ("id", "n", "note")
    assert (source.start_offset_bytes, source.start_line) == (5, 2)


@pytest.mark.parametrize("name", ["x.csv", "x.jsonl", "x.parquet"])
def test_write_times_and_ttls_are_fields_that_need_no_columns(
    plan: Plan, tmp_path: Path, name: str
) -> None:
    # Given a file with both fields, one of which has the name of a column
    fields = ["writetime(n)", "id", "n"]
    if name == "x.csv":
        (tmp_path / name).write_text("writetime(n),id,n\n5,1,60\n")
    elif name == "x.jsonl":
        (tmp_path / name).write_text('{"id": 1}\n{"writetime(n)": 5, "id": 2, "n": 60}\n')
    else:
        pq.write_table(pa.table({field: pa.array([1]) for field in fields}), tmp_path / name)

    # Then they are found, and that one is also loaded into its column unless it is skipped
    both, one = {("id", "id"), ("n", "n")}, {("id", "id")}
    given: list[tuple[dict[str, Any], set[tuple[str, str]]]] = [
        ({}, both),
        ({"mapping": parse_mapping("id=id,n=n")}, both),
        ({"mapping": parse_mapping("id=id")}, one),
        ({"skip_columns": ["n"]}, one),
    ]
    for options, mapped in given:
        (source,) = plan(timestamp_field="writetime(n)", ttl_field="n", **options)
        assert (source.timestamp_field, source.ttl_field) == ("writetime(n)", "n")
        found = {pair for pair in source.mapping if pair[0] in fields}
        assert found == mapped
        assert source.loaded[-2:] == ["writetime(n)", "n"]

    # And a misspelt name, and one field for both, are refused
    with pytest.raises(UsageError, match=r"--ttl-field names field 'idd'.*did you mean 'id'\?"):
        plan(timestamp_field="writetime(n)", ttl_field="idd")
    with pytest.raises(UsageError, match="both name field 'n'"):
        plan(timestamp_field="n", ttl_field="n")


@pytest.mark.parametrize("option", ["timestamp_field", "ttl_field"])
def test_a_field_without_a_name_is_refused(option: str) -> None:
    """An unset shell variable gives an empty name."""
    message = f"--{option.replace('_', '-')} is empty: give the name of a field, or leave it out"
    with pytest.raises(UsageError, match=message):
        check_request(LoadRequest(keyspace="shop", table="orders", **{option: ""}))


def test_a_field_in_one_file_of_json_lines_is_enough(plan: Plan, tmp_path: Path) -> None:
    # Given files of a writer that omits nulls, one with write times, one with TTLs
    (tmp_path / "a.jsonl").write_text('{"id": 1}\n')
    (tmp_path / "b.jsonl").write_text('no object\n{"id": 2, "at": 5}\n')
    (tmp_path / "c.jsonl").write_text("none here\n")
    (tmp_path / "d.jsonl").write_text('{"id": 2, "left": 5}\n')
    assert len(plan(timestamp_field="at", ttl_field="left")) == 4

    # Then a field that no file has is refused
    with pytest.raises(
        UsageError,
        match=r"a.jsonl and 3 more: in their first records: --ttl-field "
        r"names field 'lefd', .* fields are id, at, left; did you mean 'left'\?",
    ):
        plan(timestamp_field="at", ttl_field="lefd")

    # And a file with a header has all of its fields
    (tmp_path / "e.csv").write_text("id,at,lefd\n1,2,3\n")
    assert len(plan(timestamp_field="at", ttl_field="lefd")) == 5


def test_names_of_json_lines_in_another_encoding(plan: Plan, tmp_path: Path) -> None:
    # Given lines that each hold invalid UTF-8
    text = '{"id": 1, "note": "café", "at": 5}\n{"id": 2, "né": 1}\n'
    (tmp_path / "x.jsonl").write_bytes(text.encode("latin-1"))
    dialect = CsvDialect(encoding="latin-1")
    # Then their names are found all the same
    (source,) = plan(timestamp_field="at", dialect=dialect)
    assert source.timestamp_field == "at"
    (source,) = plan(transforms=("shop:clean",), dialect=dialect)
    assert source.fields == ("id", "note", "at", "né")
    (tmp_path / "x.jsonl").write_bytes('{"né": 1}\n'.encode("latin-1"))
    with pytest.raises(UsageError, match=r"the first record names no column .*it has né"):
        plan(dialect=dialect)


def test_write_times_can_be_named_by_position_where_fields_have_one(
    plan: Plan, tmp_path: Path
) -> None:
    (tmp_path / "x.csv").write_text("1,a,5\n")
    (source,) = plan(header=False, columns=["id", "note", "at"], timestamp_field="2")
    assert (source.timestamp_field, source.mapping) == ("at", (("id", "id"), ("note", "note")))
    with pytest.raises(UsageError, match="--timestamp-field names field '3', which it does not"):
        plan(header=False, timestamp_field="3")
    (tmp_path / "x.csv").unlink()
    (tmp_path / "x.jsonl").write_text('{"id": 1, "at": 5}\n')
    with pytest.raises(UsageError, match="--timestamp-field names field '1', which it does not"):
        plan(timestamp_field="1")


def test_columns_of_parquet_that_cannot_be_write_times_are_refused(
    plan: Plan, tmp_path: Path
) -> None:
    table = pa.table({"id": [1], "at": [True], "left": pa.array([5], pa.timestamp("us"))})
    pq.write_table(table, tmp_path / "x.parquet")
    with pytest.raises(UsageError, match="--timestamp-field at: bool does not become a write time"):
        plan(timestamp_field="at", ttl_field="left")
    with pytest.raises(
        UsageError, match=r"--ttl-field left: timestamp\[us\] does not become a TTL"
    ):
        plan(ttl_field="left", skip_columns=("at",))


def test_unneeded_names_are_not_checked(plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(",n,a,a\n0,1,2,3\n")
    (source,) = plan(mapping=parse_mapping("0=id,n=n"))
    assert source.mapping == (("", "id"), ("n", "n"))
    with pytest.raises(UsageError, match="they have one name: name all fields by --columns"):
        plan(mapping=parse_mapping("2=id"))
    (tmp_path / "x.csv").write_text("id,n,a,a\n0,1,2,3\n")
    (source,) = plan(skip_columns=["a"])
    assert source.mapping == (("id", "id"), ("n", "n"))
    with pytest.raises(UsageError, match="'a' names 2 fields"):
        plan()
    with pytest.raises(UsageError, match="'a' names 2 fields"):
        plan(transforms=["m:f"], skip_columns=["a"])  # columns of the transform's result


@pytest.mark.parametrize(
    ("name", "header", "spelt"),
    [("x.tsv", "id\tn", "\\t"), ("x.csv", "id;n;note", ";"), ("x.txt", "id|n", "|")],
)
def test_a_header_of_one_field_suggests_another_delimiter(
    plan: Plan, tmp_path: Path, name: str, header: str, spelt: str
) -> None:
    (tmp_path / name).write_text(f"{header}\n{header}\n")
    mapped, named = {"mapping": parse_mapping("id=id")}, {"columns": ["id", "n"]}
    options: list[dict[str, Any]] = [{}, mapped, named]
    for given in options:
        with pytest.raises(UsageError) as refusal:
            plan(**given)
        assert f"give --delimiter '{spelt}'" in str(refusal.value)
    dialect = CsvDialect(delimiter=spelt)
    assert plan(dialect=dialect)[0].mapping[:2] == (("id", "id"), ("n", "n"))
    # If the user says that it is one field, it is accepted.
    assert plan(columns=["id"])[0].fields == ("id",)
    assert plan(mapping=parse_mapping("0=id"))[0].fields == (header,)
    assert plan(transforms=["m:f"])[0].fields == (header,)


def test_commas_in_a_header_with_another_delimiter_are_reported(plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("id,n\n1,2\n")
    with pytest.raises(UsageError, match="give --delimiter ','"):
        plan(dialect=CsvDialect(delimiter=";"))


def test_names_in_another_case_fill_their_columns(plan: Plan, tmp_path: Path) -> None:
    pairs = (("ID", "id"), ("Note", "note"))
    (tmp_path / "x.csv").write_text("ID,Note\n1,a\n")
    assert plan()[0].mapping == pairs
    assert case_notes(plan()) == ["field ID is loaded into column id, Note loaded into note"]
    assert plan(columns=["id", "note"])[0].mapping == (("id", "id"), ("note", "note"))
    assert case_notes(plan(columns=["id", "note"])) == []
    (tmp_path / "x.csv").unlink()
    pq.write_table(pa.table({"ID": [1], "Note": ["a"]}), tmp_path / "x.parquet")
    assert plan()[0].mapping == pairs
    (tmp_path / "x.parquet").unlink()
    # JSON Lines: as the first records spell them, those that lack a member, too.
    (tmp_path / "x.jsonl").write_text('{"ID": 1}\n{"ID": 2, "Note": "a"}\n')
    source = plan()[0]
    assert {pair for pair in source.mapping if pair[0] != pair[1]} == {*pairs}
    assert not {"id", "note"} & {*source.fields}


def test_a_verification_leaves_out_write_times_and_ttls(plan: Plan, tmp_path: Path) -> None:
    names = ["id", "n", "writetime(n)", "ttl(n)", "TTL(note)", "writetime(note)"]
    (tmp_path / "x.csv").write_text(",".join(names) + "\n1,2,3,4,5,6\n")
    with pytest.raises(UsageError, match=r"field 'writetime\(n\)' has no column"):
        plan()
    sources = plan(kind=JobKind.VERIFY)
    assert sources[0].mapping == (("id", "id"), ("n", "n"))
    request = LoadRequest(keyspace="shop", table="orders", kind=JobKind.VERIFY)
    assert left_out_notes(request, sources, TABLE) == [
        "not compared: writetime(n), ttl(n), TTL(note) and 1 more (--times compares write "
        "times and TTLs)"
    ]
    # What is left out by an option needs no note
    given = replace(request, skip_columns=names[2:])
    assert left_out_notes(given, sources, TABLE) == []
    # Any other field is refused, as by a load
    (tmp_path / "x.csv").write_text("id,max(n)\n1,2\n")
    with pytest.raises(UsageError, match=r"field 'max\(n\)' has no column"):
        plan(kind=JobKind.VERIFY)
    # Parquet and JSON Lines as well
    (tmp_path / "x.csv").unlink()
    pq.write_table(pa.table({"id": [1], "ttl(n)": [3]}), tmp_path / "x.parquet")
    assert plan(kind=JobKind.VERIFY)[0].mapping == (("id", "id"),)
    (tmp_path / "x.parquet").unlink()
    (tmp_path / "x.jsonl").write_text('{"id": 1, "ttl(n)": 3}\n')
    source = plan(kind=JobKind.VERIFY)[0]
    assert "ttl(n)" in source.fields and "ttl(n)" not in source.loaded


def test_write_times_that_a_list_shifts_are_named(plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("id,n\n1,2\n")
    (source,) = plan()
    kinds = {"id": "int", "n": "list<int>", "other": "list<int>"}
    table, request = table_schema(kinds, ["id"]), LoadRequest(keyspace="shop", table="orders")
    dated = replace(request, timestamp="5")
    (note,) = shifted_times_notes(dated, [source], table)
    assert note.startswith("write times are not kept exactly: n of shop.orders is a list ")
    by_field = replace(request, timestamp_field="n")
    assert shifted_times_notes(by_field, [source], table) == [note]
    # Without given times, without such a list, or without writing there is nothing to say
    assert shifted_times_notes(request, [source], table) == []
    assert shifted_times_notes(dated, [source], TABLE) == []
    assert shifted_times_notes(replace(dated, kind=JobKind.VERIFY), [source], table) == []


def test_of_members_in_both_cases_only_the_exact_one_is_loaded(plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"id": 1, "Note": "a"}\n{"id": 2, "note": "a"}\n')
    assert ("note", "note") in plan()[0].mapping
    assert case_notes(plan()) == []


def test_a_file_that_may_not_be_read_is_named_once(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b"id\n1\n")

    opens = open

    def refused(name: Any, *args: Any, **options: Any) -> Any:
        if name == str(path):  # root may read any
            raise PermissionError(errno.EACCES, "Permission denied")
        return opens(name, *args, **options)

    monkeypatch.setattr("builtins.open", refused)
    with pytest.raises(SourceMissing, match=rf"^{path}: Permission denied"):
        plan()


# --- files that are not text


@pytest.mark.parametrize("name", ["x.csv", "x.jsonl"])
@pytest.mark.parametrize("header", [True, False])
def test_binary_files_are_refused(plan: Plan, tmp_path: Path, name: str, header: bool) -> None:
    (tmp_path / name).write_bytes(gzip.compress(b"id,n\n1,2\n" * 9))
    if name == "x.jsonl" and not header:
        return  # it has no header anyway
    with pytest.raises(UsageError, match=rf"{name} is compressed by gzip: give it a name"):
        plan(header=header)


# --- files without records


@pytest.mark.parametrize("header", [True, False])
def test_an_empty_file_among_others_is_a_source(plan: Plan, tmp_path: Path, header: bool) -> None:
    # Given parts of which some are empty, the first and the last among them
    (tmp_path / "part-0.csv").write_bytes(b"")
    (tmp_path / "part-1.csv").write_bytes(b"id,n,note\n1,2,x\n" if header else b"1,2,x\n")
    (tmp_path / "part-2.csv.gz").write_bytes(gzip.compress(b""))
    (tmp_path / "part-3.csv").write_bytes(b"\xef\xbb\xbf\n")
    (tmp_path / "part-4.csv").write_bytes(b"id,n,note\n3,4,y\n" if header else b"3,4,y\n")
    (tmp_path / "part-5.csv").write_bytes(b"")
    # When
    sources = plan(header=header)
    # Then each is a source with its own position and name, from its start
    assert [Path(source.file.path).name for source in sources] == sorted(
        path.name for path in tmp_path.iterdir()
    )
    assert {source.mapping for source in sources} == {(("id", "id"), ("n", "n"), ("note", "note"))}
    for number in (0, 2, 3, 5):
        assert (sources[number].start_offset_bytes, sources[number].start_line) == (0, 1)
    # And the records are those of the others
    job = load_job(TABLE, *sources)
    units = [(unit.source, unit.first_ordinal, unit.records_count) for unit in split_sources(job)]
    assert units == [(1, 0, 1), (2, 1, UNCOUNTED), (4, 1, 1)]
    shown = dry_run_text(job, 1)
    assert "part-0.csv: 0 records, 0 rejected" in shown
    assert "part-1.csv: 1 record, 0 rejected" in shown


def test_an_empty_file_beside_other_formats(plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"")
    (tmp_path / "b.csv").write_bytes(b"")
    pq.write_table(pa.table({"id": [1], "n": [2]}), tmp_path / "c.parquet")
    (tmp_path / "d.jsonl").write_bytes(b'{"id": 1}\n')
    sources = plan()
    assert [source.format for source in sources] == ["jsonl", "csv", "parquet", "jsonl"]
    job = load_job(TABLE, *sources)
    assert [unit.source for unit in split_sources(job)] == [2, 3]
    assert replace(job, sources=sources) == type(job).from_json(job.to_json())


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_only_empty_files_are_refused(plan: Plan, tmp_path: Path, name: str) -> None:
    for file in (name, f"b{name}"):
        (tmp_path / file).write_bytes(b"\n")
    with pytest.raises(SourceEmpty, match=rf"/{name} is empty: it has no .*records") as refusal:
        plan()
    assert refusal.value.exit_code == 2


def test_a_faulty_file_beside_an_empty_one_is_refused(plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"")
    (tmp_path / "b.csv").write_bytes(b"x,y\n1,2\n")
    with pytest.raises(UsageError, match=r"b\.csv: the header names no column"):
        plan()


# --- values of lookup and exec


VALUES = {"by_name": True, "dialect": CsvDialect(option_prefix="values-")}


@pytest.mark.parametrize("name", ["x.csv", "x.jsonl", "x.parquet"])
def test_values_are_found_by_name_in_every_format(plan: Plan, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    match path.suffix:
        case ".csv":
            path.write_text("note,,n,x,id,x\na,b,1,c,2,d\n")
        case ".jsonl":
            path.write_text('{"note": "a", "x": 5, "n": 1, "id": 2}\n')
        case ".parquet":
            pq.write_table(pa.table({"note": ["a"], "x": [5], "n": [1], "id": [2]}), path)
    (source,) = plan(**VALUES)
    assert sorted(source.mapping) == [("id", "id"), ("n", "n"), ("note", "note")]
    assert source.any_fields is (name == "x.jsonl")


def test_values_without_a_header_have_the_columns_in_their_order(
    plan: Plan, tmp_path: Path
) -> None:
    (tmp_path / "x.csv").write_text("1,2,a\n")
    (source,) = plan(**VALUES, header=False)
    assert source.fields == ("id", "n", "note") and source.start_offset_bytes == 0


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        (
            "x.csv",
            b"k1,2,a\n",
            {},
            "no field is named 'id'; its fields are k1, 2, a; if the first record is data, give "
            "--no-values-header",
        ),
        ("x.csv", b"id;n;note\n", {}, "give --values-delimiter ';'"),
        ("x.csv", b"i\0d\0\n\0", {}, "--values-encoding utf-16"),
        ("x.csv", b"\xe9,n\n", {}, "--values-encoding latin-1"),
        ("x.csv", b"PAR1\0\0\0\0", {}, "give --values-format parquet, or a name"),
        ("x.jsonl", b'{"a": 1}\n', {}, "in the first record: no field is named 'id'"),
        ("x.jsonl", b'{"id": 1}\n', {"header": False}, "--no-values-header is of no use"),
        ("x.csv", b"", {}, "is empty: it has no header and no records"),
        ("x.csv", b"", {"header": False}, "is empty: it has no records"),
    ],
)
def test_refusals_name_the_options_of_values(
    plan: Plan, tmp_path: Path, name: str, content: bytes, options: dict[str, Any], message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError) as refusal:
        plan(**VALUES, **options)
    assert message in str(refusal.value)


def test_a_type_that_does_not_fit_a_marker_is_reported_without_an_option(
    plan: Plan, tmp_path: Path
) -> None:
    pq.write_table(pa.table({"id": [b"a"], "n": [1], "note": ["a"]}), tmp_path / "x.parquet")
    with pytest.raises(UsageError, match=r"does not become int of shop\.orders\.id; write"):
        plan(**VALUES)


def test_a_mapped_field_that_no_record_has_is_refused_if_it_resembles_another(
    plan: Plan, tmp_path: Path
) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": 1, "total": 5}\n')
    (tmp_path / "b.jsonl").write_text('{"id": 2, "total": 5, "rare": 7}\n')
    with pytest.raises(
        UsageError,
        match=r"a.jsonl and 1 more: in their first records no field is named 'Total' "
        r"\(--mapping\); did you mean 'total'\? If not, leave that one out by --skip-columns",
    ):
        plan(mapping=parse_mapping("id=id,Total=n"))
    # A field that some file has, or that resembles no unmapped field, may be absent, as null
    assert len(plan(mapping=parse_mapping("id=id,rare=n"))) == 2
    assert len(plan(mapping=parse_mapping("id=id,x=n"))) == 2
    assert len(plan(mapping=parse_mapping("id=id,Total=n"), skip_columns=["total"])) == 2
