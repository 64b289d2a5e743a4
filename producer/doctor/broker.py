"""Check the broker: reachable, fit for the ledger, and open to what ringhaul does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from config.settings import Settings
from producer.doctor.finding import BROKER, Finding, State
from ringhaul.ledger.connection import Caller
from ringhaul.ledger.rights import (
    Refused,
    describe_refused,
    needed_commands,
    refused_commands,
    user_of,
)
from ringhaul.ledger.server import read_server
from ringhaul.ledger.server_checks import check_server
from tasks.connect import open_ledger
from tasks.host.clock import Offset, broker_offset

#: A broker that is up answers in milliseconds.
PATIENCE_MS = 2000
_CHECK = "rights"


class Broker(NamedTuple):
    """The broker, open, and what was found out about it."""

    caller: Caller
    findings: Sequence[Finding]
    clock: Offset | None  #: how far the broker's clock is ahead of this host's

    @property
    def host(self) -> str:
        """Its name or address; empty: it is reached through a socket's file."""
        return str(self.caller.client.get_connection_kwargs().get("host", ""))


def open_broker(settings: Settings) -> Broker:
    """Connect and check. Raises `RinghaulError` and `ConfigError` for an unusable broker."""
    caller = open_ledger(settings, PATIENCE_MS).caller
    facts = read_server(caller, timed=True)
    found = [BROKER.ok("address", f"{facts.address} answers")]
    found += [
        Finding(
            about=BROKER.about,
            check=check.name,
            state=State(check.level.value),
            text=check.text,
            advice=check.advice,
        )
        for check in check_server(facts)
    ]
    seen = {check.check for check in found}
    unseen = [name for name in ("eviction", "persistence") if name not in seen]
    found += [BROKER.unchecked(name, "the server does not say") for name in unseen]
    refused = refused_commands(caller, settings.broker.key_prefix)
    found.append(judge_rights(refused, user_of(caller), settings.broker.key_prefix))
    return Broker(caller, found, broker_offset(caller))


def judge_rights(refused: Sequence[Refused], user: str, queue_prefix: str) -> Finding:
    """Judge whether the user may run what the ledger and Celery need."""
    text = describe_refused(refused, user)
    if not text:
        count = len({words[0] for words in needed_commands(queue_prefix)})
        return BROKER.ok(_CHECK, f"user {user} may run the {count} commands that are needed")
    return BROKER.fault(_CHECK, text, rights_advice(queue_prefix))


def rights_advice(queue_prefix: str) -> str:
    """Return what to do about missing rights."""
    keys = "~ringhaul:*" + ("" if queue_prefix.startswith("ringhaul:") else f" ~{queue_prefix}*")
    return f"give the user the rules of deploy/redis-users.acl ({keys} &* +@all ...)"
