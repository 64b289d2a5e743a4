"""Debian's chromium, driven by playwright: pages as people see and use them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

from tests.acceptance.command import wait_until

LAPTOP = (1280, 800)
PHONE = (390, 844)
TIMEOUT_MS = 20_000


@contextmanager
def running_browser() -> Iterator[Browser]:
    """Run a headless chromium during the block. Within it, no other event loop can run in this
    thread."""
    chromium = shutil.which("chromium")  # playwright's own browsers are not downloaded
    assert chromium, "chromium is missing: make test-tools"
    expect.set_options(timeout=TIMEOUT_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium,
            # Containers give no second namespace, and little shared memory.
            args=["--no-sandbox", "--disable-dev-shm-usage"],
        )
        try:
            yield browser
        finally:
            browser.close()


class Tab:
    """A page of a browser, and what its console reported."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.errors: list[str] = []  #: Console errors, refused scripts and styles among them.
        page.set_default_timeout(TIMEOUT_MS)
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.errors.append(message.text)

    def text(self, selector: str) -> str:
        """Return the text of the first element that matches."""
        return self.page.locator(selector).first.inner_text()

    def data(self, name: str) -> str | None:
        """Return the value of an attribute `data-NAME`, of the first element that has it."""
        found = self.page.locator(f"[data-{name}]").first
        return found.get_attribute(f"data-{name}") if found.count() else None

    def wait_for(self, holds: Callable[[], bool], what: str, timeout_s: float = 30) -> None:
        """Wait until something holds; on timeout, fail with a message that names `what`."""

        def look() -> bool:
            self.page.wait_for_timeout(50)  # lets the page's events in
            return holds()

        wait_until(look, what, timeout_s)


@contextmanager
def open_tab(
    browser: Browser,
    *,
    size: tuple[int, int] = LAPTOP,
    scheme: Literal["light", "dark"] = "light",
) -> Iterator[Tab]:
    """Open a tab without cookies or history during the block."""
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]}, color_scheme=scheme
    )
    try:
        yield Tab(context.new_page())
    finally:
        context.close()
