"""Templates as Tornado compiles them: each is one function, so a loop makes a local variable."""

from __future__ import annotations

import re
from pathlib import Path

import producer.web
from tests.cases import each

TEMPLATES = sorted((Path(producer.web.__path__[0]) / "templates").glob("*.html"))
_TAG = re.compile(r"\{\{(.*?)\}\}|\{%(.*?)%\}", re.DOTALL)
_MADE = re.compile(r"\s*(?:for\s+(.+?)\s+in\s+(.*)|set\s+([\w, ]+?)\s*=(?!=)\s*(.*))", re.DOTALL)
_INNER = re.compile(r"\bfor\s+([\w, ]+?)\s+in\b")
_NAME = re.compile(r"(?<![.\w])[a-z_]\w*")
_TEXT = re.compile(r"\"[^\"]*\"|'[^']*'")


def used_before_made(template: str) -> set[str]:
    """Return the names that a loop or a `set` makes after the template has used them: at the first
    use, Python raises UnboundLocalError."""
    used: set[str] = set()
    made: set[str] = set()
    wrong: set[str] = set()
    for shown, said in _TAG.findall(template):
        found = _MADE.match(said)
        code, names = shown or said, ""
        if found:
            names, code = found[1] or found[3], found[2] or found[4]
        code = _TEXT.sub("", code)
        inner = " ".join(_INNER.findall(code))  # a generator has names of its own
        used |= set(_NAME.findall(code)) - set(_NAME.findall(inner)) - made
        new = set(re.findall(r"\w+", names))
        wrong |= new & used
        made |= new
    return wrong


def test_a_name_that_a_loop_takes_is_found() -> None:
    assert used_before_made("{% if problem %}x{% end %}{% for problem in all %}{% end %}") == {
        "problem"
    }
    assert used_before_made("{% for a, b in rows %}{{ a }}{% end %}{% for a in b %}{% end %}") == (
        set()
    )
    assert (
        used_before_made('{{ x["row"] }}{{ y.row }}{% for row in x %}{{ row }}{% end %}') == set()
    )


@each("template", TEMPLATES, ids=lambda path: path.name)
def test_no_loop_takes_a_name_that_the_page_was_given(template: Path) -> None:
    assert used_before_made(template.read_text()) == set()
