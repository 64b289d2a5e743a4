"""Help and settings: complete, and printed at once, without a cluster."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import rich_click as click

from config.sections import setting_keys
from producer.cli import cli
from producer.commands.record_command import RecordCommand
from producer.local.valkey import EmbeddedValkey
from tests.acceptance.command import Ringhaul

#: `ringhaul --help` and `ringhaul status` must feel instant. Measured on an idle machine: 0.21 s
#: and 0.25 s of CPU; the bound allows for a busy machine, but not for importing Celery, the
#: driver and pyarrow (1 s).
STARTUP_CPU_S_MAX = 0.8


def commands(
    command: click.Command = cli, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield every command with its words, groups first."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from commands(inner, (*path, name))


COMMANDS = dict(commands())


@pytest.fixture
def ringhaul(tmp_path: Path) -> Ringhaul:
    """The command without configuration, broker or cluster."""
    env = {
        "RINGHAUL_STATE_DIR": str(tmp_path / "state"),
        "XDG_CONFIG_HOME": str(tmp_path / "xdg"),
        "COLUMNS": "200",
    }
    return Ringhaul(env, tmp_path)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_each_commands_help_shows_every_option(ringhaul: Ringhaul, words: tuple[str, ...]) -> None:
    command = COMMANDS[words]
    has_levels = isinstance(command, RecordCommand) and command.has_levels
    shown = ringhaul.run(*words, "--help-all" if has_levels else "--help")
    assert (shown.code, shown.err) == (0, "")
    usage = " ".join(["Usage: ringhaul", *words])
    assert usage in shown.out
    assert command.help
    text = " ".join(re.sub("[│╭╮╰╯─]", " ", shown.out).split())
    assert command.help.split("\n\n")[0].replace("\n", " ") in text
    for parameter in command.params:
        if not isinstance(parameter, click.Option):
            continue
        assert parameter.help, f"{parameter.opts} is not explained"
        for name in (*parameter.opts, *parameter.secondary_opts):
            assert name in text
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            assert re.search(rf"^│ {name} ", shown.out, re.MULTILINE), name


def test_the_installed_command_has_the_same_help(ringhaul: Ringhaul) -> None:
    installed = Path(sys.executable).with_name("ringhaul")
    version = subprocess.run([installed, "--version"], capture_output=True, text=True, timeout=60)
    assert re.fullmatch(r"ringhaul, version \d+\.\d+\.\d+(?:rc\d+)?\n", version.stdout)
    assert (version.returncode, version.stderr) == (0, "")
    assert version.stdout == ringhaul.run("--version").out


@pytest.mark.parametrize("args", [["--help"], ["status"]], ids=" ".join)
def test_a_read_only_command_starts_at_once(
    ringhaul: Ringhaul, broker: EmbeddedValkey, args: list[str]
) -> None:
    env = ringhaul.env | {"RINGHAUL_BROKER_URL": broker.url}

    def cpu_s() -> float:
        process = subprocess.Popen(
            ringhaul.argv(*args), env=env, cwd=ringhaul.cwd, stdout=subprocess.DEVNULL
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        return usage.ru_utime + usage.ru_stime

    assert min(cpu_s() for _ in range(3)) < STARTUP_CPU_S_MAX


def test_config_show_prints_the_origin_of_each_value(ringhaul: Ringhaul) -> None:
    # Given a file and an environment that overrides one of its values
    (ringhaul.cwd / "ringhaul.toml").write_text(
        '[cluster]\nport = 9043\nlocal_dc = "dc1"\n\n[load]\nmax_errors = "1%"\n'
    )
    env = {
        "RINGHAUL_CLUSTER_LOCAL_DC": "dc2",
        "RINGHAUL_CLUSTER_CONTACT_POINTS": "db1,db2",
        "RINGHAUL_BROKER_URL": "redis://loader:se%40same@broker:6379/0",
    }
    # When
    shown = ringhaul.run("config", "show", "--origin", **env)
    # Then every setting is listed once, with its origin
    assert (shown.code, shown.err) == (0, "")
    lines = [re.fullmatch(r"(\S+) += (.*)   # (.*)", line) for line in shown.out.splitlines()]
    found = {line[1]: (json.loads(line[2]), line[3]) for line in lines if line}
    assert list(found) == list(setting_keys())
    assert len(lines) == len(found)
    file = f"file {ringhaul.cwd / 'ringhaul.toml'}"
    assert found["cluster.port"] == (9043, file)
    assert found["load.max_errors"] == ("1%", file)
    assert found["cluster.local_dc"] == ("dc2", "env RINGHAUL_CLUSTER_LOCAL_DC")
    contact_points = (["db1", "db2"], "env RINGHAUL_CLUSTER_CONTACT_POINTS")
    assert found["cluster.contact_points"] == contact_points
    assert found["cluster.consistency"] == ("LOCAL_QUORUM", "default")
    # and no secret
    assert found["broker.url"] == ("redis://loader:***@broker:6379/0", "env RINGHAUL_BROKER_URL")
    assert "same" not in shown.out
    # and the same as JSON and without origins
    as_json = json.loads(ringhaul.run("config", "show", "--json", **env).out)
    assert {row["key"]: (row["value"], row["origin"]) for row in as_json} == found
    plain = ringhaul.run("config", "show", **env).out.splitlines()
    assert plain == [line.partition("   # ")[0] for line in shown.out.splitlines()]
