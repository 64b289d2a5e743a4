"""The contract with Flower: what our pages use of it is as they know it, and each change is seen.

If this fails after an update of Flower: compare its templates, options and `BaseHandler` with
`producer/web/seams.py`, adapt the pages, and then the contract.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import flower.views
import pytest
from flower.app import Flower
from flower.options import options
from flower.urls import handlers, settings
from tornado.web import Application

from producer.web import plugin, routes
from producer.web.exposure import Exposure
from producer.web.seams import (
    BLOCKS,
    METHODS,
    OPTIONS,
    FlowerChanged,
    add_links,
    check_seams,
    flower_templates,
)

EXPOSURE = Exposure(
    show_data=False,
    read_only=True,
    flower_read_only=True,
    hosts=frozenset({"localhost"}),
    proxied=frozenset(),
)


@pytest.fixture
def application(tmp_path: Path) -> Application:
    """An application like Flower's, with templates that a test may change."""
    folder = tmp_path / "templates"
    shutil.copytree(settings["template_path"], folder)
    application = Application(handlers, **{**settings, "template_path": str(folder)})
    application.options = options  # type: ignore[attr-defined]
    application.purge_offline_worker_metrics = Flower.purge_offline_worker_metrics  # type: ignore
    return application


@pytest.fixture(autouse=True)
def no_ledger(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The pages look into the ledger when they are added; here they need not."""
    monkeypatch.setattr(routes, "_open_ledger", lambda: None)
    yield


def test_flower_is_as_the_pages_know_it(application: Application) -> None:
    check_seams(application)


def change_template(name: str, old: str, new: str) -> Callable[[Any, Any], None]:
    def change(application: Application, monkeypatch: pytest.MonkeyPatch) -> None:
        path = flower_templates(application) / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    return change


def remove_method(name: str) -> Callable[[Any, Any], None]:
    def change(application: Application, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(flower.views.BaseHandler, name, None)

    return change


def remove_option(name: str) -> Callable[[Any, Any], None]:
    def change(application: Application, monkeypatch: pytest.MonkeyPatch) -> None:
        class Others:
            def __getattr__(self, asked: str) -> object:
                if asked == name:
                    raise AttributeError(asked)
                return getattr(options, asked)

        application.options = Others()  # type: ignore[attr-defined]

    return change


def other_loader(application: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    application.settings["template_loader"] = object()


def other_metrics(application: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    del application.purge_offline_worker_metrics  # type: ignore[attr-defined]


def own_prepare(application: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flower.views.BaseHandler, "prepare", lambda self: None, raising=False)


def no_base(application: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(flower.views, "BaseHandler")


def other_base(application: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flower.views, "BaseHandler", dict)


CHANGES: dict[str, Callable[[Any, Any], None]] = {
    **{
        f"no block {name}": change_template("base.html", f"block {name}", "block x")
        for name in BLOCKS
    },
    "other navigation": change_template("navbar.html", '<ul class="app-nav navbar-nav">', "<ul>"),
    "other tabs": change_template("navbar.html", "active_tab", "tab"),
    **{f"no method {name}": remove_method(name) for name in METHODS},
    **{f"no option {name}": remove_option(name) for name in OPTIONS},
    "another loader": other_loader,
    "other metrics": other_metrics,
    "its own prepare": own_prepare,
    "no base handler": no_base,
    "another base handler": other_base,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_changed_flower_starts_without_the_pages_and_says_why(
    application: Application,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    change: Callable[[Any, Any], None],
) -> None:
    change(application, monkeypatch)
    with pytest.raises(FlowerChanged):
        check_seams(application)
    before = dict(application.settings)
    with caplog.at_level(logging.WARNING):
        assert not plugin.add_pages(application, EXPOSURE)
    assert "are left out" in caplog.text
    # None of our routes and links were added
    assert application.settings == before
    with pytest.raises(KeyError):
        application.reverse_url("jobs")


def test_an_error_of_ours_leaves_plain_flower(
    application: Application, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(routes, "PageTemplates", lambda *_, **__: 1 / 0)
    assert not plugin.add_pages(application, EXPOSURE)
    assert "ZeroDivisionError" in caplog.text


def test_the_pages_are_added_behind_flowers_prefix(application: Application) -> None:
    application.options = type("Options", (), {"url_prefix": "/flower/"})  # type: ignore[attr-defined]
    with pytest.raises(FlowerChanged):  # it has no other option
        check_seams(application)
    options_of = {name: None for name in OPTIONS} | {"url_prefix": "/flower/"}
    application.options = type("Options", (), options_of)  # type: ignore[attr-defined]
    assert plugin.add_pages(application, EXPOSURE)
    assert application.reverse_url("job", "ld-1") == "/flower/jobs/ld-1"


def test_links_are_inserted_behind_the_last_one() -> None:
    navigation = '<ul class="app-nav navbar-nav"><li>{{ active_tab }}</li></ul><ul>others</ul>'
    assert add_links(navigation, "<li>Jobs</li>") == (
        '<ul class="app-nav navbar-nav"><li>{{ active_tab }}</li><li>Jobs</li></ul><ul>others</ul>'
    )
