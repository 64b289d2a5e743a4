"""What the handlers of our pages share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import quote

from tornado.template import BaseLoader

from producer.report.html_values import FUNCTIONS
from producer.web.exposure import Exposure
from producer.web.job_index import JobIndex
from producer.web.ledger_looks import JobLooks, Looks
from producer.web.live_pages import Live
from producer.web.templates import PREFIX
from ringhaul.ledger.ledger import Ledger


@dataclass(frozen=True, kw_only=True)
class Site:
    """The pages of one Flower."""

    exposure: Exposure
    templates: BaseLoader
    prefix: str  #: Prefix of all paths: empty, or `/flower`.
    looks: Looks
    jobs: JobLooks
    index: JobIndex = field(default_factory=JobIndex)
    live: Live = field(default_factory=Live)

    @classmethod
    def create(
        cls,
        open_ledger: Callable[[], Ledger],
        exposure: Exposure,
        *,
        templates: BaseLoader,
        url_prefix: str = "",
    ) -> Site:
        """Create the site. `url_prefix`: Flower's option, with or without slashes."""
        prefix = url_prefix.strip("/")
        return cls(
            exposure=exposure,
            templates=templates,
            prefix=f"/{prefix}" if prefix else "",
            looks=Looks(open_ledger),
            jobs=JobLooks(show_data=exposure.show_data),
        )

    def url(self, *parts: str) -> str:
        """Return the path of a page, such as `/jobs/ld-7f3a9c` of `jobs` and the job's id."""
        return f"{self.prefix}/{'/'.join(quote(part, safe='') for part in parts)}"

    def render(self, template: str, **values: object) -> str:
        """Return one of our templates as text: a part of a page that all viewers share. May run in
        any thread."""
        names = {**FUNCTIONS, "url": self.url, "read_only": self.exposure.read_only}
        text: bytes = self.templates.load(f"{PREFIX}{template}").generate(**names, **values)
        return text.decode()
