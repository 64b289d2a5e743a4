"""What pages show of schedules and hosts, as HTML that all viewers share."""

from __future__ import annotations

import threading

from config.settings import Settings
from producer.figures.standing import no_worker_text
from producer.report.top_view import View as TopView
from producer.report.top_view import hosts_of
from producer.schedule.file import (
    ScheduleFile,
    file_version,
    find_schedule_file,
    need_schedule_file,
)
from producer.schedule.last_good import load_schedule_file
from producer.schedule.overview import ScheduleRow, look_at_schedule, look_at_schedules
from producer.schedule.text import run_notes
from producer.web.live_pages import View
from producer.web.schedule_actions import actions_for
from producer.web.site import Site
from ringhaul.errors import UsageError
from ringhaul.ledger.fleet import look_at_fleet
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.schedules import Beats, ScheduleBook
from tasks.settings import process_settings

#: Runs that the page of a schedule shows.
RUNS_SHOWN = 50
#: Units at work that the page of hosts shows, the slowest first.
UNITS_SHOWN = 50

_reading = threading.Lock()
_file: ScheduleFile | None = None


def schedule_file() -> ScheduleFile:
    """Return the schedule file of this host, read again when it changes; if it is invalid, its last
    version. Raises UsageError if there is neither."""
    global _file
    with _reading:
        settings = process_settings()
        if _file is None or _file.problem or _is_changed(_file, settings):
            _file = None
            _file = load_schedule_file(settings) or need_schedule_file(settings)
        return _file


def _is_changed(file: ScheduleFile, settings: Settings) -> bool:
    """Whether the schedule file is another one by now, or another version, or cannot be found."""
    try:
        path = find_schedule_file(settings)
        return path != file.path or file_version(path) != file.version
    except (OSError, UsageError):
        return True


def schedule_row(ledger: Ledger, name: str) -> ScheduleRow:
    """Return a schedule of the file. Raises UsageError if the file has none of this name."""
    file = schedule_file()
    return look_at_schedule(ScheduleBook(ledger.caller), file, file.schedule(name))


def schedules_view(site: Site, ledger: Ledger) -> View:
    """Return the list of schedules."""
    try:
        overview, problem = look_at_schedules(ledger, schedule_file()), ""
    except UsageError as error:
        overview, problem = None, str(error)
    no_worker = no_worker_text(look_at_fleet(ledger.caller))
    html = site.render(
        "schedules_view.html", overview=overview, problem=problem, no_worker=no_worker
    )
    return View(title="Schedules", html=html)


def schedule_view(site: Site, ledger: Ledger, name: str) -> View:
    """Return the page of a schedule, with its history. Raises UsageError."""
    row = schedule_row(ledger, name)
    html = site.render(
        "schedule_view.html",
        row=row,
        runs=ScheduleBook(ledger.caller).runs(name, RUNS_SHOWN),
        run_notes=run_notes,
        actions={} if site.exposure.read_only else actions_for(row),
        runs_shown=RUNS_SHOWN,
    )
    return View(title=f"Schedule {name}", html=html)


def hosts_view(site: Site, ledger: Ledger) -> View:
    """Return the hosts, their workers, and the units in progress."""
    fleet = look_at_fleet(ledger.caller)
    found = [unit for job in fleet.jobs for unit in ledger.units_at_work(job)]
    units = sorted(found, key=lambda unit: -unit.seconds)
    html = site.render(
        "hosts_view.html",
        hosts=hosts_of(TopView(jobs=(), workers=fleet.workers, units=units)),
        workers=fleet.workers,
        units=units[:UNITS_SHOWN],
        units_all=len(units),
        no_worker=no_worker_text(fleet),
        beats=Beats(ledger.caller).alive(),
    )
    return View(title="Hosts", html=html)
