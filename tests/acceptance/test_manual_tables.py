"""Tables of the manual's site are seen whole beside the menu, in a browser of an ordinary width."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from playwright.sync_api import Browser

from manual.site import ROOT, copy_pages

#: The width of a small laptop.
WIDTH = 1366
#: Tables that are wider than their place, by their first heading.
CUT = """() => [...document.querySelectorAll('article table')]
    .filter(table => table.scrollWidth > table.closest('.md-typeset__scrollwrap').clientWidth)
    .map(table => table.querySelector('th').innerText)"""


def test_no_table_of_figures_is_cut(browser: Browser, tmp_path: Path) -> None:
    # Given the site
    copy_pages(target=tmp_path / "build" / "pages")
    (tmp_path / "mkdocs.yml").write_bytes((ROOT / "mkdocs.yml").read_bytes())
    zensical = Path(sys.executable).with_name("zensical")
    subprocess.run([zensical, "build"], cwd=tmp_path, check=True, capture_output=True, timeout=120)

    # When the benchmarks are opened, then no table is cut; and the check can tell
    page = browser.new_page(viewport={"width": WIDTH, "height": 900})
    page.goto((tmp_path / "build/site/docs/explanation/benchmarks.html").as_uri())
    page.wait_for_selector(".md-typeset__scrollwrap table")
    assert page.locator("article table").count() > 10
    assert page.evaluate(CUT) == []
    page.set_viewport_size({"width": WIDTH // 3, "height": 900})
    assert page.evaluate(CUT) != []
    page.close()
