"""How nodes import a job's SSTables, by the settings: the call and the folders.

What imports is needed by few processes, and imports kernels: it is imported when it is used.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from config.errors import ConfigError
from config.secrets import read_secret
from config.settings import Settings

if TYPE_CHECKING:
    from ringhaul.imports.command import ImportCommand
    from ringhaul.imports.folder import ImportFolders


def import_command(settings: Settings) -> ImportCommand:
    """Return how nodes' imports are called from this host.

    Raises `SetupUnusable` without nodetool, and `ConfigError` for a password that cannot be read or
    passed on.
    """
    from ringhaul.imports.command import ImportCommand, find_nodetool, nodetool_arguments

    imports = settings.imports
    password = ""
    if imports.jmx_password_file is not None:
        password = read_secret(imports.jmx_password_file, "imports.jmx_password_file")
        if password.split() != [password]:
            raise ConfigError(
                "imports.jmx_password_file: nodetool takes no password with blanks: give the user "
                "of imports.jmx_user another one"
            )
    words = tuple(shlex.split(imports.command))
    if not words:
        login = nodetool_arguments(logs_in=bool(imports.jmx_user))
        words = (*find_nodetool(settings.cache_dir), *login)
    return ImportCommand(
        words=words,
        port=imports.jmx_port,
        user=imports.jmx_user,
        password=password,
        timeout_s=imports.timeout_s,
        connects=not imports.command,
    )


def import_folders(
    settings: Settings, folder: str, keyspace: str, table: str, job_id: str
) -> ImportFolders:
    """Return the folders from which nodes import a job's SSTables. `folder`: the job's."""
    from ringhaul.imports.folder import ImportFolders

    return ImportFolders(
        folder=folder,
        node_folder=str(settings.imports.node_folder or folder),
        keyspace=keyspace,
        table=table,
        job_id=job_id,
    )
