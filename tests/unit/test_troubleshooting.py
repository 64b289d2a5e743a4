"""Each message that docs/troubleshooting.md quotes is one that the product can print."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from tests.cases import each

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text()
#: Stands for a part of a message that differs.
GAP = "..."
QUOTED = re.findall(r"^### `(.+)`$", PAGE, re.MULTILINE)


def texts_of(source: str) -> list[str]:
    """The string constants of a module, with `GAP` for what an f-string fills in."""
    tree = ast.parse(source)
    inner = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in ast.walk(node)
        if isinstance(part, ast.Constant)
    }
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            found.append("".join(map(_part_text, node.values)))
        elif isinstance(node, ast.Constant) and id(node) not in inner:
            found.append(str(node.value))
    return found


def _part_text(part: ast.expr) -> str:
    """Return a part of an f-string: its text, the option that it spells, or `GAP`."""
    if isinstance(part, ast.Constant):
        return str(part.value)
    call = part.value if isinstance(part, ast.FormattedValue) else part
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
        (name, *_) = call.args or [None]
        if call.func.id in ("job_option", "input_option") and isinstance(name, ast.Constant):
            return f"--{name.value!s}"
    return GAP


@cache
def texts() -> tuple[str, ...]:
    """Return the texts of the product; it takes seconds, which only this file's tests spend."""
    return tuple(
        text
        for room in ("producer", "ringhaul", "tasks", "config")
        for path in (ROOT / room).rglob("*.py")
        for text in texts_of(path.read_text())
    )


def is_said(message: str, texts: Sequence[str]) -> bool:
    """Whether one text has the fixed parts of the message, in their order."""
    pattern = re.compile(".*".join(map(re.escape, message.split(GAP))), re.DOTALL)
    return any(pattern.search(text) for text in texts)


@each("message", QUOTED)
def test_the_product_says_it(message: str) -> None:
    fixed = message.replace(GAP, "")
    assert len(fixed) > 12, "too short to recognise"
    assert is_said(message, texts())


def test_the_page_has_many_and_each_once() -> None:
    assert len(QUOTED) == len(set(QUOTED)) > 35


def test_a_message_that_nobody_says_is_found() -> None:
    (text,) = texts_of('raise E(f"no node answers at {address}: " "is it up?")')
    assert text == "no node answers at ...: is it up?"
    assert is_said("no node ... up?", [text])
    assert not is_said("no node is at ...", [text])
    assert not is_said("up? ... no node", [text])
