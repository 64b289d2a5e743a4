"""An option that is to go warns for two minor versions, then is refused, with its successor."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import rich_click as click
from click.testing import CliRunner

from producer.commands import click_options
from producer.commands.click_options import record_options
from producer.options.groups import Group
from producer.options.leaving import Leaving
from producer.options.option import option
from ringhaul.errors import UsageError

LEAVING = Leaving(since="1.2", instead="--new")
WARNED, REFUSED = ("1.2.0", "1.2.0rc1", "1.3", "1.3.7"), ("1.4.0rc1", "1.4", "1.10.1", "2.0.0")


@dataclass(frozen=True, kw_only=True)
class Options:
    """A record with an option that is to go."""

    old: str | None = option(
        "-o --old", group=next(iter(Group)), leaving=LEAVING, help="Set the old thing."
    )
    new: str | None = option("--new", group=next(iter(Group)), help="Set the new thing.")


@click.command()
@record_options(Options)
def command(old: str | None, new: str | None) -> None:
    print(f"old {old}, new {new}")


@pytest.mark.parametrize("version", WARNED)
def test_it_works_and_warns_for_two_minor_versions(
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(click_options, "__version__", version)
    done = CliRunner().invoke(command, ["-o", "x"])
    assert done.stdout == "old x, new None\n"
    assert done.stderr == "warning: --old goes with 1.4: use --new\n"


@pytest.mark.parametrize("version", REFUSED)
def test_then_it_is_refused_with_its_successor(
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(click_options, "__version__", version)
    with pytest.raises(UsageError, match=r"^--old is gone since 1\.4: use --new$"):
        command.main(["--old", "x"], standalone_mode=False)


def test_who_does_not_use_it_notices_nothing() -> None:
    done = CliRunner().invoke(command, ["--new", "y"])
    assert (done.stdout, done.stderr) == ("old None, new y\n", "")
    assert "--old" not in CliRunner().invoke(command, ["--help"]).stdout
