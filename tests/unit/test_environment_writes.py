"""Settings travel as values: no module changes the environment of its process.

A child process gets its environment by `env=` (`Loaded.environment`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.arrows import PACKAGES, ROOT

#: Module -> why it may change its process's environment.
ALLOWED = {
    "producer/commands/demo_run.py": "the demo must use nothing that is configured",
    "producer/commands/celery_commands.py": "Celery and billiard read it when they are imported",
    "tasks/application.py": "Celery and billiard read it when they are imported",
    "producer/startup.py": "numpy's linear algebra reads it when it is loaded",
}
_WRITING = {"setdefault", "update", "pop", "popitem", "clear", "__setitem__", "__delitem__"}
_FUNCTIONS = {"putenv", "unsetenv"}


def writes(source: str) -> Iterator[int]:
    """Yield the lines of a module that change the environment, directly or by another name."""
    tree = ast.parse(source)
    names = {"environ"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and _is_environment(node.value, names):
            names |= {one.id for one in node.targets if isinstance(one, ast.Name)}
        if isinstance(node, ast.ImportFrom) and node.module == "os":
            names |= {one.asname for one in node.names if one.name == "environ" and one.asname}
            if any(one.name in _FUNCTIONS for one in node.names):
                yield node.lineno
    for node in (one for one in ast.walk(tree) if isinstance(one, ast.expr | ast.stmt)):
        match node:
            case ast.Subscript(value=value, ctx=ast.Store() | ast.Del()):
                changed = _is_environment(value, names)
            case ast.Call(func=ast.Attribute(value=value, attr=name)):
                changed = (name in _WRITING and _is_environment(value, names)) or (
                    name in _FUNCTIONS and isinstance(value, ast.Name) and value.id == "os"
                )
            case ast.AugAssign(target=target):
                changed = _is_environment(target, names)
            case _:
                changed = False
        if changed:
            yield node.lineno


def _is_environment(node: ast.AST, names: set[str]) -> bool:
    match node:
        case ast.Attribute(value=ast.Name(id="os"), attr="environ"):
            return True
        case ast.Name(id=name):
            return name in names
    return False


def changing() -> set[str]:
    modules = (path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    return {
        path.relative_to(ROOT).as_posix()
        for path in modules
        if any(writes(path.read_text(encoding="utf-8")))
    }


def test_only_named_modules_change_the_environment() -> None:
    assert changing() == ALLOWED.keys()


@pytest.mark.parametrize(
    "planted",
    [
        "os.environ['A'] = 'b'",
        "os.environ['A'] += 'b'",
        "del os.environ['A']",
        "os.environ.setdefault('A', 'b')",
        "os.environ.update(a)",
        "os.environ.pop('A', None)",
        "os.environ |= {'A': 'b'}",
        "os.putenv('A', 'b')",
        "os.unsetenv('A')",
        "from os import putenv",
        "from os import environ\nenviron['A'] = 'b'",
        "from os import environ as variables\nvariables['A'] = 'b'",
        "variables = os.environ\nvariables['A'] = 'b'",
    ],
)
def test_a_planted_write_is_found(planted: str) -> None:
    assert list(writes(planted))


@pytest.mark.parametrize(
    "planted",
    ["a = os.environ['A']", "os.environ.get('A')", "a = dict(os.environ)\na['A'] = 'b'", "os.a()"],
)
def test_a_planted_read_is_not(planted: str) -> None:
    assert not list(writes(planted))
