"""The pages of schedules and of hosts, and schedules as JSON."""

from __future__ import annotations

from typing import Any

from tornado.web import authenticated

from producer.schedule.overview import look_at_schedules
from producer.web.action_pages import ActionPage
from producer.web.job_actions import Overtaken
from producer.web.page import Api, Page, Problem, as_problem
from producer.web.page_message import note_done, take_done
from producer.web.schedule_actions import ACTIONS, act_on_schedule
from producer.web.schedule_views import (
    hosts_view,
    schedule_file,
    schedule_row,
    schedule_view,
    schedules_view,
)
from producer.web.stream import Stream
from ringhaul.errors import RinghaulError, UsageError
from ringhaul.ledger.ledger import Ledger


class SchedulesPage(Page):
    """`/schedules`: the list of schedules."""

    tab = "schedules"

    @authenticated
    async def get(self) -> None:
        """Show all schedules of this host's file."""
        site = self.site
        await self.show_live(
            "schedules.html",
            lambda ledger: schedules_view(site, ledger),
            stream=site.url("events", "schedules"),
        )


class SchedulesStream(Stream):
    """`/events/schedules`: what changes in the list of schedules."""

    @authenticated
    async def get(self) -> None:
        """Send the list whenever it changes."""
        site = self.site
        await self.follow(
            "schedules", lambda: site.looks.run(lambda ledger: schedules_view(site, ledger))
        )


class SchedulePage(Page):
    """`/schedules/NAME`: a schedule and its history."""

    tab = "schedules"

    @authenticated
    async def get(self, name: str) -> None:
        """Show a schedule."""
        site = self.site
        did = ACTIONS.get(take_done(self, name))
        await self.look(lambda ledger: _known(name))
        await self.show_live(
            "schedule.html",
            lambda ledger: schedule_view(site, ledger, name),
            stream=site.url("schedules", name, "events"),
            name=name,
            said=did.done if did else "",
        )


class ScheduleStream(Stream):
    """`/schedules/NAME/events`: what changes of a schedule."""

    @authenticated
    async def get(self, name: str) -> None:
        """Send the page of the schedule whenever it changes."""
        site = self.site
        await self.follow(
            f"schedule {name}",
            lambda: site.looks.run(lambda ledger: schedule_view(site, ledger, name)),
        )


class ScheduleActionPage(ActionPage):
    """`/schedules/NAME/ACTION`: asks for confirmation, and acts."""

    tab = "schedules"

    @authenticated
    async def get(self, name: str, action: str) -> None:
        """Show what the action would do, with its form."""
        await self._ask(name, action, "")

    @authenticated
    async def post(self, name: str, action: str) -> None:
        """Do it, and lead back to the schedule."""
        try:
            await self.site.looks.run(
                lambda ledger: act_on_schedule(ledger, schedule_row(ledger, name), action)
            )
        except (Overtaken, UsageError) as error:
            self.set_status(409 if isinstance(error, Overtaken) else 400)
            await self._ask(name, action, str(error))
            return
        except RinghaulError as error:
            raise as_problem(error) from error
        note_done(self, name, action)
        self.redirect(self.site.url("schedules", name), status=303)

    async def _ask(self, name: str, action: str, problem: str) -> None:
        await self.look(lambda ledger: _known(name))
        row = await self.look(lambda ledger: schedule_row(ledger, name))
        refused = ACTIONS[action].refuse(row)
        if refused and not problem:
            problem = f"{refused}."
            self.set_status(409)
        self.show(
            "schedule_action.html",
            title=f"{ACTIONS[action].label}: {name}",
            row=row,
            name=action,
            action=ACTIONS[action],
            possible=not refused,
            problem=problem,
        )


class SchedulesApi(Api):
    """`/api/schedules`: the document of `ringhaul schedule list --json`."""

    @authenticated
    async def get(self) -> None:
        """Send all schedules of this host's file."""
        self.send(await self.look(_document))


class HostsPage(Page):
    """`/hosts`: hosts, workers, and units in progress."""

    tab = "hosts"

    @authenticated
    async def get(self) -> None:
        """Show the hosts."""
        site = self.site
        await self.show_live(
            "hosts.html",
            lambda ledger: hosts_view(site, ledger),
            stream=site.url("events", "hosts"),
        )


class HostsStream(Stream):
    """`/events/hosts`: what changes on the hosts."""

    @authenticated
    async def get(self) -> None:
        """Send the hosts whenever something changes."""
        site = self.site
        await self.follow("hosts", lambda: site.looks.run(lambda ledger: hosts_view(site, ledger)))


def _known(name: str) -> None:
    """Raise Problem 404 if the file has no schedule of this name."""
    try:
        schedule_file().schedule(name)
    except UsageError as error:
        raise Problem(404, str(error)) from error


def _document(ledger: Ledger) -> dict[str, Any]:
    try:
        file = schedule_file()
    except UsageError as error:
        raise Problem(404, str(error)) from error
    overview = look_at_schedules(ledger, file)
    return {"message_type": "schedules", **overview.to_json()}
