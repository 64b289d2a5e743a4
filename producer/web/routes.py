"""Routes of our pages in Flower, with their templates and entries of its navigation."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from tornado.routing import URLSpec
from tornado.web import Application, RequestHandler, StaticFileHandler, url

from producer.report.job_html import STYLE, template_folder
from producer.web import schedule_pages as pages
from producer.web.action_pages import JobActionPage
from producer.web.exposure import Exposure
from producer.web.job_actions import ACTIONS
from producer.web.job_api import JobApi, JobsApi
from producer.web.job_pages import JobPage, JobsPage, JobsStream, JobStream
from producer.web.job_query import JobQuery
from producer.web.ledger_looks import ANSWER_S, PATIENCE_MS
from producer.web.metrics_page import MetricsPage
from producer.web.schedule_actions import ACTIONS as SCHEDULE_ACTIONS
from producer.web.seams import flower_templates
from producer.web.site import Site
from producer.web.templates import PageTemplates, static_folder
from ringhaul.ledger.ledger import Ledger
from tasks.connect import open_ledger
from tasks.settings import process_settings

#: What Flower's navigation gets, in its own form.
_LINKS = "".join(
    f"""
        <li class="nav-item">
          <a class="nav-link{{% if active_tab == '{name}' %}} active{{% end %}}"
            href="{{{{ reverse_url('{name}') }}}}"
            {{% if active_tab == '{name}' %}}aria-current="page"{{% end %}}>{name.title()}</a>
        </li>
      """
    for name in ("jobs", "schedules", "hosts")
)


def add_routes(application: Application, exposure: Exposure) -> None:
    """Add the pages to Flower's application, whose version they know."""
    templates = PageTemplates(flower_templates(application), links=_LINKS)
    site = Site.create(
        _open_ledger,
        exposure,
        templates=templates,
        url_prefix=application.options.url_prefix or "",  # type: ignore[attr-defined]
    )
    route = partial(_route, site)
    application.add_handlers(
        ".*",
        [
            route("/jobs", JobsPage, "jobs"),
            route("/jobs/([^/]+)", JobPage, "job"),
            route("/jobs/([^/]+)/events", JobStream),
            route(f"/jobs/([^/]+)/({'|'.join(ACTIONS)})", JobActionPage),
            route("/events/jobs", JobsStream),
            route("/schedules", pages.SchedulesPage, "schedules"),
            route("/schedules/([^/]+)", pages.SchedulePage, "schedule"),
            route("/schedules/([^/]+)/events", pages.ScheduleStream),
            route(f"/schedules/([^/]+)/({'|'.join(SCHEDULE_ACTIONS)})", pages.ScheduleActionPage),
            route("/events/schedules", pages.SchedulesStream),
            route("/hosts", pages.HostsPage, "hosts"),
            route("/events/hosts", pages.HostsStream),
            route("/api/schedules", pages.SchedulesApi),
            route("/metrics", MetricsPage),
            route("/api/jobs", JobsApi),
            route("/api/jobs/([^/]+)", JobApi),
            _files(site, f"({STYLE})", template_folder()),
            _files(site, "(.*)", static_folder()),
        ],
    )
    application.settings["template_loader"] = templates
    # Reading thousands of jobs for the first time takes a while.
    site.looks.start(lambda ledger: site.index.page(ledger, JobQuery()))


def _files(site: Site, pattern: str, folder: Path) -> URLSpec:
    """Return the route of our style sheets and script, which all viewers share."""
    return url(f"{site.prefix}/ringhaul/static/{pattern}", StaticFileHandler, {"path": str(folder)})


def _route(site: Site, path: str, handler: type[RequestHandler], name: str = "") -> URLSpec:
    return url(f"{site.prefix}{path}", handler, {"site": site}, name or None)


def _open_ledger() -> Ledger:
    """Open the ledger of this process's settings; an embedded broker is among them by now."""
    return open_ledger(process_settings(), PATIENCE_MS, timeout_s=ANSWER_S)
