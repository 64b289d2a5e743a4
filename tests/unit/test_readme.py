"""The README can be read in a minute: short, with the two commands, a picture and ways on."""

from __future__ import annotations

import re
from pathlib import Path

README = (Path(__file__).parents[2] / "README.md").read_text()


def test_it_is_short() -> None:
    assert len(README.splitlines()) < 150


def test_it_has_the_two_commands_on_the_first_screen() -> None:
    first = README.splitlines()[:40]
    for command in ("$ make demo", "$ make test"):
        assert any(line.startswith(command) for line in first)


def test_it_has_a_picture_an_install_line_and_the_four_kinds_of_page() -> None:
    assert re.search(r"^!\[.+\]\(docs/pictures/", README, re.MULTILINE)
    assert "pip install" in README
    for link in ("docs/tutorial.md", "docs/how-to/", "docs/reference/", "docs/explanation/"):
        assert f"]({link}" in README
