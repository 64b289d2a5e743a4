"""The functions of the source that make hints: they name an option in a message."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from producer.commands.registry import find_command

ROOT = Path(__file__).parents[3]
#: Rooms whose messages are about input, and about the format of output. Others name options of jobs
#: and services, none of which changes a value.
ROOMS = (
    *("ringhaul/cql", "ringhaul/formats", "ringhaul/mapping", "ringhaul/records"),
    *("producer/destination", "producer/plan", "producer/inputs", "producer/request"),
)
_OPTION = re.compile(r"--[a-z][a-z-]*")
_CALLS = ("input_option", "reading", "known", "western_hint", "number_hint", "option_name")


@cache
def options_of_load() -> frozenset[str]:
    """The long names of all options of `load`."""
    command = find_command("load")
    assert command is not None
    names = (
        name
        for parameter in command.params
        for name in (*parameter.opts, *parameter.secondary_opts)
    )
    return frozenset(name for name in names if name.startswith("--"))


def hint_makers() -> set[str]:
    """`module:function` for each function that names an option of `load` in a text."""
    found = set()
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            found |= {f"{name}:{function}" for function in _makers(ast.parse(path.read_text()))}
    return found


def _makers(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            body = [statement for statement in node.body if not _is_docstring(statement)]
            if any(_names_an_option(part) for statement in body for part in ast.walk(statement)):
                yield node.name


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _names_an_option(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        called = node.func
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        if name == "job_option":
            option = node.args[0]
            fixed = isinstance(option, ast.Constant)
            return not fixed or f"--{ast.literal_eval(option)}" in options_of_load()
        return name in _CALLS
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return bool(options_of_load() & set(_OPTION.findall(node.value)))
    return False
