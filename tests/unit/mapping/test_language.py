"""The text of --mapping: every form of Bulk Loader's language and of ours, and what is refused."""

from __future__ import annotations

import pytest

from ringhaul.errors import UsageError
from ringhaul.mapping.field_columns import RowFields
from ringhaul.mapping.language import MappingText, parse_mapping
from ringhaul.mapping.targets import Targets, find_named_targets, find_targets
from tests.cases import each
from tests.loads import table_schema

TABLE = table_schema(
    {"id": "int", "a": "text", "b": "text", "my col": "int", "l": "list<int>", "n": "counter"},
    ["id"],
)
PLAIN = table_schema({"id": "int", "a": "text", "b": "int", "x,y": "text"}, ["id"], ["b"])


def targets(
    text: str, *fields: str, skip: tuple[str, ...] = (), taken: RowFields | None = None
) -> Targets:
    return find_targets(
        fields,
        TABLE,
        mapping=parse_mapping(text),
        skip=skip,
        source="f.csv",
        taken=taken or RowFields(),
    )


@each(
    ("text", "fields", "pairs"),
    [
        # Pairs
        ("id=id,x=a", "id x", {"id": "id", "x": "a"}),
        ("id : id , x : a", "id x", {"id": "id", "x": "a"}),
        ("0=id,1=a", "k v", {"k": "id", "v": "a"}),
        ("id=id,v=a,id", "id=id", None),  # a pair and a name alone: see below
        # Names in quotes
        ('"id"=id,"x,y"="my col"', ["id", "x,y"], {"id": "id", "x,y": "my col"}),
        ('"a ""b"""="a",id=id', ["id", 'a "b"'], {"id": "id", 'a "b"': "a"}),
        ('"0"=id', ["1", "0"], {"0": "id"}),
        ("field A=my col,id=id", ["id", "field A"], {"id": "id", "field A": "my col"}),
        ('"f(x)=y"=a,id=id', ["id", "f(x)=y"], {"id": "id", "f(x)=y": "a"}),
        ("it's=a,id=id", ["id", "it's"], {"id": "id", "it's": "a"}),
        # The fields that are left
        ("*=*", "id a b", {"id": "id", "a": "a", "b": "b"}),
        ("*", "id a", {"id": "id", "a": "a"}),
        ("* : *", "ID A", {"ID": "id", "A": "a"}),
        ("*=*,x=b", "id a x", {"id": "id", "a": "a", "x": "b"}),
        ("*=*,x=b", "id b x", {"id": "id", "x": "b"}),
        ("*=-b", "id a b", {"id": "id", "a": "a"}),
        ("*=-z", "id a z", {"id": "id", "a": "a"}),
        ("* = [ -a , -b ]", "id a b", {"id": "id"}),
        ("*=[-b,-z],z=b", "id a b z", {"id": "id", "a": "a", "z": "b"}),
        # Lists
        ("id,a", "id a b", {"id": "id", "a": "a"}),
        ("a, id", "0 1", {"0": "a", "1": "id"}),
        ('"my col",id', "0 1 2", {"0": "my col", "1": "id"}),
    ],
)
def test_fields_go_where_the_mapping_says(
    text: str, fields: str | list[str], pairs: dict[str, str] | None
) -> None:
    names = fields.split() if isinstance(fields, str) else fields
    if pairs is None:
        with pytest.raises(UsageError, match="expected FIELD=COLUMN"):
            targets(text, *names)
        return
    assert dict(targets(text, *names).mapping) == pairs


def test_a_field_fills_several_columns_and_a_pair_counts_once() -> None:
    found = targets("id=id,x=a,x=b,x=a", "id", "x")
    assert found.mapping == (("id", "id"), ("x", "a"), ("x", "b"))


@each(
    ("text", "constants", "filled"),
    [
        ("id=id,'eu'=a", {"a": "eu"}, {}),
        ("id=id,'it''s, so'=a", {"a": "it's, so"}, {}),
        ("id=id,(int)42=a", {"a": "42"}, {}),
        ("id=id,(text)'x=y'=a", {"a": "x=y"}, {}),
        ("(int) 7 = id", {"id": "7"}, {}),
        ("id=id,now()=a", {}, {"a": "now()"}),
        ("id=id,toTimestamp(now())=a", {}, {"a": "toTimestamp(now())"}),
        ("id=id,f('a, b', (int)4)=a", {}, {"a": "f('a, b', (int)4)"}),
        ('id=id,"MyKs".plus(1, 2)="my col"', {}, {"my col": '"MyKs".plus(1, 2)'}),
        ("id=id,(list<int>)[1,2]=l", {}, {"l": "(list<int>)[1,2]"}),
    ],
)
def test_columns_without_a_field(
    text: str, constants: dict[str, str], filled: dict[str, str]
) -> None:
    found = targets(text, "id", "v")
    assert (dict(found.constants), dict(found.filled)) == (constants, filled)


@pytest.mark.parametrize(
    ("call", "expression", "fields"),
    [
        ("plus(v, 42)", "plus(?, 42)", ["v"]),
        ('"MyKs".plus(v, date)', '"MyKs".plus(?, ?)', ["v", "date"]),
        ("ks.plus(v, v)", "ks.plus(?, ?)", ["v", "v"]),
        ('f("x, y", "MyKs".g(v))', 'f(?, "MyKs".g(?))', ["x, y", "v"]),
        # A type, which may be the name of a field as well, a text, and a member of a literal
        ("toTimestamp((date)date)", "toTimestamp((date)?)", ["date"]),
        ("f(( list<int> ) v)", "f(( list<int> ) ?)", ["v"]),
        ("f('v', {v: 1, 'b': v})", "f('v', {v: 1, 'b': ?})", ["v"]),
        ("f(w, true, null)", "f(w, true, null)", []),
        ("v(v)", "v(?)", ["v"]),
    ],
)
def test_functions_take_fields(call: str, expression: str, fields: list[str]) -> None:
    found = targets(f"id=id,{call}=a", "id", "v", "date", "x, y")
    assert found.filled == (("a", expression),)
    assert found.arguments == tuple((name, call) for name in fields)


def test_a_field_of_a_function_needs_no_column_and_may_have_one() -> None:
    found = targets("*=*,f(v, B)=a,g(b)=my col", "id", "v", "b", "B")
    assert dict(found.mapping) == {"id": "id", "b": "b"}
    assert [name for name, _ in found.arguments] == ["v", "B", "b"]
    # In JSON Lines, where names are those of the first records, or in quotes
    names, found = find_named_targets(
        TABLE,
        mapping=parse_mapping('id=id,f(v, "rare", w)=a'),
        skip=(),
        source="f.jsonl",
        seen=["id", "v"],
    )
    assert {"id", "v", "rare"} <= set(names)
    assert found.filled == (("a", "f(?, ?, w)"),)
    # A verification compares nothing that the server computed
    assert (found.untimed.filled, found.untimed.arguments) == ((), ())


@pytest.mark.parametrize(
    ("text", "row", "times", "ttls"),
    [
        ("*=*,w=writetime(*),t=ttl(*)", RowFields("w", "t"), {}, {}),
        ("*=*,writetime(*)=w", RowFields("w", None), {}, {}),
        ("*=*,w=__timestamp,t=__ttl", RowFields("w", "t"), {}, {}),
        ("*=*,w=writetime(a),t=ttl(a)", RowFields(), {"a": "w"}, {"a": "t"}),
        ("*=*,writetime(a)=w,TTL(a)=t", RowFields(), {"a": "w"}, {"a": "t"}),
        ("*=*,w=writetime(a,b),t=ttl(b)", RowFields(), {"a": "w", "b": "w"}, {"b": "t"}),
    ],
)
def test_write_times_and_ttls(
    text: str, row: RowFields, times: dict[str, str], ttls: dict[str, str]
) -> None:
    names = ["id", "a", "b", *(["w"] if "w" in text else []), *(["t"] if "=t" in text else [])]
    if "TTL(a)=t" in text or "t=" in text:
        names = list(dict.fromkeys([*names, "t"]))
    found = targets(text, *names)
    assert found.row == row
    assert {column: name for name, column in found.times} == times
    assert {column: name for name, column in found.ttls} == ttls


def test_the_fields_of_an_unload_with_all_times_are_found_by_their_names() -> None:
    fields = ["id", "a", "writetime(a)", "ttl(a)", "b", "writetime(b)", "ttl(b)"]
    found = targets("*=*,writetime(*),ttl(*)", *fields)
    assert dict(found.mapping) == {"id": "id", "a": "a", "b": "b"}
    assert found.times == (("writetime(a)", "a"), ("writetime(b)", "b"))
    assert found.ttls == (("ttl(a)", "a"), ("ttl(b)", "b"))
    # In JSON Lines, too, where names are those of the first records
    names, found = find_named_targets(
        TABLE,
        mapping=parse_mapping("*=-n,writetime(*),ttl(*)"),
        skip=("l", "my col"),
        source="f.jsonl",
        seen=fields,
    )
    assert set(fields) <= set(names)
    assert found.times == (("writetime(a)", "a"), ("writetime(b)", "b"))
    # A name of FIELD=COLUMN that is a field's is that field, as it always was
    assert dict(targets("id=id,writetime(a)=my col", "id", "writetime(a)").mapping) == {
        "id": "id",
        "writetime(a)": "my col",
    }


@each(
    ("text", "fields", "words"),
    [
        ("id", "k v", "names field 'id', which it does not have; its fields are k, v"),
        ("9=id", "0 1", "its first loaded record has 2 fields, counted from 0"),
        ("a,b,id", "0 1", "lists 3 columns, and its first loaded record has 2 fields"),
        ("id=id,x=no", "id x", "field 'x' has no column 'no'"),
        ("*=*", "id nope", "field 'nope' has no column 'nope'"),
        ("*=-nope", "id a", "leaves out 'nope', which is neither a field nor a column"),
        ("*=a", "id a", "after .= give"),
        ("id=id,id=a,a=a", "id a", "two fields go to column 'a'"),
        ("id=id,a=a,'x'=a", "id a", "fills column 'a' twice"),
        ("id=id,'x'=a,now()=a", "id", "fills column 'a' twice"),
        ("a=a", "id a", "no field for primary key column 'id'"),
        ("'x'=id", "a", "cast int"),
        ("id=id,plus(b, 42)=a", "id", "names field 'b', which it does not have"),
        ('id=id,plus("x y", 42)=a', "id", "names field 'x y', which it does not have"),
        ("id=id,f(v)=a,w=writetime(a)", "id v w", "cannot take a field beside write times"),
        ("id=id,f(v)=a", "id v v", "two fields are named 'v'"),
        ("f(v)=id", "v", "--mapping f.v.=id: 'id' is in the primary key, which must be known"),
        ("now()=id", "a", "is in the primary key, which must be known before a row is sent"),
        ("id=id,now()=n", "id", "a counter is only ever added to"),
        ("now()", "id", "give the column that it fills"),
        ("id=id,w=writetime(id)", "id w", "is in the primary key, which has none"),
        ("id=id,w=writetime(a)", "id w", "column 'a', which is not loaded"),
        ("*=*,writetime(*)", "id a", "stands for fields named writetime.COLUMN."),
        ('"id=id', "id", "the quote .* is not closed"),
        ("id=id,f(1=a", "id", "a bracket is not closed"),
        ('"id"x=id', "id", "a name in quotes ends with them"),
        ("id=", "id", "expected FIELD=COLUMN"),
        ("=id", "id", "expected FIELD=COLUMN"),
    ],
)
def test_a_mapping_that_fits_neither_file_nor_table_is_refused(
    text: str, fields: str, words: str
) -> None:
    with pytest.raises(UsageError, match=words) as error:
        targets(text, *fields.split())
    assert error.value.exit_code == 2


def test_an_option_and_the_mapping_may_not_name_two_fields_for_one_thing() -> None:
    with pytest.raises(UsageError, match="give one of them"):
        targets("*=*,w=writetime(*)", "id", "w", "v2", taken=RowFields("v2"))


@pytest.mark.parametrize(
    ("text", "positional", "listed"),
    [
        ("0=id,4=a", True, False),
        ("0=id,'x'=a,now()=b", True, False),
        ("0=id,x=a", False, False),
        ('"0"=id', False, False),
        ("*=*,0=id", False, False),
        ("id,a", False, True),
        ("", False, False),
    ],
)
def test_which_mappings_need_no_names_of_fields(text: str, positional: bool, listed: bool) -> None:
    mapping = parse_mapping(text)
    assert (mapping.positional, mapping.listed) == (positional, listed)
    assert bool(mapping) == bool(text)
    assert isinstance(mapping, MappingText)
