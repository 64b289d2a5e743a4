"""The options of each command: named, explained, and in one group each."""

from __future__ import annotations

import string
from collections import Counter

import pytest

from config.sections import setting_keys
from producer.commands.record_command import RecordCommand
from producer.commands.registry import COMMANDS, find_command
from producer.options.connection import Connection
from producer.options.kinds import FLAG
from producer.options.load import LoadOptions
from producer.options.option import options_of
from ringhaul.formats.suffixes import FORMATS
from ringhaul.ledger.kinds import JobKind

RECORDS = {
    name: command.record
    for name in COMMANDS
    if isinstance(command := find_command(name), RecordCommand)
}


def test_every_command_that_runs_a_job_has_a_record() -> None:
    assert set(RECORDS) == {kind.value for kind in JobKind} | {"tune", "peek", "resume"}


@pytest.mark.parametrize("name", RECORDS)
def test_no_two_options_of_a_command_have_one_name(name: str) -> None:
    found = options_of(RECORDS[name], name)
    flags = [flag for one in found for given in one.flags for flag in given.split("/")]
    assert [flag for flag, count in Counter(flags).items() if count > 1] == []
    assert len({one.name for one in found}) == len(found)


@pytest.mark.parametrize("name", RECORDS)
def test_only_commands_that_exist_are_named(name: str) -> None:
    for one in options_of(RECORDS[name]):
        assert set(one.commands) <= set(COMMANDS), one.name


@pytest.mark.parametrize("name", RECORDS)
def test_each_option_is_explained(name: str) -> None:
    for one in options_of(RECORDS[name], name):
        assert one.help.endswith((".", "].")), one
        assert all(flag.startswith("-") for flag in one.flags), one
        assert all(len(flag) == 2 for flag in one.flags[:-1]), one
        assert one.flags == () or one.flag.startswith("--"), one
        assert one.kind is FLAG or not one.is_switch, one
        assert not one.brief or (one.common and len(one.brief) < len(one.help)), one


@pytest.mark.parametrize("name", RECORDS)
def test_what_a_declaration_names_exists(name: str) -> None:
    for one in options_of(RECORDS[name], name):
        assert not one.setting or one.setting in setting_keys(), one
        assert set(one.formats) <= {*FORMATS, "fixed"}, one
        assert list(one.formats) == sorted(one.formats), one
        fields = {field for _, field, _, _ in string.Formatter().parse(one.said)}
        assert fields <= {None, "", "0[0]"}, one


def test_what_shows_or_connects_does_not_count_in_a_fingerprint() -> None:
    assert all(one.how for one in options_of(Connection))
    counted = {one.name for one in options_of(LoadOptions) if not one.how}
    assert {"sources", "table", "where", "delimiter", "primary_key", "via"} <= counted
    assert counted.isdisjoint({"rate", "workers", "create_table", "unit_size", "as_json"})
