"""Fields to columns: by name, by mapping, by position; every refusal says what to do."""

import pytest

from ringhaul.errors import UsageError
from ringhaul.mapping.field_columns import find_fields, not_loadable, other_case
from ringhaul.mapping.language import parse_mapping
from ringhaul.mapping.targets import find_named_targets, find_targets
from tests.cases import each
from tests.loads import table_schema

TABLE = table_schema(
    {"id": "bigint", "Total": "decimal", "note": "text", "tags": "org.acme.Tags", "n": "int"},
    ["id"],
    ["n"],
)


def mapped(
    *fields: str, mapping: dict[str, str] | None = None, skip: tuple[str, ...] = ()
) -> tuple[tuple[str, str], ...]:
    text = parse_mapping(",".join(f"{field}={column}" for field, column in (mapping or {}).items()))
    return find_targets(fields, TABLE, mapping=text, skip=skip, source="a.csv").mapping


def test_fields_go_to_the_columns_of_their_names_in_the_order_of_the_file() -> None:
    assert mapped("note", "n", "id") == (("note", "note"), ("n", "n"), ("id", "id"))


def test_a_mapping_loads_only_the_fields_it_names() -> None:
    pairs = mapped("a", "b", "c", "d", mapping={"c": "id", "a": "n", "d": "Total"})
    assert pairs == (("a", "n"), ("c", "id"), ("d", "Total"))


def test_a_mapping_may_name_fields_by_position() -> None:
    assert mapped("a", "b", "c", mapping={"2": "id", "0": "n"}) == (("a", "n"), ("c", "id"))


def test_a_number_that_is_a_field_name_means_that_field() -> None:
    assert mapped("1", "0", mapping={"0": "id", "1": "n"}) == (("1", "n"), ("0", "id"))


def test_a_field_may_fill_several_columns_by_name_and_by_position() -> None:
    pairs = mapped("id", "n", mapping={"id": "id", "n": "n", "1": "note"})
    assert pairs == (("id", "id"), ("n", "n"), ("n", "note"))


def test_skipped_fields_are_left_out_mapped_or_not() -> None:
    assert mapped("id", "n", "other", skip=("other",)) == (("id", "id"), ("n", "n"))
    pairs = mapped("a", "b", "c", mapping={"a": "id", "b": "n", "c": "note"}, skip=("c",))
    assert pairs == (("a", "id"), ("b", "n"))


def test_names_in_other_case_go_to_their_columns() -> None:
    pairs = mapped("ID", "N", "total", "nota", skip=("nota",))
    assert pairs == (("ID", "id"), ("N", "n"), ("total", "Total"))
    # A mapping alone says what goes where.
    with pytest.raises(UsageError, match="no column 'ID'"):
        mapped("ID", "N", mapping={"ID": "ID", "N": "n"})


def test_of_columns_that_differ_only_in_case_none_is_guessed() -> None:
    table = table_schema({"id": "int", "Total": "int", "total": "int"}, ["id"])
    assert other_case(["id", "TOTAL"], table.column_names) == {}
    assert other_case(["id", "total", "TOTAL"], table.column_names) == {}
    assert other_case(["ID", "Id"], ["id"]) == {}
    assert other_case(["Id", "Id"], ["id"]) == {}


@each(
    ("fields", "mapping", "skip", "message"),
    [
        (
            ("7", "x"),
            {},
            (),
            "a.csv: the header names no column of shop.orders (it reads 7, x; the table has id, "
            "Total, note, tags, n). If the file has no header, give --no-header and the names "
            "of its fields with --columns; without them its fields fill the table's columns in "
            "this order",
        ),
        (
            ("id", "n", "nota"),
            {},
            (),
            "a.csv: field 'nota' has no column 'nota' in shop.orders. Leave it out with "
            "--skip-columns nota, or name its column with --mapping nota=COLUMN; did you mean "
            "'note'?",
        ),
        (  # as an unload writes it; a shell needs quotes
            ("id", "n", "writetime(n)"),
            {},
            (),
            "a.csv: field 'writetime(n)' has no column 'writetime(n)' in shop.orders. If it says "
            "when rows were written, load takes --timestamp-field 'writetime(n)', or for its "
            "column alone --mapping '*=*,writetime(*)'; or leave it out with --skip-columns "
            "'writetime(n)'",
        ),
        (
            ("id", "n", "TTL(n)"),
            {},
            (),
            "a.csv: field 'TTL(n)' has no column 'TTL(n)' in shop.orders. If it says how long "
            "rows live, load takes --ttl-field 'TTL(n)', or for its column alone --mapping "
            "'*=*,ttl(*)'; or leave it out with --skip-columns 'TTL(n)'",
        ),
        (
            ("id", "n", "max(n)"),
            {},
            (),
            "a.csv: field 'max(n)' has no column 'max(n)' in shop.orders. Leave it out with "
            "--skip-columns 'max(n)', or name its column with --mapping 'max(n)=COLUMN'",
        ),
        (
            ("id", "writetime(n)"),
            {"id": "id", "writetime(n)": "m"},
            (),
            "a.csv: field 'writetime(n)' has no column 'm' in shop.orders. Leave it out with "
            "--skip-columns 'writetime(n)', or name its column with --mapping "
            "'writetime(n)=COLUMN'",
        ),
        (  # two candidates: which one is meant?
            ("id", "n", "TOTAL", "total"),
            {},
            (),
            "a.csv: field 'TOTAL' has no column 'TOTAL' in shop.orders. Leave it out with "
            "--skip-columns TOTAL, or name its column with --mapping TOTAL=COLUMN; did you mean "
            "'Total'?",
        ),
        (  # another field fills the column
            ("id", "ID", "n"),
            {},
            (),
            "a.csv: field 'ID' has no column 'ID' in shop.orders. Leave it out with "
            "--skip-columns ID, or name its column with --mapping ID=COLUMN; did you mean 'id'?",
        ),
        (
            ("a", "b"),
            {"c": "id"},
            (),
            "a.csv: --mapping names field 'c', which it does not have; its fields are a, b",
        ),
        (
            ("a", "b"),
            {"2": "id"},
            (),
            "a.csv: --mapping names field '2', which it does not have; its fields are a, b",
        ),
        (
            ("a", "b"),
            {"²": "id"},
            (),
            "a.csv: --mapping names field '²', which it does not have; its fields are a, b",
        ),
        (
            ("id", "n", "b"),
            {},
            ("bb",),
            "a.csv: --skip-columns names 'bb', which is not one of its fields; did you mean 'b'?",
        ),
        (
            ("a", "b", "c"),
            {"a": "id", "b": "n", "c": "id"},
            (),
            "a.csv: two fields go to column 'id' (--mapping)",
        ),
        (
            ("id", "n", "tags"),
            {},
            (),
            "a.csv: column 'tags' has type org.acme.Tags, which ringhaul does not know; leave it "
            "out with --skip-columns",
        ),
        (
            ("id", "note"),
            {},
            (),
            "a.csv: no field for primary key column 'n' of shop.orders; name one with "
            "--mapping FIELD=n",
        ),
        (
            ("id", "n", "note"),
            {},
            ("id", "n"),
            "a.csv: no field for primary key column 'id', 'n' of shop.orders; name one with "
            "--mapping FIELD=id",
        ),
    ],
)
def test_unmappable_fields_are_refused_with_a_clear_message(
    fields: tuple[str, ...], mapping: dict[str, str], skip: tuple[str, ...], message: str
) -> None:
    with pytest.raises(UsageError) as refusal:
        mapped(*fields, mapping=mapping, skip=skip)
    assert str(refusal.value) == message
    assert refusal.value.exit_code == 2


def test_every_type_but_counters_and_unknown_ones_can_be_loaded() -> None:
    table = table_schema(
        {"id": "int", "l": "list<frozen<map<text, duration>>>", "hits": "counter", "x": "a.B"},
        ["id"],
    )
    assert [column for column in table.column_names if not_loadable(table, column)] == ["hits", "x"]
    assert not_loadable(table, "hits") == (
        "column 'hits' has type counter: a counter is only ever added to, not set; `ringhaul exec` "
        "adds to it"
    )


def names(
    mapping: dict[str, str] | None = None, skip: tuple[str, ...] = ()
) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    text = parse_mapping(",".join(f"{field}={column}" for field, column in (mapping or {}).items()))
    fields, found = find_named_targets(TABLE, mapping=text, skip=skip, source="a.jsonl")
    return fields, found.mapping


def test_records_with_named_values_may_name_every_loadable_column() -> None:
    fields = ("id", "Total", "note", "n")
    assert names() == (fields, tuple((field, field) for field in fields))


def test_skipped_names_may_be_in_records_and_are_not_loaded() -> None:
    fields, pairs = names(skip=("note", "other"))
    assert fields == ("id", "Total", "n", "note", "other")
    assert pairs == (("id", "id"), ("Total", "Total"), ("n", "n"))


def test_names_that_the_first_records_have_in_other_case() -> None:
    fields, found = find_named_targets(
        TABLE,
        mapping=parse_mapping(None),
        skip=("n2",),
        source="a.jsonl",
        seen=("ID", "N2", "total", "TOTAL"),
    )
    pairs = found.mapping
    assert fields == ("ID", "Total", "note", "n", "n2")
    assert pairs == (("ID", "id"), ("Total", "Total"), ("note", "note"), ("n", "n"))


def test_a_mapping_of_names_loads_only_those() -> None:
    fields, pairs = names(mapping={"a": "id", "b": "n"})
    assert (fields, pairs) == (("a", "b"), (("a", "id"), ("b", "n")))
    with pytest.raises(UsageError, match="no field for primary key column 'n'"):
        names(mapping={"a": "id"})
    with pytest.raises(UsageError, match="no field for primary key column 'id'"):
        names(skip=("id",))


# --- values that are found by their names alone


def test_each_column_is_filled_by_the_field_of_its_name() -> None:
    table = table_schema({"a": "int", "b": "text"}, [])
    pairs = find_fields(["x", "b", "", "a", "x"], table, source="a.csv")
    assert pairs == (("b", "b"), ("a", "a"))
    assert find_fields(["x", "B", "a"], table, source="a.csv") == (("B", "b"), ("a", "a"))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            ["a", "B", "B"],
            "a.csv: no field is named 'b'; its fields are a, B, B Or so; did you mean 'B'?",
        ),
        (["k1"], "a.csv: no field is named 'a'; its fields are k1 Or so"),
        (["a", "b", "b"], "a.csv: 2 fields are named 'b'"),
    ],
)
def test_a_column_without_exactly_one_field_is_reported(fields: list[str], message: str) -> None:
    table = table_schema({"a": "int", "b": "text"}, [])
    with pytest.raises(UsageError) as refusal:
        find_fields(fields, table, source="a.csv", otherwise=" Or so")
    assert str(refusal.value) == message


def test_a_column_that_cannot_be_loaded_is_reported_without_advice() -> None:
    table = table_schema({"a": "org.acme.Tags"}, [])
    with pytest.raises(UsageError, match=r"which ringhaul does not know$"):
        find_fields(["a"], table, source="a.csv")
