"""Templates of the pages: Flower's own, its navigation with our links, and ours."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from importlib import resources
from pathlib import Path

from tornado.template import Loader, Template

from producer.report.job_html import job_style
from producer.web.seams import add_links

#: How the names of our templates start. Not a folder: templates of Flower that ours extend would be
#: looked for in it.
PREFIX = "rh-"


class PageTemplates(Loader):
    """Loads Flower's templates from its folder, and ours from this room."""

    def __init__(self, folder: Path, *, links: str) -> None:
        """`folder`: Flower's templates. `links`: what its navigation gets, a template."""
        super().__init__(str(folder))
        self._folder, self._links = folder, links

    def _create_template(self, name: str) -> Template:
        if name.startswith(PREFIX):
            text = _text("templates", name.removeprefix(PREFIX))
            return Template(text, name=name, loader=self, autoescape="shown")
        text = (self._folder / name).read_text(encoding="utf-8")
        if name == "navbar.html":
            text = add_links(text, self._links)
        return Template(text, name=name, loader=self)


@cache
def static_version() -> str:
    """Return a short name of the content of our style sheet and script, for their URLs: a browser
    may keep them until they change."""
    texts = [job_style(), *(_text("static", name) for name in ("jobs.css", "jobs.js"))]
    return sha256("".join(texts).encode()).hexdigest()[:12]


def static_folder() -> Path:
    """Return the folder of our style sheet and script."""
    return Path(str(resources.files(__package__).joinpath("static")))


def _text(folder: str, name: str) -> str:
    return resources.files(__package__).joinpath(folder, name).read_text(encoding="utf-8")
