"""Options that several commands share, and how flags become settings.

Flags that are settings reach the Celery application of this process as a value
(`tasks.settings.use_settings`). Child processes, such as embedded workers and steps, read their
settings from their environment, as every other worker does: see `Loaded.environment`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from config.layers import WAYS
from config.settings import Loaded, load_settings
from producer.options.connection import NO_BROKER, Connection
from producer.options.job import JobOptions
from producer.options.load import LoadOptions
from producer.options.option import settings_of
from ringhaul.errors import UsageError
from tasks.storage_settings import use_storage

#: Option -> setting, for the options of `Connection`.
CONNECTION_FLAGS = settings_of(Connection)
#: Option -> setting, for the other options of `load`.
LOAD_FLAGS = {
    name: key for name, key in settings_of(LoadOptions).items() if name not in CONNECTION_FLAGS
}
_OF_THE_BROKER = (
    *("broker.url", "broker.password_file"),
    *("broker.tls_ca", "broker.tls_cert", "broker.tls_key"),
)
#: Setting -> its option on a command line, for messages.
_OPTIONS = {
    key: f"--{flag.replace('_', '-')}" for flag, key in (CONNECTION_FLAGS | LOAD_FLAGS).items()
} | {"worker.concurrency": "-c"}


def settle(
    flags: Mapping[str, Any],
    config_file: Path | None,
    *,
    leave_out: Callable[[str], None] | None = None,
) -> Loaded:
    """Return the settings with these flags (dotted key -> value), and restrict this process to the
    paths and URLs that they allow.

    An empty text means the setting's empty value, whatever is configured. `leave_out`: see
    `load_settings`. Raises `ConfigError` or
    `UsageError` for a flag that cannot be used.
    """
    given = {key: value for key, value in flags.items() if value is not None}
    if given.get("broker.url") == "":
        raise UsageError(
            "--broker is empty: give redis://host:port/database, or none for the command's own "
            "workers"
        )
    if given.get("broker.url") == NO_BROKER:
        given |= dict.fromkeys(_OF_THE_BROKER, "")
    if _has_password(str(given.get("broker.url", ""))):
        raise UsageError(
            "--broker holds a password, which every user of this host can see; put the URL into "
            "RINGHAUL_BROKER_URL or the password into a file (broker.password_file)"
        )
    loaded = load_settings(given, config_file, _OPTIONS, leave_out=leave_out)
    use_storage(loaded.settings)
    return loaded


def _has_password(url: str) -> bool:
    try:
        return bool(urlsplit(url).password)
    except ValueError:  # not a URL: the settings' own check reports it
        return "@" in url


def connection_flags(options: Connection) -> dict[str, Any]:
    """Return setting -> value of its flag, or of a cqlshrc; None: not given."""
    flags = {key: getattr(options, flag) for flag, key in CONNECTION_FLAGS.items()}
    return _with_cqlshrc(flags, options)


def _with_cqlshrc(flags: dict[str, Any], options: Connection) -> dict[str, Any]:
    by_bundle = bool(flags.get("cluster.secure_connect_bundle"))
    for key, value in (options.cqlshrc.settings if options.cqlshrc else {}).items():
        of_the_other_way = key in WAYS or key.startswith("cluster.tls")
        if flags.get(key) is None and not (by_bundle and of_the_other_way):
            flags[key] = value
    return flags


def load_flags(options: LoadOptions) -> dict[str, Any]:
    """Return setting -> value for all flags of a load or a verification."""
    return connection_flags(options) | {
        key: getattr(options, flag) for flag, key in LOAD_FLAGS.items()
    }


def settings_with(options: JobOptions) -> Loaded:
    """Return the settings of a command with these options, without the changes that `settle` makes.

    Raises `ConfigError` for an unusable option.
    """
    both = CONNECTION_FLAGS | LOAD_FLAGS
    flags = {key: getattr(options, flag, None) for flag, key in both.items()}
    return load_settings(_with_cqlshrc(flags, options), None, _OPTIONS)
