"""The command that made a job, as its job keeps it."""

from __future__ import annotations

import shlex

import pytest

from producer.commands.registry import find_command
from producer.request.command_line import CHARS_MAX, command_line


def kept(*words: str) -> str:
    command = find_command(words[0])
    assert command is not None
    return command_line(command.make_context(words[0], list(words[1:])))


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (
            "load a.csv 'b c.csv' -t shop.orders --where \"x = 'y z'\" -q",
            "ringhaul load a.csv 'b c.csv' -t shop.orders --where 'x = '\"'\"'y z'\"'\"'' -q",
        ),
        (
            "load x.csv -t s.o --no-header --null A --null B",
            "ringhaul load x.csv -t s.o --no-header --null A --null B",
        ),
        ("load x.csv -t s.o --rate 2500", "ringhaul load x.csv -t s.o --rate 2500"),
        ("unload -t s.o -o d --rate 20MB/s", "ringhaul unload -t s.o -o d --rate 20MB/s"),
        ("count -t s.o", "ringhaul count -t s.o"),
        (
            "load https://joe:hunter2@h/a.csv?sig=hunter2 -t s.o --broker redis://:hunter2@r/0",
            "ringhaul load 'https://joe:***@h/a.csv?sig=***' -t s.o --broker 'redis://:***@r/0'",
        ),
        (
            "load x.csv -t s.o --broker=redis://:hunter2@r/0",
            "ringhaul load x.csv -t s.o '--broker=redis://:***@r/0'",
        ),
        ("query 'SELECT 1'", "ringhaul query 'SELECT 1'"),
    ],
)
def test_what_was_given_is_kept_without_secrets(given: str, shown: str) -> None:
    assert kept(*shlex.split(given)) == shown


def test_it_may_be_run_again() -> None:
    words = ["load", "a b.csv", "-t", "s.o", "--where", 'x = "y"', "--no-header"]
    again = shlex.split(kept(*words))[1:]
    assert kept(*again) == kept(*words)


def test_a_long_one_is_cut() -> None:
    text = kept("load", *(f"file-{n}.csv" for n in range(1000)), "-t", "s.o")
    assert len(text) == CHARS_MAX + 3 and text.endswith("...")


def test_a_program_has_none() -> None:
    assert command_line() == ""


def test_it_stays_one_line() -> None:
    assert "\n" not in kept("query", "SELECT 1\nFROM x\x1b[31m")
