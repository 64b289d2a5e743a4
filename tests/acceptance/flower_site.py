"""A running `ringhaul flower`, and requests to it with any header."""

from __future__ import annotations

import http.client
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

from producer.local.ports import is_open
from tests.acceptance.command import Ringhaul, wait_until
from tests.acceptance.running import Running, free_port, running


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    text: str


class FlowerSite:
    """Flower at a port of this host."""

    def __init__(self, port: int, process: Running) -> None:
        self.port, self.process = port, process
        self.url = f"http://127.0.0.1:{port}"

    def ask(
        self, method: str, path: str, form: Mapping[str, str] | None = None, **headers: str
    ) -> Answer:
        """Send a request; a header `Sec-Fetch-Site` is the argument `Sec_Fetch_Site`."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        body = None if form is None else urlencode(form)
        if body is not None:
            given["Content-Type"] = "application/x-www-form-urlencoded"
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request(method, path, body, given)
            answer = connection.getresponse()
            text = answer.read().decode(errors="replace")
            # Several cookies may be set: their lines are joined.
            found: dict[str, str] = {}
            for name, value in answer.getheaders():
                found[name] = f"{found[name]}\n{value}" if name in found else value
            return Answer(answer.status, found, text)
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, **headers)

    def send_form(self, path: str, form: Mapping[str, str], **headers: str) -> Answer:
        """Load the page with the form, and send it with the page's token, as a browser does."""
        page = self.get(path, **headers)
        token = re.search(r'name="_xsrf" value="([^"]+)"', page.text)
        cookie = re.search(r"_xsrf=[^;]+", page.headers.get("Set-Cookie", ""))
        assert token and cookie, page
        return self.ask("POST", path, {**form, "_xsrf": token[1]}, Cookie=cookie[0], **headers)


@contextmanager
def flower_site(
    ringhaul: Ringhaul, *arguments: object, log: Path | None = None, port: int = 0, **env: str
) -> Iterator[FlowerSite]:
    """Run `ringhaul flower` for the length of the block. `port`: 0 for any that is free."""
    port = port or free_port()
    argv = ringhaul.argv("flower", f"--port={port}", *arguments)
    with running(argv, ringhaul.env | env, ringhaul.cwd, log) as process:
        wait_until(
            lambda: process.read() and is_open("127.0.0.1", port), f"Flower; see {process.log}"
        )
        yield FlowerSite(port, process)
