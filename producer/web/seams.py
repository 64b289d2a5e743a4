"""The places where our pages join Flower. Its start checks them, and a test pins them.

Flower has no interface for plug-ins. But it is an application of Tornado, which takes handlers and
a template loader; its base handler knows its log-in; and its layout has blocks. If one of these is
not what it was, our pages are left out, and plain Flower starts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tornado.web import Application, RequestHandler

#: The list of links in Flower's navigation; ours are inserted behind its last link.
NAVIGATION = '<ul class="app-nav navbar-nav">'
#: Blocks of Flower's layout that our layout fills.
BLOCKS = ("title", "navbar", "container", "extra_scripts")
#: What our handlers use of Flower's base class, besides what Tornado's has.
METHODS = ("get_current_user", "check_xsrf_cookie", "render", "write_error")
#: Options of Flower that our pages and their start read.
OPTIONS = ("address", "auth", "basic_auth", "read_only", "unix_socket", "url_prefix")


class FlowerChanged(Exception):
    """Our pages do not know this version of Flower; the text says what is different."""


def check_seams(application: Application) -> None:
    """Raise FlowerChanged if a part of Flower that our pages use is missing or different."""
    for what, holds in _seams(application):
        try:
            if holds():
                continue
        except Exception as error:
            raise FlowerChanged(f"{what} ({type(error).__name__}: {error})") from error
        raise FlowerChanged(what)


def add_links(navigation: str, links: str) -> str:
    """Return Flower's navigation with `links` behind its last link.

    Raises FlowerChanged if it has another form.
    """
    before, found, after = navigation.partition(NAVIGATION)
    listed, end, rest = after.partition("</ul>")
    if not (found and end) or "active_tab" not in listed:
        raise FlowerChanged("its navigation has another form")
    return f"{before}{found}{listed}{links}{end}{rest}"


def flower_templates(application: Application) -> Path:
    """Return the folder of Flower's own templates."""
    return Path(application.settings["template_path"])


def _seams(application: Application) -> Iterator[tuple[str, Callable[[], bool]]]:
    """Yield what may be different, in words, and a check that it is not."""
    yield "its application is not one of Tornado", lambda: isinstance(application, Application)
    yield "it loads templates in its own way", lambda: "template_loader" not in application.settings
    yield (
        "it has other metrics",
        lambda: callable(getattr(application, "purge_offline_worker_metrics", None)),
    )
    yield "its options have other names", lambda: _has_options(application)
    yield "its base handler cannot be imported", lambda: bool(_base_handler())
    base = _base_handler()
    yield "its base handler is not one of Tornado", lambda: issubclass(base, RequestHandler)
    yield (
        "its base handler has other methods",
        lambda: all(callable(getattr(base, name, None)) for name in METHODS),
    )
    # Ours have their own, and would have to call them.
    yield (
        "its base handler prepares requests itself",
        lambda: all(name not in vars(base) for name in ("initialize", "prepare", "finish")),
    )
    yield "its layout has other blocks", lambda: _has_blocks(application)
    yield (
        "its navigation has another form",
        lambda: bool(add_links(_template(application, "navbar.html"), "-")),
    )


def _base_handler() -> Any:
    from flower.views import BaseHandler

    return BaseHandler


def _has_options(application: Any) -> bool:
    return all(hasattr(application.options, name) for name in OPTIONS)


def _has_blocks(application: Application) -> bool:
    layout = _template(application, "base.html")
    return all(f"{{% block {name} %}}" in layout for name in BLOCKS)


def _template(application: Application, name: str) -> str:
    return (flower_templates(application) / name).read_text(encoding="utf-8")
