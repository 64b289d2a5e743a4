"""A suggested command has the flags that it needs to find the job."""

from __future__ import annotations

import pytest

from producer.commands.load import load_command
from producer.commands.status import status_command
from producer.request.next_command import next_command

LOAD = ["x.csv", "-t", "shop.orders"]
BROKER = ["--broker", "redis://host:6379/0"]
FURTHER = ["--contact-points", "a,b", "--password-file", "my file", "--config", "etc/rh.toml"]


@pytest.mark.parametrize(
    ("given", "command", "expected"),
    [
        ([], "status -f ld-1", "ringhaul status -f ld-1"),
        (BROKER, "status -f ld-1", "ringhaul status -f ld-1 --broker redis://host:6379/0"),
        (["--broker", "none"], "cancel ld-1", "ringhaul cancel ld-1 --broker none"),
        (BROKER + FURTHER, "errors ld-1",
         "ringhaul errors ld-1 --broker redis://host:6379/0 --config etc/rh.toml"),
        # Only a resume connects to the cluster
        (BROKER + FURTHER, "resume ld-1",
         "ringhaul resume ld-1 --contact-points a,b --password-file 'my file' "
         "--broker redis://host:6379/0 --config etc/rh.toml"),
        (["--broker", "redis://:secret@host"], "resume ld-1",
         "ringhaul resume ld-1 --broker 'redis://:***@host'"),
    ],
)  # fmt: skip
def test_flags_that_locate_the_job_are_repeated(
    given: list[str], command: str, expected: str
) -> None:
    with load_command.make_context("load", LOAD + given):
        assert next_command(command) == expected


def test_commands_that_inspect_a_job_repeat_them_too() -> None:
    with status_command.make_context("status", ["ld-1", *BROKER]):
        assert next_command("resume ld-1") == "ringhaul resume ld-1 --broker redis://host:6379/0"
    assert next_command("resume ld-1") == "ringhaul resume ld-1"  # outside of a command
