"""Ask for the password of the cluster on the terminal (`-p`).

It reaches this process and its embedded workers like any other password: as the first line of a
file that `cluster.password_file` names. That file is in memory, where Linux has such files, and
gone when the command ends. No argument, variable, message or task holds the password.
"""

from __future__ import annotations

import getpass
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TypeVar

import rich_click as click

from config.known_secrets import remember
from producer.options.connection import Connection
from producer.request.values import refuse_blank
from ringhaul.errors import UsageError

#: What click has for `-p` without a value: no text that a user can type.
PROMPT = "\0"
#: Key in a context's `meta`: set if `-p` was given.
ASK_KEY = "ringhaul.ask_password"
_TERMINAL = "/dev/tty"

Options = TypeVar("Options", bound=Connection)


def note_password_flag(
    context: click.Context, option: click.Parameter, value: str | None
) -> str | None:
    """Note `-p` in the context, as a callback of the option. Raises `BadParameter` for a value: an
    argument is visible to every user of the host. The message does not repeat it."""
    if value is None:
        return None
    if value != PROMPT:
        raise click.BadParameter(
            "it takes no value, because every user of this host can see one. Alone it asks for the "
            "password on the terminal: put it last, or before another option. Scripts give "
            "--password-file"
        )
    context.meta[ASK_KEY] = True
    return value


@contextmanager
def prompting_for_password(options: Options) -> Iterator[Options]:
    """Yield the options of the running command, with a password file if it has `-p`, or if its
    cqlshrc has the password of its user.

    Raises `UsageError` without a terminal, or for an empty password.
    """
    with prompting_for_file(options.user, options.password_file) as path:
        rc = options.cqlshrc
        if path is None and rc is not None and rc.password and options.user in (None, rc.user):
            with _private_file(rc.password) as path:
                yield replace(options, password_file=path)
            return
        yield options if path == options.password_file else replace(options, password_file=path)


@contextmanager
def prompting_for_file(user: str | None, given: str | None) -> Iterator[str | None]:
    """Yield the password file: `given`, or one with the password if the running command has `-p`.
    Raises as `prompting_for_password` does."""
    context = click.get_current_context(silent=True)
    if context is None or not context.meta.get(ASK_KEY):
        yield given
        return
    if given is not None:
        raise UsageError("-p and --password-file both give the password: leave one of them out")
    refuse_blank("--user", user, "a name")
    with _private_file(_ask(user)) as path:
        yield path


def _ask(user: str | None) -> str:
    """Return the password that is typed on the terminal, which does not show it."""
    try:
        os.close(os.open(_TERMINAL, os.O_RDWR | os.O_NOCTTY))
    except OSError:
        raise UsageError(
            "-p asks for the password on a terminal, and there is none: write it into a file that "
            "only you can read, and give --password-file"
        ) from None
    try:
        password = getpass.getpass(f"Password of {user}: " if user else "Password: ")
    except EOFError:
        password = ""
    if not password:
        raise UsageError("-p: no password was typed")
    remember(password)
    return password


@contextmanager
def _private_file(text: str) -> Iterator[str]:
    """Yield the path of a file with this text, which only this user can read, until the block ends.

    This process and its children can open the file any number of times.
    """
    if hasattr(os, "memfd_create"):
        number = os.memfd_create("ringhaul-password")  # closed in child processes
        path, in_memory = f"/proc/{os.getpid()}/fd/{number}", True
    else:
        number, path = tempfile.mkstemp(prefix="ringhaul-")  # mode 0600
        in_memory = False
    try:
        with os.fdopen(number, "wb", buffering=0) as file:
            os.fchmod(number, 0o600)
            file.write(text.encode() + b"\n")
            yield path
    finally:
        if not in_memory:
            with suppress(FileNotFoundError):
                os.unlink(path)
