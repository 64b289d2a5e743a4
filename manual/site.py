"""Copy the pages of the manual to build/pages, from which `make docs` builds the site.

The site has the repository's folders, so that a link between two files works in both. Links lead
also to files that are no pages, such as examples of settings; those are copied with them. A link to
a folder becomes plain text.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES_DIR = ROOT / "build" / "pages"
#: The site's own style; `mkdocs.yml` names it.
STYLE = ROOT / "manual" / "site.css"
#: Pages beside `docs` and `deploy`.
TOP_PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "THIRD_PARTY.md")
_FENCE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
#: A link or a picture: its text and its target.
LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")
#: A picture in HTML.
_SOURCE = re.compile(r'<img src="([^"]+)"')
_OUTSIDE = re.compile(r"[a-z]+:")


def pages(root: Path = ROOT) -> list[Path]:
    """Return all pages of the manual, sorted."""
    top = [root / name for name in TOP_PAGES]
    return sorted([*top, *(root / "docs").rglob("*.md"), *(root / "deploy").rglob("*.md")])


def local_targets(page: Path, text: str) -> Iterator[tuple[str, Path]]:
    """Yield each link of a page to a file or folder, without its anchor, and where it leads."""
    plain = _FENCE.sub("", text)
    targets = [target for _, target in LINK.findall(plain)]
    for target in [*targets, *_SOURCE.findall(plain)]:
        path = target.partition("#")[0]
        if path and not _OUTSIDE.match(target):
            yield path, Path(os.path.normpath(page.parent / path))


def without_folders(page: Path, text: str) -> str:
    """Make plain text of links to folders: a site has no page for them."""

    def plain(match: re.Match[str]) -> str:
        target = match[2].partition("#")[0]
        is_folder = not _OUTSIDE.match(match[2]) and target and (page.parent / target).is_dir()
        return match[1] if is_folder else match[0]

    return LINK.sub(plain, text)


def copy_pages(root: Path = ROOT, target: Path = PAGES_DIR) -> list[Path]:
    """Copy all pages, and the files that they link to, to `target`; return the copied pages.

    Raises `FileNotFoundError` for a link that leads nowhere.
    """
    shutil.rmtree(target, ignore_errors=True)
    copied = []
    for page in pages(root):
        text = page.read_text()
        for _, file in local_targets(page, text):
            if not file.is_dir() and file.suffix != ".md":
                _copy(file, target / file.relative_to(root))
        place = target / page.relative_to(root)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(without_folders(page, text))
        copied.append(place)
    _copy(STYLE, target / STYLE.name)
    return copied


def _copy(file: Path, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, place)


if __name__ == "__main__":
    print(f"{len(copy_pages())} pages in {PAGES_DIR.relative_to(ROOT)}")
