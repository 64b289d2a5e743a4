"""Read the configuration of the ledger's server, once per worker, command or `doctor`."""

import statistics
import time
from typing import Any

import redis

from ringhaul.ledger.connection import Caller
from ringhaul.ledger.server_checks import ServerFacts

_PINGS = 5


def read_server(caller: Caller, *, timed: bool = False) -> ServerFacts:
    """Return what the server reports; None for what it refuses.

    INFO and CONFIG need special rights, and managed servers have no CONFIG. `timed`: measure the
    latency of a response. Raises LedgerUnavailable, and LedgerRefused if the server is unusable.
    """
    caller.command("PING")
    info = caller.insist(lambda: _allowed(caller.client.info)) or {}
    policy = _setting(caller, "maxmemory-policy") or info.get("maxmemory_policy")
    appendfsync = _setting(caller, "appendfsync")
    aof, clustered = info.get("aof_enabled"), info.get("cluster_enabled")
    return ServerFacts(
        address=caller.address(),
        version=info.get("valkey_version") or info.get("redis_version"),
        policy=policy,
        appendonly=None if aof is None else aof == 1,
        appendfsync=appendfsync,
        persisted=_persisted(info),
        role=info.get("role"),
        clustered=None if clustered is None else clustered == 1,
        used_bytes=info.get("used_memory"),
        maxmemory_bytes=info.get("maxmemory"),
        latency_ms=_latency_ms(caller) if timed else None,
    )


def _persisted(info: dict[str, Any]) -> bool | None:
    names = ("aof_last_write_status", "rdb_last_bgsave_status")
    found = [info[name] for name in names if name in info]
    return all(status == "ok" for status in found) if found else None


def _setting(caller: Caller, name: str) -> str | None:
    found = caller.insist(lambda: _allowed(lambda: caller.client.config_get(name))) or {}
    for key, value in found.items():
        if (key.decode() if isinstance(key, bytes) else key) == name:
            return value.decode() if isinstance(value, bytes) else str(value)
    return None


def _allowed(ask: Any) -> Any:
    """Return the response; None if the server does not allow the command."""
    try:
        return ask()
    except redis.ResponseError as error:
        if str(error).startswith(("LOADING", "MASTERDOWN", "BUSY")):
            raise
        return None


def _latency_ms(caller: Caller) -> float:
    took = []
    for _ in range(_PINGS):
        began = time.perf_counter()
        caller.command("PING")
        took.append(time.perf_counter() - began)
    return statistics.median(took) * 1000
