"""`-p` asks on a terminal, and only there; no value is taken from the command line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import rich_click as click

from producer.commands.registry import find_command
from producer.request import password
from producer.request.command_line import command_line
from producer.request.fingerprint import fingerprint_of
from producer.request.password import prompting_for_password
from producer.schedule.steps import check_step
from ringhaul.errors import UsageError
from ringhaul.schedule.parse import parse_schedules
from tests.options import parse_options
from tests.terminal import on_a_terminal

LOAD = ("rows.csv", "-t", "shop.orders", "-u", "bob")

ASK = """
from producer.commands.registry import find_command
from producer.request.password import prompting_for_password
from tests.options import parse_options
import os, subprocess, sys
options = parse_options("load", "rows.csv", "-t", "s.o", "-u", "bob")
command = find_command("load")
with command.make_context("load", ["rows.csv", "-t", "s.o", "-u", "bob", "-p"]):
    with prompting_for_password(options) as asked:
        path = asked.password_file
        print("file", path, oct(os.stat(path).st_mode & 0o77))
        for _ in range(2):  # as each worker process reads it
            print("child", subprocess.run(["cat", path], capture_output=True, text=True).stdout)
print("gone", not os.path.exists(path))
print("argv", "pa ss" in " ".join(sys.argv), "env", "pa ss" in str(os.environ))
"""


def test_the_password_is_in_a_private_file_for_as_long_as_the_command_runs(tmp_path: Path) -> None:
    code, screen = on_a_terminal(
        [sys.executable, "-c", ASK],
        "pa ss\u00e9\n",
        os.environ | {"PYTHONPATH": os.getcwd(), "PYTHONUTF8": "1"},
        tmp_path,
    )
    assert code == 0, screen
    lines = [line.strip() for line in screen.splitlines()]
    assert "Password of bob:" in lines[0]
    assert lines[1].startswith("file ") and lines[1].endswith(" 0o0")
    assert lines.count("child pa ss\u00e9") == 2
    assert lines[-2:] == ["gone True", "argv False env False"]


@pytest.mark.parametrize(
    "flag", [["-p", "secret"], ["-psecret"], ["--password", "secret"], ["--password=secret"]]
)
def test_a_password_on_the_command_line_is_refused_and_not_repeated(flag: list[str]) -> None:
    command = find_command("load")
    assert command is not None
    with pytest.raises(click.BadParameter) as refusal:
        command.make_context("load", [*LOAD, *flag])
    message = refusal.value.format_message()
    assert "takes no value" in message and "--password-file" in message
    assert "secret" not in message


def test_without_a_terminal_it_is_refused_with_what_to_do() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "ringhaul", "load", *LOAD, "-p"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        start_new_session=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert "there is none" in done.stderr and "--password-file" in done.stderr


def test_it_is_part_of_no_request_and_of_no_command_line() -> None:
    command = find_command("load")
    assert command is not None
    with command.make_context("load", [*LOAD, "-p"]) as asking:
        assert "\0" not in command_line(asking)
        fingerprint = fingerprint_of(asking)
    with command.make_context("load", [*LOAD]) as without:
        assert fingerprint_of(without) == fingerprint


def test_it_is_not_given_with_a_file() -> None:
    options = parse_options("load", *LOAD, "--password-file", "pw")
    command = find_command("load")
    assert command is not None
    with (
        command.make_context("load", [*LOAD, "-p"]),
        pytest.raises(UsageError, match="leave one of them out"),
        prompting_for_password(options),
    ):
        pass


def test_an_empty_password_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(password, "_TERMINAL", os.devnull)
    monkeypatch.setattr("getpass.getpass", lambda prompt: "")
    with pytest.raises(UsageError, match="no password was typed"):
        password._ask("bob")


def test_a_step_of_a_schedule_has_no_terminal(tmp_path: Path) -> None:
    text = f"[schedule.a]\nevery = '1h'\nsteps = [{['load', *LOAD[:3], '-p']!r}]\n"
    schedule = parse_schedules(text, "schedule.toml")["a"]
    with pytest.raises(
        UsageError, match="--password: the cluster and its user are in beat's settings"
    ):
        check_step(schedule, schedule.steps[0], 1, tmp_path)
