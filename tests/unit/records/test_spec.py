"""Specs as plain data: keys and values stay as workers of other versions read and write them."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ringhaul.records.job import LoadJob
from ringhaul.records.load_rules import LoadRules
from ringhaul.records.spec import spec, values_in, written
from ringhaul.statements.job import StatementJob
from tests.loads import load_job, statement_values, table_schema

#: Specs with a value of their own at each key, as the version before `LoadRules` wrote them.
SPECS = Path(__file__).parent / "specs"


@pytest.mark.parametrize(
    ("name", "read"), [("load", LoadJob.from_json), ("exec", StatementJob.from_json)]
)
def test_a_spec_is_read_and_written_as_before(name: str, read: Callable[[Any], Any]) -> None:
    older = json.loads((SPECS / f"{name}.json").read_text())
    assert json.loads(json.dumps(read(older).to_json())) == older


def test_values_of_a_statement_have_the_keys_of_a_load() -> None:
    table = table_schema({"id": "int"}, [])
    load, values = load_job(table).to_json(), statement_values(table).to_json()
    assert values.keys() == load.keys()
    assert LoadJob.from_json(values).table == table  # as workers of older versions read it


@pytest.mark.parametrize("key", ["table", "dialect", "where", "kind", "strategy", "ttl_s"])
def test_a_key_that_was_always_there_is_needed(key: str) -> None:
    data = load_job(table_schema({"id": "int"}, ["id"])).to_json()
    del data[key]
    with pytest.raises(KeyError, match=key):
        LoadJob.from_json(data)


def test_every_rule_of_a_load_is_in_its_spec() -> None:
    spec_keys = load_job(table_schema({"id": "int"}, ["id"])).to_json().keys()
    assert spec_keys >= LoadRules.__dataclass_fields__.keys()


@dataclass(frozen=True)
class Word:
    text: str

    def to_json(self) -> str:
        return self.text.upper()


@dataclass(frozen=True, kw_only=True)
class Record:
    word: Word = field(metadata=spec(lambda data: Word(data.lower())))
    words: tuple[Word, ...] = field(
        default=(), metadata=spec(lambda data: tuple(Word(one.lower()) for one in data))
    )
    names: tuple[str, ...] = ()
    count: int = field(default=7, metadata=spec(later=True))


def test_fields_become_plain_data_and_come_back() -> None:
    record = Record(word=Word("a"), words=(Word("b"),), names=("x", "y"), count=1)
    data = json.loads(json.dumps(written(record)))
    assert data == {"word": "A", "words": ["B"], "names": ["x", "y"], "count": 1}
    assert Record(**values_in(Record, data)) == record
    assert written(record, without=("word", "words")) == {"names": ["x", "y"], "count": 1}


def test_only_a_later_field_may_be_absent() -> None:
    data = {"word": "A", "words": [], "names": []}
    assert Record(**values_in(Record, data)).count == 7
    del data["names"]
    with pytest.raises(KeyError, match="names"):
        values_in(Record, data)
    assert values_in(Record, data, without=("names",)).keys() == {"word", "words"}
