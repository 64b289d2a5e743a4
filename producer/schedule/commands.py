"""The commands `ringhaul schedule` (list, run, pause, resume, ack, history) and `ringhaul beat`."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import rich_click as click

from producer.commands.options import config_option, ledger_options
from producer.commands.passed_on import PASS_ON
from producer.options.connection import LedgerPlace


def _actions() -> ModuleType:
    """Return the module that does the work, which imports what most help pages do not need."""
    from producer.schedule import actions

    return actions


@click.group("schedule")
def schedule() -> None:
    """Show, run, pause and resume scheduled jobs.

    `ringhaul beat` starts them when they are due, by a file: docs/how-to/schedules.md.
    """


@schedule.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@ledger_options
def list_command(as_json: bool, place: LedgerPlace) -> int:
    """List the schedules: when each is next due, and how its last run ended."""
    code: int = _actions().print_schedules(place, as_json=as_json)
    return code


@schedule.command("run")
@click.argument("name")
@click.option(
    "--due",
    metavar="TIME",
    help="A due time that has come, such as 2026-11-20T00:30Z; its failed run is continued [now].",
)
@click.option(
    "--run",
    "earlier",
    metavar="ID",
    help="Continue this failed run at the step that failed, with the files that it had.",
)
@click.option(
    "--restart",
    is_flag=True,
    help="With --run or --due: start the failed step over, after its input was repaired.",
)
@ledger_options
def run_command(
    name: str, due: str | None, earlier: str | None, restart: bool, place: LedgerPlace
) -> int:
    """Run a schedule now, on this host; the exit code is 0 if every step succeeds.

    A due time that was already run successfully is not run again. Files that could not be loaded
    are retried.
    """
    code: int = _actions().run_now(place, name, due, earlier=earlier, restart=restart)
    return code


@schedule.command("pause")
@click.argument("name")
@ledger_options
def pause_command(name: str, place: LedgerPlace) -> int:
    """Start no more runs of a schedule; one in progress continues."""
    return _set_paused(place, name, paused=True)


@schedule.command("resume")
@click.argument("name")
@ledger_options
def resume_command(name: str, place: LedgerPlace) -> int:
    """Start runs of a schedule again, from the next due time on."""
    return _set_paused(place, name, paused=False)


def _set_paused(place: LedgerPlace, name: str, *, paused: bool) -> int:
    code: int = _actions().set_paused(place, name, paused=paused)
    return code


@schedule.command("ack")
@click.argument("name")
@ledger_options
def ack_command(name: str, place: LedgerPlace) -> int:
    """Acknowledge that the last run failed: its alerts are silent until the next run ends."""
    code: int = _actions().acknowledge(place, name)
    return code


@schedule.command("history")
@click.argument("name")
@click.option(
    "--limit",
    type=click.IntRange(1),
    metavar="N",
    default=20,
    show_default=True,
    help="The last N runs.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@ledger_options
def history_command(name: str, limit: int, as_json: bool, place: LedgerPlace) -> int:
    """List the last runs of a schedule, newest first: due time, delay, steps, jobs, exit codes."""
    code: int = _actions().print_history(place, name, limit, as_json=as_json)
    return code


@click.command("beat", context_settings=PASS_ON)
@config_option
@click.argument("celery_options", nargs=-1, type=click.UNPROCESSED)
def beat_command(config_file: Path | None, celery_options: tuple[str, ...]) -> None:
    """Start scheduled jobs when they are due.

    Two beats are safer than one. Takes all options of `celery beat`.
    """
    from producer.schedule.beat import run_beat

    run_beat(config_file, celery_options)
