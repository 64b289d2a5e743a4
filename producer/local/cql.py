"""`ringhaul local cql`: cqlsh, from the extra `local`, at the address of the local stack.

cqlsh takes the place of this process, so that its prompt, Ctrl-C and exit code are its own: 0, or 2
after a statement that failed. It gets a configuration of its own: one in the user's home may be for
another cluster.
"""

import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

from producer.local.errors import ExtraMissing
from producer.local.stack import Endpoints
from producer.local.state import write_private

#: The package of cqlsh, and our script that runs it.
PACKAGE = "cqlshlib"
SCRIPT = Path(__file__).with_name("cqlsh.py")


def run_cqlsh(ends: Endpoints, folder: Path, arguments: Sequence[str]) -> NoReturn:
    """Replace this process by cqlsh.

    `folder`: place of its configuration. Raises `ExtraMissing` if cqlsh is not installed.
    """
    if find_spec(PACKAGE) is None:
        raise ExtraMissing("cqlsh")
    argv = cqlsh_argv(ends, folder, arguments)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os.execv(argv[0], argv)


def cqlsh_argv(ends: Endpoints, folder: Path, arguments: Sequence[str]) -> list[str]:
    """Return the command line of cqlsh, after writing the files that it names. Passwords are only
    in a file."""
    configuration, credentials = folder / "cqlshrc", folder / "cqlsh_credentials"
    write_private(configuration, "; written by ringhaul, for the local stack\n")
    argv = [sys.executable, "-P", str(SCRIPT), "--cqlshrc", str(configuration)]
    if ends.user is not None and ends.password_file is not None:
        password = ends.password_file.read_text().strip()
        write_private(
            credentials, f"[plain_text_auth]\nusername = {ends.user}\npassword = {password}\n"
        )
        argv += ["--credentials", str(credentials)]
    return [*argv, *arguments, ends.contact_points[0], str(ends.port)]
