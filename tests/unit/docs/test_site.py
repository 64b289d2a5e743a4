"""The manual as a site: it builds without a warning, every page is in its menu, its search finds
words, and it loads nothing from elsewhere."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from manual.site import ROOT, copy_pages, pages, without_folders

CONFIG = ROOT / "mkdocs.yml"


def listed(nav: Any) -> list[str]:
    """Return the pages of a menu, in order."""
    if isinstance(nav, str):
        return [nav]
    parts = nav.values() if isinstance(nav, dict) else nav
    return [page for part in parts for page in listed(part)]


def build(root: Path, config: Path = CONFIG) -> subprocess.CompletedProcess[str]:
    """Build the site of the pages in root/build/pages."""
    (root / "mkdocs.yml").write_text(config.read_text())
    return subprocess.run(
        [Path(sys.executable).with_name("zensical"), "build", "--strict", "--clean"],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("manual")
    copy_pages(target=root / "build" / "pages")
    done = build(root)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "No issues found" in done.stdout + done.stderr
    return root / "build" / "site"


def test_the_menu_has_every_page_once() -> None:
    menu = listed(yaml.safe_load(CONFIG.read_text())["nav"])
    assert sorted(menu) == [str(page.relative_to(ROOT)) for page in pages()]


def test_every_page_is_built(site: Path) -> None:
    built = {str(page.relative_to(site)) for page in site.rglob("*.html")}
    for page in pages():
        name = str(page.relative_to(ROOT)).removesuffix(".md")
        assert {f"{name}.html", f"{name.replace('README', 'index')}.html"} & built


def test_search_knows_options_and_words(site: Path) -> None:
    index = json.loads((site / "search.json").read_text())
    texts = {item["location"]: json.dumps(item) for item in index["items"]}
    for words, page in {
        "--create-table": "docs/reference/commands/load.html",
        "EXIT_FATAL": "docs/reference/exit-codes.html",
        "nightly": "docs/how-to/nightly-etl.html",
    }.items():
        assert any(words in text for at, text in texts.items() if at.startswith(page)), words


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    loads = re.compile(r"<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=\"?(https?:[^\"\s>]+)")
    for page in site.rglob("*.html"):
        text = page.read_text()
        assert not loads.findall(text), page
        assert 'class="mermaid"' not in text, "the theme would fetch what draws it"
    for style in site.rglob("*.css"):
        assert not re.findall(r"url\(\"?https?:|@import", style.read_text()), style


def test_a_dead_link_or_anchor_fails(tmp_path: Path) -> None:
    # Given a page that links to a missing anchor
    page = tmp_path / "build" / "pages" / "README.md"
    page.parent.mkdir(parents=True)
    page.write_text("# A\n\n[there](#nowhere)\n")
    config = tmp_path / "config.yml"
    config.write_text(CONFIG.read_text().partition("nav:")[0])
    # Then the build fails, and without the link it does not
    assert build(tmp_path, config).returncode != 0
    page.write_text("# A\n\n[there](#a)\n")
    assert build(tmp_path, config).returncode == 0


def test_links_to_folders_become_text(tmp_path: Path) -> None:
    (tmp_path / "deploy").mkdir()
    (tmp_path / "a.md").touch()
    text = "[deploy](deploy) [a](a.md#x) [out](https://h/deploy)"
    assert without_folders(tmp_path / "b.md", text) == text.replace("[deploy](deploy)", "deploy", 1)
