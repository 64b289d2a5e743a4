"""Bases of our handlers: pages in Flower's layout, and JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from flower.views import BaseHandler
from tornado.web import HTTPError

from producer.report.html_values import FUNCTIONS
from producer.web.guards import ChangesGuarded
from producer.web.job_query import JobQuery, read_query
from producer.web.live_pages import View
from producer.web.site import Site
from producer.web.templates import PREFIX, static_version
from ringhaul.errors import LedgerUnavailable, RinghaulError, UsageError
from ringhaul.ledger.audit import JobDamaged
from ringhaul.ledger.connection import LedgerRefused
from ringhaul.ledger.keys import job_key
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.reading import JobMissing

T = TypeVar("T")

#: Headers with which Flower may open its API to other sites. Ours is for this one.
_CROSS_SITE = ("Origin", "Headers", "Methods")


class Problem(HTTPError):
    """An error with a message for people, who see it on a page."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(status)
        self.message = message


class Handler(ChangesGuarded, BaseHandler):  # type: ignore[misc]
    """Base of all our handlers. Like Flower's pages, each asks for its log-in: decorate methods
    with `tornado.web.authenticated`."""

    site: Site

    def initialize(self, site: Site) -> None:
        """Take what all handlers share."""
        self.site = site

    def set_default_headers(self) -> None:
        """Set Flower's headers, except the headers that open its API to other sites."""
        super().set_default_headers()
        for name in _CROSS_SITE:
            self.clear_header(f"Access-Control-Allow-{name}")

    async def look(self, look: Callable[[Ledger], T]) -> T:
        """Return the result of a look into the ledger, from a thread.

        Raises Problem with what to show instead.
        """
        try:
            return await self.site.looks.run(look)
        except RinghaulError as error:
            raise as_problem(error) from error

    def arguments_given(self) -> dict[str, str]:
        """Return the arguments of the URL. If one occurs several times, its last value counts."""
        return {
            name: values[-1].decode("utf-8", "replace")
            for name, values in self.request.query_arguments.items()
        }


class Page(Handler):
    """Base of our pages."""

    tab = "jobs"  #: The entry of our navigation that is current.

    def show(self, template: str, **values: object) -> None:
        """Render one of our templates."""
        names = {**FUNCTIONS, "url": self.site.url, "read_only": self.site.exposure.read_only}
        self.render(
            f"{PREFIX}{template}", **names, tab=self.tab, version=static_version(), **values
        )

    async def show_live(
        self, template: str, look: Callable[[Ledger], View], *, stream: str, **values: object
    ) -> None:
        """Render a page that its stream keeps up to date. `stream`: the URL of its stream.

        If Redis does not answer, the page says so, and shows the rest as soon as it does.
        """
        try:
            view, away = await self.look(look), ""
        except Problem as problem:
            if problem.status_code != 503:
                raise
            view, away = View(title="Redis does not answer", html=""), problem.message
            self.set_status(503)
        self.show(template, view=view, away=away, stream=stream, **values)

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Show what is wrong; never a traceback, which may hold anything."""
        if status_code == 401:
            super().write_error(status_code, **kwargs)
            return
        if not hasattr(self, "_current_user"):  # as Flower does: do not ask again who it is
            self.current_user = None
        error = kwargs.get("exc_info", (None, None))[1]
        self.set_status(status_code)
        self.show("problem.html", status=status_code, message=message_of(status_code, error))


class Api(Handler):
    """Base of our JSON API."""

    def send(self, document: object) -> None:
        """Answer with a JSON document: only ASCII, so that it is exact on a terminal."""
        self.set_header("Content-Type", "application/json; charset=UTF-8")
        self.finish(json.dumps(document).replace("\x7f", "\\u007f") + "\n")

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Answer with what is wrong, as JSON."""
        error = kwargs.get("exc_info", (None, None))[1]
        if status_code == 401:
            self.set_header("WWW-Authenticate", 'Basic realm="flower"')
        self.set_status(status_code)
        self.send({"error": message_of(status_code, error), "status": status_code})


def as_problem(error: RinghaulError) -> Problem:
    """Return the HTTP error for an error of ours."""
    if isinstance(error, (LedgerUnavailable, LedgerRefused)):
        return Problem(503, str(error))
    if isinstance(error, JobMissing):
        return Problem(404, str(error))
    if isinstance(error, JobDamaged):
        return Problem(500, str(error))
    return Problem(400 if isinstance(error, UsageError) else 500, str(error))


def check_job_id(job: str) -> str:
    """Return the id of a job in a URL. Raises Problem if no job can have this id."""
    try:
        job_key(job, "meta")
    except UsageError as error:
        raise Problem(404, str(error)) from error
    return job


def message_of(status: int, error: BaseException | None) -> str:
    """Return what to tell people about an error."""
    if isinstance(error, Problem):
        return error.message
    if status == 404:
        return "There is no such page."
    if isinstance(error, HTTPError) and status < 500:
        return error.log_message or error.reason or "This request is not accepted."
    return "An internal error. The log of Flower has more."


def query_of(given: Mapping[str, str], *, paged: bool) -> JobQuery:
    """Read a query from the arguments of a URL, as `read_query` does. Raises Problem."""
    try:
        return read_query(given, paged=paged)
    except UsageError as error:
        raise as_problem(error) from error
