"""Write times and TTLs of a mapping: constants, and fields that are found by their names."""

from __future__ import annotations

import pytest

from ringhaul.errors import UsageError
from ringhaul.mapping.language import PRESERVING, Entry, MappingText, Term, parse_mapping
from ringhaul.mapping.targets import Targets, find_named_targets, find_targets
from ringhaul.records.job import LoadSource
from ringhaul.records.wildcard import EVERY
from ringhaul.sources.source import SourceFile
from tests.cases import each
from tests.loads import table_schema

TABLE = table_schema({"id": "int", "v": "text", "n": "int", "tags": "set<int>"}, ["id"])
PLAIN = table_schema({"id": "int", "tags": "set<int>"}, ["id"])


def targets(mapping: str, fields: str, skip: str = "") -> Targets:
    parsed = parse_mapping(mapping)
    return find_targets(fields.split(), TABLE, mapping=parsed, skip=skip.split(), source="x.csv")


@each(
    ("mapping", "times", "ttls"),
    [
        ("*=*,(int)222222=ttl(v)", (), (("v", 222222),)),
        ("*=*,ttl(v)=(int)222222", (), (("v", 222222),)),
        ("*=*,(int)1000=ttl(*)", (), ((EVERY, 1000),)),
        ("*=*,(int)0=ttl(*)", (), ((EVERY, 0),)),
        ("*=*,(bigint)7=writetime(v,n)", (("v", 7), ("n", 7)), ()),
        ("*=*,(timestamp)'2022-02-02T22:22:22Z'=writetime(*)", ((EVERY, 1643840542000000),), ()),
        ("*=*,'2022-02-02T22:22:22.000001Z'=writetime(v)", (("v", 1643840542000001),), ()),
        ("*=*,(timestamp)1643840542000=writetime(v)", (("v", 1643840542000000),), ()),
        ("*=*,(date)'1970-01-02'=writetime(v)", (("v", 86_400_000_000),), ()),
        ("*=*,(bigint)5=__timestamp,(int)6=__ttl", ((EVERY, 5),), ((EVERY, 6),)),
    ],
)
def test_constants_are_times_of_all_rows(
    mapping: str, times: tuple[object, ...], ttls: tuple[object, ...]
) -> None:
    found = targets(mapping, "id v n")
    assert (found.fixed_times, found.fixed_ttls) == (times, ttls)
    assert [column for _, column in found.mapping] == ["id", "v", "n"]
    # They travel with the job, which needs no field for them
    source = LoadSource(file=SourceFile("x.csv", 1, False), fields=("id", "v", "n"), mapping=())
    source = found.of_source(source)
    assert LoadSource.from_json(source.to_json()) == source
    assert source.loaded == ["id", "v", "n"]
    assert source.ttl_bound == bool(ttls)
    of_columns = {column for column, _ in (*found.fixed_times, *found.fixed_ttls)} - {EVERY}
    assert source.splits_rows == bool(of_columns)
    assert found.untimed.of_source(source).fixed_times == ()
    # JSON Lines, too, have no field of this name
    fields, _ = find_named_targets(
        TABLE, mapping=parse_mapping(mapping), skip=[], source="x.jsonl", seen=["id", "v", "n"]
    )
    assert {*fields} <= {"id", "v", "n", "tags"}


@each(
    ("mapping", "fields", "words"),
    [
        ("*=*,(int)-5=ttl(v)", "id v", r"--mapping \(int\)-5=ttl\(...\): .*outside 0"),
        ("*=*,(text)'x'=writetime(v)", "id v", "is not a whole number"),
        ("*=*,(int)''=ttl(v)", "id v", "is not a whole number"),
        ("*=*,(int)5=ttl(id)", "id v", "a constant gives the ttl of column 'id', which is in the"),
        ("id=id,(int)5=ttl(v)", "id v", "the ttl of column 'v', which is not loaded"),
        ("*=*,(int)5=ttl(v),(int)6=ttl(v)", "id v", "ttl of column 'v' twice"),
        ("*=*,a=ttl(v),b=ttl(v)", "id v a b", "of column 'v' twice, from fields 'a' and 'b'"),
        ("*=*,a=writetime(*),b=writetime(*)", "id v a b", "of rows twice, from fields 'a' and 'b'"),
        ("*=*,a=ttl(*),(int)6=ttl(*)", "id v a", "the ttl of rows twice"),
        ("*=*,w=writetime(v),writetime(*)", "id v w writetime(v)", "'w' and 'writetime"),
        ("*=*,now()=writetime(*)", "id v", r"names field 'now\(\)', which it does not have"),
    ],
)
def test_what_cannot_be_a_time_is_refused(mapping: str, fields: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        targets(mapping, fields)


def test_times_that_the_mapping_names_need_no_field_of_their_own() -> None:
    fields = "id v n writetime(n) w"
    found = targets("*=*,w=writetime(v),writetime(*)", fields)
    assert found.times == (("w", "v"), ("writetime(n)", "n"))
    found = targets("*=*,w=writetime(v),u=writetime(n),writetime(*)", "id v n w u")
    assert found.times == (("w", "v"), ("u", "n"))


def test_times_of_columns_that_have_none_here_are_left_out() -> None:
    # Of a key, of a column that is not loaded, of a skipped one
    fields = "id writetime(id) v writetime(v) n writetime(n)"
    assert targets("*=*,writetime(*)", fields).times == (
        ("writetime(v)", "v"),
        ("writetime(n)", "n"),
    )
    assert targets("*=-v,writetime(*)", fields).times == (("writetime(n)", "n"),)
    assert targets("*=*,writetime(*)", fields, "v").times == (("writetime(n)", "n"),)
    assert targets("*=*,writetime(*)", "id v writetime(id)").times == ()
    # Not if the mapping names them
    with pytest.raises(UsageError, match="is in the primary key"):
        targets("*=*,writetime(id)=v", "id v n")


def test_a_renamed_column_keeps_its_time() -> None:
    found = targets("*=*,old=v,writetime(*)", "id old writetime(old) n writetime(n)")
    assert found.times == (("writetime(old)", "v"), ("writetime(n)", "n"))


@pytest.mark.parametrize(("function", "option"), PRESERVING.items())
def test_an_option_without_fields_is_named(function: str, option: str) -> None:
    entry = Entry(Term(f"{function}(*)"))
    mapping = MappingText((entry,), rest=True, preserved=(function,))
    with pytest.raises(UsageError, match=rf"^x: --{option} stands for fields named {function}\("):
        find_targets(["id", "v"], TABLE, mapping=mapping, skip=[], source="x")
    own = MappingText((entry,), rest=True)
    with pytest.raises(UsageError, match=rf"^x: --mapping {function}\(\*\) stands for fields"):
        find_targets(["id", "v"], TABLE, mapping=own, skip=[], source="x")
    # Nothing is missing where no loaded column has one time
    for fields, table in ((["id", "tags"], PLAIN), (["id"], PLAIN), (["id", "tags"], TABLE)):
        found = find_targets(fields, table, mapping=mapping, skip=[], source="x")
        assert (found.times, found.ttls) == ((), ())
