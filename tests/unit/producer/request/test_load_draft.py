"""A draft of a load takes options and settings by their names, and reads the others."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, get_type_hints

import pytest

from config.sections import LoadSettings
from config.settings import load_settings
from producer.options.load import LoadOptions
from producer.request.load import LoadDraft, load_draft
from tests.options import parse_options

#: Options that the draft has under their names in another form, which `load_draft` makes.
READ = {
    *("columns", "dialect", "empty", "header_at", "layout", "mapping", "skip_columns"),
    *("keyspace", "types", "where", "header"),
}
DRAFT, OPTIONS = get_type_hints(LoadDraft), get_type_hints(LoadOptions)
#: Settings that count before the options with their names.
SETTINGS = {one.name for one in fields(LoadDraft)} & LoadSettings.model_fields.keys()
TAKEN = sorted(DRAFT.keys() & OPTIONS.keys() - READ - SETTINGS - {"consistency", "table", "kind"})


def test_what_is_taken_by_name_has_the_type_of_the_option() -> None:
    assert {name: DRAFT[name] for name in TAKEN} == {name: OPTIONS[name] for name in TAKEN}


def test_every_option_in_another_form_is_one_of_the_draft() -> None:
    assert DRAFT.keys() >= READ


@pytest.mark.parametrize("name", TAKEN)
def test_an_option_is_taken_by_its_name(name: str) -> None:
    usual = parse_options("load", "x.csv", "-t", "shop.orders")
    other = _other(getattr(usual, name))
    # Options that go together, and a header that is found by its names.
    beside = {"create_table": True} if name == "primary_key" else {}
    draft = load_draft(replace(usual, **beside, **{name: other}), load_settings())
    assert getattr(draft, name) == other


def _other(value: Any) -> Any:
    """Another value of the type that an option has."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, tuple):
        return ("module:function",)
    if isinstance(value, str):
        return {"auto": "csv", "unset": "tombstone"}[value]
    return 5 if isinstance(value, int) else "7"


def test_settings_of_loads_are_taken_by_their_names() -> None:
    given = {"strategy": "single", "unit_bytes": 3 << 20, "max_errors": "5%"}
    given |= {"block_bytes": 1 << 20, "in_flight_requests_max": 40, "batch_rows_max": 2}
    assert given.keys() == SETTINGS
    loaded = load_settings({f"load.{name}": value for name, value in given.items()})
    options = parse_options("load", "x.csv", "-t", "shop.orders", "--strategy", "token-batch")
    draft = load_draft(options, loaded)
    assert {name: getattr(draft, name) for name in given} == given


def test_other_settings_reach_the_draft() -> None:
    loaded = load_settings({"cluster.consistency": "ONE", "sstables.size_bytes": 5 << 20})
    draft = load_draft(parse_options("load", "x.csv", "-t", "shop.orders"), loaded)
    assert (draft.consistency, draft.sstable_bytes) == ("ONE", 5 << 20)
