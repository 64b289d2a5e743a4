"""Options for where the cluster and the broker are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from producer.options.cqlshrc import Cqlshrc
from producer.options.groups import Group
from producer.options.kinds import TEXT, Password, PathOf, Whole
from producer.options.option import again, option

#: A `--broker` that turns off the configured broker and all its settings.
NO_BROKER = "none"

#: No option of it counts in a fingerprint.
_option = partial(option, group=Group.CLUSTER, how=True)
_OF_BEAT = "the cluster and its user are in beat's settings"


@dataclass(frozen=True, kw_only=True)
class Connection:
    """Where the cluster and the broker are. None: as configured. Passwords are never flags."""

    contact_points: str | None = _option(
        "--contact-points",
        metavar="HOST,...",
        help="Nodes to ask first.",
        common=True,
        setting="cluster.contact_points",
        no_step=_OF_BEAT,
    )
    port: int | None = _option(
        "--port",
        Whole(),
        help="Native protocol port (9042).",
        setting="cluster.port",
        no_step=_OF_BEAT,
    )
    secure_connect_bundle: str | None = _option(
        "--secure-connect-bundle",
        metavar="FILE",
        help="Zip file of a managed cluster, instead of nodes and port.",
        setting="cluster.secure_connect_bundle",
        no_step=_OF_BEAT,
    )
    local_dc: str | None = _option(  # a step may choose the data centre that it reads from
        "--local-dc",
        metavar="NAME",
        help="Use the nodes of this data centre.",
        setting="cluster.local_dc",
    )
    user: str | None = _option(
        "-u --user",
        metavar="NAME",
        help="User to log in as.",
        common=True,
        setting="cluster.user",
        no_step=_OF_BEAT,
    )
    ask_password: None = _option(
        "-p --password",
        Password(),
        metavar="",
        help="Ask for the password on the terminal; takes no value.",
        brief="Ask for the password on the terminal.",
        common=True,
        no_step=_OF_BEAT,
    )
    password_file: str | None = _option(
        "--password-file",
        metavar="FILE",
        help="File whose first line is the password.",
        setting="cluster.password_file",
        no_step=_OF_BEAT,
    )
    broker: str | None = _option(
        "--broker",
        TEXT,
        metavar=f"URL|{NO_BROKER}",
        help="Redis of the workers, e.g. redis://host:6379/0; none: the command's own workers.",
        brief="Redis of the workers, or none.",
        common=True,
        setting="broker.url",
        no_step="the broker is beat's own",
    )
    config_file: Path | None = _option(
        "--config",
        PathOf(folder=False),
        help="Read this file instead of ringhaul.toml.",
        no_step="the settings are beat's own",
    )
    cqlshrc: Cqlshrc | None = None


@dataclass(frozen=True, kw_only=True)
class LedgerPlace:
    """Where the ledger is, for commands that look at or control a job. None: as configured."""

    broker: str | None = again(
        Connection,
        "broker",
        help="Redis of the job, e.g. redis://host:6379/0; none: the embedded jobs' Redis.",
    )
    config_file: Path | None = again(Connection, "config_file")
