"""Help of commands with many options has two levels."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stdout

import pytest
import rich_click as click

from producer.commands.help_pages import draw_help
from producer.commands.record_command import OPTIONS_MAX, RecordCommand
from producer.commands.registry import COMMANDS, find_command
from producer.options.option import declared_by

COLUMNS = 80
#: Lines about options on the first page, those about the help pages among them.
LINES_MAX = 25
RECORD_COMMANDS = [name for name in COMMANDS if isinstance(find_command(name), RecordCommand)]


def shown(name: str, word: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """What a help page shows on a terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    for owner, attribute in (
        (click.RichCommand, "context_class"),
        (click.rich_click, "OPTIONS_TABLE_COLUMN_TYPES"),
        (click.rich_click, "OPTIONS_TABLE_HELP_SECTIONS"),
    ):
        monkeypatch.setattr(owner, attribute, getattr(owner, attribute))  # put back afterwards
    draw_help()
    command = find_command(name)
    assert command is not None
    out = io.StringIO()
    with redirect_stdout(out), pytest.raises(SystemExit) as ended:
        command.main([word], prog_name=f"ringhaul {name}")
    assert ended.value.code == 0
    return out.getvalue()


def lines_of(page: str) -> list[str]:
    return [line for line in page.splitlines() if line.startswith("│")]


def flags_in(page: str) -> set[str]:
    """The long names that a page lists, without those in explanations."""
    starts = (re.match(r"│ [ *]*(--[\w-]+(?:/--[\w-]+)?)", line) for line in lines_of(page))
    return {flag for start in starts if start for flag in start[1].split("/")}


def options_of(command: click.Command) -> list[click.Option]:
    return [one for one in command.params if isinstance(one, click.Option)]


@pytest.mark.parametrize("name", RECORD_COMMANDS)
def test_the_first_page_fits_a_terminal(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    command = find_command(name)
    assert isinstance(command, RecordCommand)
    page = shown(name, "--help", monkeypatch)
    assert max(len(line) for line in page.splitlines()) <= COLUMNS
    if command.has_levels:
        assert len(lines_of(page)) <= LINES_MAX, page
        assert f"Show all {len(options_of(command))} options" in page
        # Each option in a line.
        assert len(flags_in(page)) - page.count("/--no-") == len(lines_of(page))
    else:
        assert len(options_of(command)) <= OPTIONS_MAX
        assert "--help-all" not in page


@pytest.mark.parametrize("name", RECORD_COMMANDS)
def test_the_whole_help_shows_every_option(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    command = find_command(name)
    assert isinstance(command, RecordCommand)
    page = shown(name, "--help-all" if command.has_levels else "--help", monkeypatch)
    wanted = {flag for one in options_of(command) for flag in (*one.opts, *one.secondary_opts)}
    assert {flag for flag in wanted if flag not in page} == set()
    # A switch's names may take two lines, so that only the first begins a line.
    names = {max(one.opts, key=len) for one in options_of(command)}
    assert names <= flags_in(page)
    assert page.count("[default: ") == sum(bool(one.show_default) for one in options_of(command))


@pytest.mark.parametrize("name", ["load", "unload", "lookup", "exec", "verify", "tune"])
def test_what_most_people_need_is_on_the_first_page(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = find_command(name)
    assert isinstance(command, RecordCommand) and command.has_levels
    there = flags_in(shown(name, "--help", monkeypatch))
    assert {"--help", "--help-all", "--contact-points", "--broker"} <= there
    for option in options_of(command):
        declared = declared_by(option)
        assert declared is not None
        assert (declared.flag in there) is declared.common
        if declared.required:
            assert declared.common, f"{declared.flag} has to be given"


def test_the_whole_help_is_printed_before_anything_is_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    command = find_command("load")
    assert command is not None
    out = io.StringIO()
    with redirect_stdout(out), pytest.raises(SystemExit) as ended:
        command.main(["--help-all", "--ttl", "soon"], prog_name="ringhaul load")
    assert ended.value.code == 0
    assert "--escape-style" in out.getvalue()


def test_help_pages_are_no_options_of_a_command() -> None:
    command = find_command("load")
    assert command is not None
    context = command.make_context("load", ["a.csv", "-t", "k.t"])
    assert not {"help", "help_all"} & set(context.params)
