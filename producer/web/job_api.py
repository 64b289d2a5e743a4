"""Jobs as JSON: the same fields as `ringhaul status --json`. Fields are only ever added."""

from __future__ import annotations

from typing import Any

from tornado.web import authenticated

from producer.report.events import history_json
from producer.report.job_rows import job_row
from producer.web.page import Api, check_job_id, query_of
from producer.web.site import Site
from ringhaul.ledger.audit import JobDamaged
from ringhaul.ledger.history import History
from ringhaul.ledger.ledger import Ledger


class JobsApi(Api):
    """`/api/jobs`: a list of jobs."""

    @authenticated
    async def get(self) -> None:
        """Send the jobs that the arguments ask for: each as a row of `status --json`."""
        query = query_of(self.arguments_given(), paged=False)
        page = await self.look(lambda ledger: self.site.index.page(ledger, query))
        self.send(
            {
                "message_type": "jobs",
                "found": page.found,
                "total": page.total,
                "limit": query.limit,
                "offset": query.offset,
                "jobs": [job_row(one.status, one.snapshot) for one in page.jobs],
            }
        )


class JobApi(Api):
    """`/api/jobs/JOB`: a job, with its history."""

    @authenticated
    async def get(self, job: str) -> None:
        """Send the job as `status JOB --events --json` does; without data of rows, if pages show
        none."""
        site, job = self.site, check_job_id(job)
        self.send(await self.look(lambda ledger: job_document(site, ledger, job)))


def job_document(site: Site, ledger: Ledger, job: str) -> dict[str, Any]:
    """Return a job for programs. A damaged one says what is lost. Raises JobMissing."""
    document = site.jobs.closing(ledger, job).data
    if not site.exposure.show_data:
        document = _without_data(document)
    history = History(ledger.caller)
    try:
        return document | history_json(history.events(job), history.samples(job))
    except JobDamaged:
        return document


def _without_data(document: dict[str, Any]) -> dict[str, Any]:
    """Leave out the only data of rows in a summary: keys of rows that cannot be loaded again."""
    if "unloadable" not in document:
        return document
    return document | {"unloadable": [{**one, "key": None} for one in document["unloadable"]]}
