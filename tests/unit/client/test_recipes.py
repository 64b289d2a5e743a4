"""Calls of the client in recipes exist, with their arguments.

`tests/acceptance/test_recipes.py` runs the recipes; those for other software only where that is
installed.
"""

from __future__ import annotations

import ast
import inspect
import typing
from pathlib import Path

import pytest

from ringhaul.client import Client
from ringhaul.client.options import OPTIONS

RECIPES = sorted((Path(__file__).parents[3] / "docs" / "recipes").glob("*.py"))


def arguments_of(method: str) -> set[str]:
    """The keyword arguments of a method of `Client`, with the options of its command."""
    found = set(inspect.signature(getattr(Client, method)).parameters)
    command = method.rpartition("_")[2]
    options = {"read": "unload", "batches": "unload", "counts": "count"}.get(command, command)
    return found | set(typing.get_type_hints(OPTIONS[options]) if options in OPTIONS else ())


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.stem)
def test_calls_have_arguments_that_exist(recipe: Path) -> None:
    calls = [
        node
        for node in ast.walk(ast.parse(recipe.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and ast.unparse(node.func.value) == "client"
    ]
    assert calls
    for call in calls:
        assert isinstance(call.func, ast.Attribute)
        given = {keyword.arg for keyword in call.keywords}
        assert given <= arguments_of(call.func.attr), ast.unparse(call)
