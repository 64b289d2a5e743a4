"""The table as an argument or as `-t`: the same options, command line and fingerprint."""

from __future__ import annotations

import shlex

import pytest
import rich_click as click

from producer.commands.click_options import AS_STEP
from producer.commands.registry import find_command
from producer.request.command_line import command_line
from producer.request.fingerprint import fingerprint_of
from producer.request.values import given_options

COMMANDS = {
    "count": [],
    "unload": ["-o", "out"],
    "lookup": ["--keys", "keys.csv"],
    "peek": [],
}


def context_of(name: str, *arguments: str) -> click.Context:
    command = find_command(name)
    assert command is not None
    return command.make_context(name, [*arguments], obj=AS_STEP)


@pytest.mark.parametrize("name", COMMANDS)
def test_both_spellings_are_one_command(name: str) -> None:
    own = COMMANDS[name]
    one, other = context_of(name, *own, "-t", "k.t"), context_of(name, "k.t", *own)
    assert one.params == other.params and one.params["table"] == "k.t"
    assert {*given_options(one)} == {*given_options(other)}
    assert fingerprint_of(one) == fingerprint_of(other)
    # What a job keeps as its command is what was typed, and can be run again
    kept = shlex.split(command_line(other))
    assert kept == ["ringhaul", name, "k.t", *own]
    assert context_of(*kept[1:]).params == other.params
    assert context_of(name, "t", "-k", "k", *own).params["keyspace"] == "k"


@pytest.mark.parametrize("name", COMMANDS)
def test_one_table_is_wanted(name: str) -> None:
    own = COMMANDS[name]
    with pytest.raises(click.UsageError, match="TABLE and -t both name the table"):
        context_of(name, "k.t", *own, "-t", "k.t")
    if name == "unload":  # it may have --query instead
        assert context_of(name, *own).params["table"] is None
        return
    with pytest.raises(click.UsageError, match=r"no table: give KEYSPACE\.TABLE, or -t and -k"):
        context_of(name, *own)
