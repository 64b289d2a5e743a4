"""The broker and the cluster, as this host sees them."""

from __future__ import annotations

from collections.abc import Callable

from config.secrets import mask
from config.settings import Settings
from ringhaul.ledger.openings import Openings
from ringhaul.ledger.rights import describe_refused, refused_commands, user_of
from tasks.cluster_settings import cluster_config
from tasks.connect import open_ledger
from tasks.host.clock import broker_offset
from tasks.host.cluster import view_cluster
from tasks.host.report import HostView

#: Sessions that open at the same time over all hosts, see `ringhaul.ledger.openings`: more than
#: workers may, since these stay open for a moment only.
OPENINGS_FACTOR = 4
OPENING_WAIT_S = 2.0
OPENING_TTL_MS = 10_000
#: How long Redis is tried.
PATIENCE_MS = 2000


def look_at_broker(settings: Settings, say: Callable[..., None]) -> None:
    """Say how far the broker's clock is off, and which commands this user may not run."""
    caller = open_ledger(settings, PATIENCE_MS).caller
    say(broker_clock=broker_offset(caller))
    refused = refused_commands(caller, settings.broker.key_prefix)
    say(refused=describe_refused(refused, user_of(caller)))


def look_at_cluster(settings: Settings, say: Callable[..., None]) -> None:
    """Say which nodes a session finds; nothing if many hosts look at once."""
    openings = Openings(open_ledger(settings, PATIENCE_MS).caller)
    places = OPENINGS_FACTOR * settings.worker.session_openings_max
    token = openings.acquire("doctor", places, OPENING_TTL_MS, OPENING_WAIT_S)
    if token is None:
        return
    try:
        try:
            say(cluster=view_cluster(cluster_config(settings)))
        except Exception as error:  # settings that cannot be used, such as a missing file
            say(cluster=HostView(error=mask(str(error))))
    finally:
        openings.release("doctor", token)
