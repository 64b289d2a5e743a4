"""The client's list of options is that of the commands."""

from __future__ import annotations

import typing

import pytest
import rich_click as click

from producer.commands.registry import find_command
from ringhaul.client.arguments import option_arguments
from ringhaul.client.errors import UsageError
from ringhaul.client.options import OPTIONS
from tests.cases import each
from tests.client_options import (
    ARGUMENTS,
    CONNECTION,
    JOB_COMMANDS,
    OURS,
    generated,
    long_name,
    offered,
)


def test_the_list_is_that_of_the_commands() -> None:
    namespace: dict[str, typing.Any] = {"__name__": "generated"}
    exec(compile(generated(), "generated", "exec"), namespace)
    wanted = namespace["OPTIONS"]
    assert list(OPTIONS) == list(wanted)
    for command, options in OPTIONS.items():
        hints = typing.get_type_hints(wanted[command], namespace, include_extras=True)
        assert typing.get_type_hints(options, include_extras=True) == hints, (
            f"{command}: run `python -m tests.client_options`"
        )


@pytest.mark.parametrize("command", JOB_COMMANDS)
def test_no_option_is_left_out_without_a_reason(command: str) -> None:
    found = find_command(command)
    assert found is not None
    every = {long_name(one) for one in found.params if isinstance(one, click.Option)}
    there = {keyword.replace("_", "-") for keyword, _ in offered(command)}
    assert every - there == every & (OURS | CONNECTION | ARGUMENTS[command])


#: One value for each kind of option -> as it is on a command line.
CASES: list[tuple[str, object, list[str]]] = [
    ("skip_rows", 2, ["--skip-rows=2"]),
    ("max_errors", "1%", ["--max-errors=1%"]),
    ("max_errors", -1, ["--max-errors=-1"]),
    ("quote", "", ["--quote="]),
    ("delimiter", ";", ["--delimiter=;"]),
    ("null", "NULL", ["--null=NULL"]),
    ("null", ["NULL", ""], ["--null=NULL", "--null="]),
    ("columns", ["id", '"Total"'], ['--columns=id,"Total"']),
    ("columns", "id,total", ["--columns=id,total"]),
    ("header", False, ["--no-header"]),
    ("header", True, ["--header"]),
    ("allow_nul", True, ["--allow-nul"]),
    ("allow_nul", False, []),
    ("timezone", None, []),
]


@each(("keyword", "value", "words"), CASES)
def test_a_keyword_becomes_an_option(keyword: str, value: object, words: list[str]) -> None:
    assert option_arguments("load", {keyword: value}) == words


def test_click_reads_what_the_client_writes() -> None:
    command = find_command("load")
    assert command is not None
    words = [word for _, _, found in CASES[1:] for word in found]
    context = command.make_context("load", ["--table=k.t", *words, "--", "a.csv"])
    assert context.params["max_errors"] == "-1" and context.params["quote"] == ""
    assert context.params["null_strings"] == ("NULL", "NULL", "")
    values = option_arguments("lookup", {"values_header": False})
    assert values == ["--no-values-header"]
    lookup = find_command("lookup")
    assert lookup is not None
    context = lookup.make_context("lookup", ["--table=k.t", "--keys=k.csv", *values])
    assert context.params["values_header"] is False


@each(
    ("command", "options", "said"),
    [
        ("load", {"skip_row": 1}, "load has no option 'skip_row'; did you mean 'skip_rows'?"),
        ("count", {"zzz": 1}, "count has no option 'zzz': see `ringhaul count --help`"),
        ("load", {"broker": "none"}, "'broker' here: give it to Client(...)"),
        ("load", {"dry_run": True}, "use plan_load"),
        ("load", {"detach": True}, "use submit_load"),
        ("load", {"header": "no"}, "header is True or False, not 'no'"),
        ("load", {"ttl": "soon"}, "ttl is a number, not 'soon'"),
        ("load", {"ttl": True}, "ttl is a text or a number, not True"),
        ("load", {"where": b"x"}, "where is a text or a number, not b'x'"),
        ("load", {"where": "a\0b"}, "where contains a NUL"),
    ],
)
def test_what_cannot_be_an_option_is_refused(
    command: str, options: dict[str, object], said: str
) -> None:
    with pytest.raises(UsageError) as caught:
        option_arguments(command, options)
    assert said in caught.value.message
