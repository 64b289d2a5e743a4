"""The pages of jobs: the list, a job, and the streams that keep both up to date."""

from __future__ import annotations

from tornado.web import authenticated

from producer.web.job_actions import ACTIONS
from producer.web.job_query import KINDS, STATES
from producer.web.job_views import job_view, jobs_view
from producer.web.page import Page, check_job_id, query_of
from producer.web.page_message import take_done
from producer.web.stream import Stream
from ringhaul.schedule.runs import schedule_of


class JobsPage(Page):
    """`/jobs`: the list of jobs."""

    @authenticated
    async def get(self) -> None:
        """Show the jobs that the arguments ask for."""
        site, query = self.site, query_of(self.arguments_given(), paged=True)
        await self.show_live(
            "jobs.html",
            lambda ledger: jobs_view(site, ledger, query),
            stream=site.url("events", "jobs") + query.to_url(),
            query=query,
            states=STATES,
            kinds=KINDS,
        )


class JobsStream(Stream):
    """`/events/jobs`: what changes in a list of jobs."""

    @authenticated
    async def get(self) -> None:
        """Send the list whenever it changes."""
        site, query = self.site, query_of(self.arguments_given(), paged=True)
        await self.follow(
            f"jobs{query.to_url()}",
            lambda: site.looks.run(lambda ledger: jobs_view(site, ledger, query)),
        )


class JobPage(Page):
    """`/jobs/JOB`: a job."""

    @authenticated
    async def get(self, job: str) -> None:
        """Show a job."""
        site, job = self.site, check_job_id(job)
        did = ACTIONS.get(take_done(self, job))
        await self.show_live(
            "job.html",
            lambda ledger: job_view(site, ledger, job, at_once=True),
            stream=site.url("jobs", job, "events"),
            job=job,
            schedule=schedule_of(job),
            said=did.done if did else "",
        )


class JobStream(Stream):
    """`/jobs/JOB/events`: what changes of a job."""

    @authenticated
    async def get(self, job: str) -> None:
        """Send the page of the job whenever it changes."""
        site, job = self.site, check_job_id(job)
        await self.follow(
            f"job {job}", lambda: site.looks.run(lambda ledger: job_view(site, ledger, job))
        )
