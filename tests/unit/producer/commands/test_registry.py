"""The help of `ringhaul` agrees with the commands, without importing them."""

from __future__ import annotations

import shlex
import subprocess
import sys

import pytest
import rich_click as click

from producer.commands.click_options import AS_STEP
from producer.commands.registry import COMMANDS, find_command
from tests.cases import each

#: Packages that take a tenth of a second or more to import.
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


@each("name", COMMANDS)
def test_the_summary_is_the_first_sentence_of_the_help(name: str) -> None:
    command = find_command(name)
    assert command is not None and command.name == name and command.help is not None
    first = " ".join(command.help.split("\n\n")[0].split())
    assert first == COMMANDS[name].summary
    assert len(first) <= 80


@each("name", COMMANDS)
def test_the_example_is_a_command_line(name: str) -> None:
    program, command, *arguments = shlex.split(COMMANDS[name].example)
    assert (program, command) == ("ringhaul", name)
    found = find_command(name)
    while isinstance(found, click.Group):
        found = found.get_command(click.Context(found), arguments.pop(0))
    assert found is not None
    found.make_context(name, arguments, obj=AS_STEP)


def test_an_unknown_command_is_not_found() -> None:
    assert find_command("laod") is None


def imported(*arguments: str) -> set[str]:
    """The modules that a command imports."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-P", "-m", "ringhaul", *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    assert len(lines) > 100, done.stderr
    return {line.rpartition("|")[2].strip() for line in lines}


@pytest.mark.parametrize(
    ("arguments", "modules_max"),
    [(("--version",), 200), (("--help",), 350), (("load", "--help"), 400)],
)
def test_few_modules_are_imported(arguments: tuple[str, ...], modules_max: int) -> None:
    """Imports are nearly all of the time of such a command: some 0.3 ms each on an idle core."""
    modules = imported(*arguments)
    assert modules & HEAVY == set()
    assert len(modules) <= modules_max


def test_no_command_imports_anything_heavy_for_its_help() -> None:
    script = (
        "import sys\n"
        "from producer.commands.registry import COMMANDS, find_command\n"
        "for name in COMMANDS:\n"
        "    assert find_command(name) is not None\n"
        "print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    modules = set(done.stdout.split())
    assert "producer.commands.load" in modules
    assert modules & HEAVY == set()
