"""What pages show of jobs, as HTML that all viewers share."""

from __future__ import annotations

from producer.report.job_html import job_body
from producer.web.job_actions import actions_for
from producer.web.job_index import JobPage
from producer.web.job_query import JobQuery
from producer.web.live_pages import View
from producer.web.site import Site
from ringhaul.ledger.audit import JobDamaged
from ringhaul.ledger.ledger import Ledger
from ringhaul.schedule.runs import schedule_of


def job_view(site: Site, ledger: Ledger, job: str, *, at_once: bool = False) -> View:
    """Return the page of a job. `at_once`: see `JobLooks.look`. Raises JobMissing."""
    try:
        detail = site.jobs.look(ledger, job, at_once=at_once)
    except JobDamaged as error:
        html = site.render("damaged.html", job=job, message=str(error))
        return View(title=f"{job} DAMAGED", html=html, quiet=True)
    possible = {} if site.exposure.read_only else actions_for(detail.status.state_name)
    actions = site.render("job_actions.html", job=job, actions=possible)
    html = job_body(detail, live=True, actions=actions)
    over = detail.status.finished and not detail.status.leased
    return View(title=f"{job} {detail.snapshot.state}", html=html, quiet=over)


def jobs_view(site: Site, ledger: Ledger, query: JobQuery) -> View:
    """Return the list of jobs that a query wants."""
    page = site.index.page(ledger, query)
    html = site.render(
        "jobs_view.html", page=page, query=query, pages=_pages(page, query), schedule_of=schedule_of
    )
    running = f"{page.open:,} running" if page.open else "none running"
    return View(title=f"Jobs: {running}", html=html)


def _pages(page: JobPage, query: JobQuery) -> int:
    return max((page.found + query.limit - 1) // query.limit, 1)
