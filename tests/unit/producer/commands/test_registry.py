"""The help of `ringhaul` says what the commands say, without importing them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from producer.commands.registry import COMMANDS, find_command

#: What costs a tenth of a second or more to import.
HEAVY = {
    "cassandra",
    "celery",
    "kombu",
    "numba",
    "numpy",
    "pyarrow",
    "pydantic",
    "redis",
    "sqlglot",
}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_summary_is_the_first_sentence_of_the_help(name: str) -> None:
    command = find_command(name)
    assert command is not None and command.name == name and command.help is not None
    first = " ".join(command.help.split("\n\n")[0].split())
    assert first == COMMANDS[name].summary
    assert len(first) <= 80


def test_what_is_no_command_is_none() -> None:
    assert find_command("laod") is None


def imported(*arguments: str) -> set[str]:
    """The modules that a command imports."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-P", "-m", "producer", *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    assert len(lines) > 100, done.stderr
    return {line.rpartition("|")[2].strip() for line in lines}


@pytest.mark.parametrize(
    ("arguments", "modules_max", "needed"),
    [
        (("--version",), 300, set()),
        (("--help",), 550, set()),
        (("load", "--help"), 700, {"pydantic"}),
        (("status", "--help"), 700, {"pydantic"}),
    ],
)
def test_few_modules_are_imported(
    arguments: tuple[str, ...], modules_max: int, needed: set[str]
) -> None:
    """Imports are nearly all of the time of such a command. On an idle core 440 take 0.14 s."""
    modules = imported(*arguments)
    assert modules & HEAVY == needed
    assert len(modules) <= modules_max
