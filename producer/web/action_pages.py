"""Pages on which people confirm a change to a job or a schedule. They work without a script."""

from __future__ import annotations

from tornado.web import authenticated

from producer.web.job_actions import ACTIONS, Overtaken, act_on_job, actions_for
from producer.web.page import Page, Problem, as_problem
from producer.web.page_message import note_done
from ringhaul.errors import RinghaulError, UsageError
from ringhaul.ledger.job_status import JobStatus
from ringhaul.ledger.shares import WEIGHTS


class ActionPage(Page):
    """Base of a page with a form that changes something."""

    def prepare(self) -> None:
        """Refuse to show forms that would be refused. Changes themselves are refused before."""
        super().prepare()
        if self.site.exposure.read_only:
            raise Problem(403, "This page is read-only: web.read_only = false allows changes.")

    def form(self) -> dict[str, str]:
        """Return the values of the form that was sent; of a field that occurs twice, the last."""
        return {
            name: values[-1].decode("utf-8", "replace")
            for name, values in self.request.body_arguments.items()
        }


class JobActionPage(ActionPage):
    """`/jobs/JOB/ACTION`: asks for confirmation, and acts."""

    @authenticated
    async def get(self, job: str, name: str) -> None:
        """Show what the action would do, with its form."""
        await self._ask(job, name, {}, "")

    @authenticated
    async def post(self, job: str, name: str) -> None:
        """Do it, and lead back to the job."""
        form = self.form()
        try:
            await self.site.looks.run(lambda ledger: act_on_job(ledger, job, name, form))
        except (Overtaken, UsageError) as error:
            self.set_status(409 if isinstance(error, Overtaken) else 400)
            await self._ask(job, name, form, str(error))
            return
        except RinghaulError as error:
            raise as_problem(error) from error
        note_done(self, job, name)
        self.redirect(self.site.url("jobs", job), status=303)

    async def _ask(self, job: str, name: str, form: dict[str, str], problem: str) -> None:
        status: JobStatus = await self.look(lambda ledger: ledger.status(job))
        possible = name in actions_for(status.state_name)
        if not (possible or problem):
            problem = f"{job} is {status.state_name}: this is not possible now."
            self.set_status(409)
        self.show(
            "job_action.html",
            title=f"{ACTIONS[name].label}: {job}",
            job=job,
            status=status,
            name=name,
            action=ACTIONS[name],
            possible=possible,
            problem=problem,
            form=form or _limits_of(status),
            priorities=list(WEIGHTS),
        )


def _limits_of(status: JobStatus) -> dict[str, str]:
    """Return the fields of the form that the present limits and priority fill."""
    limits, pace = status.pace.limits, status.pace
    return {
        "rows_per_second": str(limits.rows_per_s or ""),
        "mb_per_second": f"{limits.bytes_per_s / 1e6:g}" if limits.bytes_per_s else "",
        "in_flight": str(limits.in_flight or ""),
        "between": " ".join(map(str, pace.between)),
        "timezone": pace.timezone if pace.between else "",
        "priority": status.priority,
    }
