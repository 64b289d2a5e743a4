"""Find out which commands of the ledger and of Celery the broker's access rules refuse.

All are queued in a transaction that is then discarded. The server checks the rights to a command,
its keys and its channels when it is queued, so nothing runs and nothing is changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import redis

from ringhaul.ledger import keys
from ringhaul.ledger.connection import Caller

#: Commands of scripts and of this package, by the words that follow the key; None: without a key.
#: A test compares them with the sources.
LEDGER: dict[str, Sequence[str | int] | None] = {
    "BITCOUNT": (),
    "BITPOS": (0,),
    "DEL": (),
    "EXISTS": (),
    "EXPIRE": (1,),
    "GET": (),
    "GETBIT": (0,),
    "HDEL": ("f",),
    "HEXISTS": ("f",),
    "HGET": ("f",),
    "HGETALL": (),
    "HINCRBY": ("f", 1),
    "HKEYS": (),
    "HLEN": (),
    "HMGET": ("f",),
    "HSCAN": (0,),
    "HSET": ("f", "v"),
    "HSETNX": ("f", "v"),
    "HVALS": (),
    "LINDEX": (0,),
    "LLEN": (),
    "LRANGE": (0, -1),
    "LREM": (0, "v"),
    "LSET": (0, "v"),
    "PERSIST": (),
    "PEXPIRE": (1,),
    "PEXPIREAT": (1,),
    "PEXPIRETIME": (),
    "PING": None,
    "RPUSH": ("v",),
    "SADD": ("v",),
    "SCARD": (),
    "SET": ("v",),
    "SETBIT": (0, 1),
    "SETRANGE": (0, "v"),
    "SMEMBERS": (),
    "SREM": ("v",),
    "STRLEN": (),
    "TIME": None,
    "WAITAOF": None,
    "ZADD": (1, "v"),
    "ZCARD": (),
    "ZCOUNT": (0, 1),
    "ZPOPMIN": (),
    "ZRANGE": (0, -1),
    "ZRANGEBYSCORE": (0, 1),
    "ZREM": ("v",),
    "ZREMRANGEBYSCORE": (0, 1),
    "ZREVRANGE": (0, -1),
    "ZSCORE": ("v",),
}
#: Commands of kombu's transport on its own keys.
CELERY: dict[str, Sequence[str | int]] = {
    "BRPOP": (1,),
    "DEL": (),
    "EXISTS": (),
    "GET": (),
    "HDEL": ("f",),
    "HGET": ("f",),
    "HSET": ("f", "v"),
    "LLEN": (),
    "LPUSH": ("v",),
    "PEXPIRE": (1,),
    "RPOP": (),
    "RPUSH": ("v",),
    "SADD": ("v",),
    "SET": ("v", "NX", "PX", 1),
    "SMEMBERS": (),
    "SREM": ("v",),
    "ZADD": (1, "v"),
    "ZRANGE": (0, -1),
    "ZREM": ("v",),
}
#: Commands of both without a key, or with another number of words before it.
_OTHERS: dict[str, Sequence[str | int]] = {"WAITAOF": (0, 0, 0)}
_SCRIPT = "return 1"
_SHOWN = 6


class Refused(NamedTuple):
    """A command that the server refuses."""

    command: str
    reason: str  #: `command`, `keys` or `channels`: what the rules do not include


def refused_commands(caller: Caller, queue_prefix: str) -> list[Refused]:
    """Return the commands that this user may not run, each once.

    `queue_prefix`: prefix of Celery's keys and channels. Raises as `Caller.script` does.
    """
    lines = needed_commands(queue_prefix)
    first: list[Sequence[str | int]] = [("WATCH", _ledger_key()), ("MULTI",)]
    answers = caller.insist(lambda: _queued(caller.client, first, lines))
    found: dict[Refused, None] = {}
    for words, error in zip([*first, *lines], answers, strict=False):
        if error is not None:
            found[Refused(str(words[0]), _reason(error))] = None
    return list(found)


def describe_refused(refused: Sequence[Refused], user: str) -> str:
    """Return what the user may not do; empty if that is nothing."""
    commands = [one.command for one in refused if one.reason == "command"]
    texts = []
    if commands:
        more = f" and {len(commands) - _SHOWN} more" if len(commands) > _SHOWN else ""
        texts.append(f"may not run {', '.join(commands[:_SHOWN])}{more}")
    reasons = {one.reason for one in refused}
    texts += [f"may not use the {name}" for name in ("keys", "channels") if name in reasons]
    return f"user {user} {', and '.join(texts)}" if texts else ""


def user_of(caller: Caller) -> str:
    """Return the name of the user that the broker knows this process by."""
    return str(caller.client.get_connection_kwargs().get("username") or "default")


def needed_commands(queue_prefix: str) -> list[Sequence[str | int]]:
    """Return every command with arguments that the server accepts."""
    ledger, queue = _ledger_key(), f"{queue_prefix}doctor"
    lines: list[Sequence[str | int]] = [
        (name, *(_OTHERS.get(name, ()) if more is None else (ledger, *more)))
        for name, more in LEDGER.items()
    ]
    lines += [("EVAL", _SCRIPT, 1, ledger), ("EVALSHA", "0" * 40, 1, ledger)]
    lines += [(name, queue, *more) for name, more in CELERY.items()]
    lines += [("PUBLISH", queue, "v"), ("SUBSCRIBE", queue), ("UNSUBSCRIBE", queue)]
    return [*lines, ("PSUBSCRIBE", f"{queue}*"), ("PUNSUBSCRIBE", f"{queue}*")]


def _ledger_key() -> str:
    return keys.job_key("doctor", "rights")


def _queued(
    client: redis.Redis, first: Sequence[Sequence[Any]], lines: Sequence[Sequence[Any]]
) -> list[redis.ResponseError | None]:
    """Queue the commands and discard them; return each one's error."""
    pool = client.connection_pool
    connection: Any = pool.get_connection()
    try:
        errors = _send(connection, first)
        if errors[-1] is None:  # outside of a transaction they would run
            errors += _send(connection, lines)
            _send(connection, [("DISCARD",)])
        return errors
    finally:
        connection.disconnect()
        pool.release(connection)


def _send(connection: Any, lines: Sequence[Sequence[Any]]) -> list[redis.ResponseError | None]:
    connection.send_packed_command(connection.pack_commands(lines))
    return [_error(connection) for _ in lines]


def _error(connection: Any) -> redis.ResponseError | None:
    try:
        connection.read_response()
    except redis.ResponseError as error:
        return error
    return None


def _reason(error: redis.ResponseError) -> str:
    text = str(error)
    return "keys" if "a key" in text else "channels" if "a channel" in text else "command"
