"""The options of a command, from its command line."""

from __future__ import annotations

from typing import Any

from producer.commands.click_options import AS_STEP
from producer.commands.format_profile import apply_profile
from producer.commands.job_options import job_options
from producer.commands.registry import find_command
from ringhaul.ledger.kinds import JobKind


def parse_options(command: str, *arguments: str) -> Any:
    """The options record of a command. Paths are not checked, as in a step of a schedule."""
    found = find_command(command)
    assert found is not None
    context = found.make_context(command, [*arguments], obj=AS_STEP)
    apply_profile(context)
    return job_options(JobKind(command), context)
