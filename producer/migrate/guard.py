"""Check a translated command as far as that goes without a cluster and without its files.

These are the parser of the command and its own checks, so a command that would be refused is not
taken for complete.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import rich_click as click

from producer.commands.job_options import job_options
from producer.commands.registry import find_command
from producer.options.job import JobOptions
from producer.request.cqlshrc import apply_cqlshrc
from producer.schedule.steps import check_step_options
from producer.translate.translation import Translation
from ringhaul.errors import UsageError
from ringhaul.ledger.kinds import JobKind

#: Stands for a keyspace that a note asks for.
_SOME = "keyspace"


def checked(translation: Translation) -> Translation:
    """Return a translation with the reason if ringhaul would refuse its command."""
    try:
        options_of(translation)
    except UsageError as error:
        return translation.refused(str(error))
    return translation


def options_of(translation: Translation) -> JobOptions:
    """Return the options of a translated command. Raises `UsageError` if it would be refused."""
    name, *words = translation.words
    command = find_command(name)
    assert command is not None, name
    context = _parsed(command, name, _without_prompt(words))
    if not translation.complete and not _names_keyspace(context):
        context = _parsed(command, name, [*_without_prompt(words), "--keyspace", _SOME])
    rc: Path | None = context.params.get("cqlshrc")
    if rc is not None and rc.is_file():
        apply_cqlshrc(context)
    else:  # it may be on the machine on which the command will run
        context.params["cqlshrc"] = None
    options = job_options(JobKind(name), context)
    check_step_options(options, Path())
    return options


def _parsed(command: click.Command, name: str, words: Sequence[str]) -> click.Context:
    try:
        return command.make_context(name, list(words))
    except click.ClickException as error:
        raise UsageError(error.format_message()) from None


def _without_prompt(words: Sequence[str]) -> list[str]:
    """Return the words with a file in place of the option that asks for a password."""
    if "--password" not in words:
        return list(words)
    found = ["--password-file=password" if word == "--password" else word for word in words]
    return found if "--user" in words else [*found, "--user", "user"]


def _names_keyspace(context: click.Context) -> bool:
    params = context.params
    return "table" not in params or "." in (params["table"] or ".") or bool(params["keyspace"])
