"""Talking to the ledger's Redis: how to connect, and how long to keep trying.

Every script may be sent again when its answer was lost, because each changes something only the
first time: a unit is committed once, a lease is bound to its token, appended units have numbers, a
resume names the epoch that it leaves. The two that do act again are harmless: an `issue` whose
answer is lost leaves units issued that nobody publishes, which the sweep finds after
`unclaimed_ms`; a repeated `take` from a rate limit only slows a job down a little.
"""

import hashlib
import random
import re
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import redis
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    ClusterDownError,
    MovedError,
    NoPermissionError,
    NoScriptError,
    OutOfMemoryError,
    ReadOnlyError,
    TryAgainError,
)
from redis.retry import Retry

from ringhaul.errors import EXIT_FATAL, LedgerUnavailable, Terminal
from ringhaul.ledger.scripts import read_scripts

T = TypeVar("T")

#: Long enough for a restart of Redis that has to read a large append-only file.
PATIENCE_MS = 30_000
#: A half-open connection is noticed after this long.
SOCKET_TIMEOUT_S = 15.0
CONNECT_TIMEOUT_S = 5.0
PING_IDLE_S = 25
_PAUSE_FIRST_S = 0.05
_PAUSE_MAX_S = 2.0

_REFUSALS = (AuthenticationError, AuthorizationError, NoPermissionError)
#: Conditions of the server that pass: it is away, loading its log, failing over, or full.
_PASSING = (
    redis.ConnectionError,
    redis.TimeoutError,
    OutOfMemoryError,
    ReadOnlyError,
    TryAgainError,
    ClusterDownError,  # and MASTERDOWN
)
#: The same by the server's codes, as redis-py has no types for a disk that cannot be written to
#: (MISCONF), replicas that are away, and a script that hogs the server. A transaction that was
#: given up for one of them has it after words of its own.
_PASSING_CODE = re.compile(
    r"(?:^|caused error: |because of: )"
    r"(?:MISCONF|NOREPLICAS|BUSY|LOADING|READONLY|CLUSTERDOWN|MASTERDOWN)\b"
)


_CLUSTER = "it is a node of a Redis Cluster; name one server that is no cluster in broker.url"
#: What a server answers that is not set up for us, by its beginning; and what to do.
_USELESS = {
    "DB index is out of range": "it has no database of the number in broker.url; take one that "
    "it has, such as 0: redis://HOST:PORT/0",
    "invalid DB index": "the database in broker.url is not one; take 0: redis://HOST:PORT/0",
    "SELECT is not allowed in cluster mode": _CLUSTER,
    "CROSSSLOT": _CLUSTER,
    "unknown command": "it does not know, or does not allow, a command that is needed; Redis 7.2 "
    "or later and Valkey do",
}


class LedgerRefused(Terminal):
    """Redis answers, but not to this user."""

    exit_code = EXIT_FATAL


class ServerUnusable(LedgerRefused):
    """Redis answers, and is not set up so that it could ever serve."""


def connect(
    url: str,
    *,
    password: str | None = None,
    tls_ca: str | None = None,
    tls_cert: str | None = None,
    tls_key: str | None = None,
) -> redis.Redis:
    """A client for `url` (`redis://`, `rediss://` or `unix://`) with bounded waits.

    No connection is made before the first command. The pool opens new connections after a fork.
    `password` goes before one in the URL. Retries are `Caller`'s task, so the client makes none.
    """
    options: dict[str, Any] = {}
    if password is not None:
        options["password"] = password
    if url.startswith("rediss://"):
        options |= {"ssl_ca_certs": tls_ca, "ssl_certfile": tls_cert, "ssl_keyfile": tls_key}
    if not url.startswith("unix://"):
        options["socket_keepalive"] = True
        options["socket_connect_timeout"] = CONNECT_TIMEOUT_S
    return redis.Redis.from_url(
        url,
        socket_timeout=SOCKET_TIMEOUT_S,
        health_check_interval=PING_IDLE_S,
        retry=Retry(NoBackoff(), 0),
        decode_responses=False,
        **options,
    )


class Caller:
    """Runs scripts and commands, again and again while the server is away, within a bound."""

    def __init__(
        self,
        client: redis.Redis,
        *,
        patience_ms: int = PATIENCE_MS,
        scripts: Mapping[str, str] | None = None,
    ) -> None:
        """`client` must leave replies as bytes.

        `patience_ms`: no new try begins after this long; a try itself may take the client's socket
        timeout. `scripts` replaces the text of scripts (tests set the clock or break one).
        """
        if client.get_connection_kwargs().get("decode_responses"):
            raise ValueError("the ledger needs a client with decode_responses=False")
        self.client = client
        self._execute: Callable[..., Any] = client.execute_command
        self.patience_ms = patience_ms
        self._texts = {**read_scripts(), **(scripts or {})}
        # SHA-1 is how Redis names scripts; nothing depends on it being hard to forge.
        self._digests = {
            name: hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
            for name, text in self._texts.items()
        }

    def script(self, name: str, key: str, *arguments: str | int | bytes) -> Any:
        """The answer of script `name` on `key`; strings in it are bytes.

        Raises:
          LedgerUnavailable: no answer within `patience_ms`.
          LedgerRefused: the server does not accept this user.
        """

        def run() -> Any:
            try:
                return self._execute("EVALSHA", self._digests[name], 1, key, *arguments)
            except NoScriptError:  # a restarted server, or the first use
                return self._execute("EVAL", self._texts[name], 1, key, *arguments)

        return self.insist(run)

    def command(self, *words: str | int) -> Any:
        """The answer to one command; it must be one that may be repeated. Raises as `script`."""
        return self.insist(lambda: self._execute(*words))

    def insist(self, operation: Callable[[], T]) -> T:
        """The result of `operation`, which may be run several times. Raises as `script` does."""
        give_up_at = time.monotonic() + self.patience_ms / 1000
        pause_s = _PAUSE_FIRST_S
        while True:
            try:
                return operation()
            except _REFUSALS as error:  # some of them are ConnectionErrors too
                raise LedgerRefused(
                    f"Redis at {self.address()} refuses: {_words(error)}. Check the user, password "
                    "and access rules of the broker's settings."
                ) from error
            except redis.RedisError as error:
                if reason := _refusal(error):
                    raise ServerUnusable(
                        f"Redis at {self.address()} cannot be used: {reason} ({_words(error)})."
                    ) from error
                if not _passes(error):
                    raise
                # Spread out, so that a thousand workers do not all come back at once.
                wait_s = pause_s * random.uniform(0.5, 1.5)
                if time.monotonic() + wait_s > give_up_at:
                    raise LedgerUnavailable(
                        f"Redis at {self.address()} did not serve for "
                        f"{self.patience_ms / 1000:.0f} s: {_words(error)}. {_advice(error)} "
                        "Jobs go on by themselves when it is back."
                    ) from error
            time.sleep(wait_s)
            pause_s = min(pause_s * 2, _PAUSE_MAX_S)

    def address(self) -> str:
        """Where the server is, without user or password."""
        options = self.client.get_connection_kwargs()
        if "path" in options:
            return str(options["path"])
        return f"{options.get('host', 'localhost')}:{options.get('port', 6379)}"


def _refusal(error: redis.RedisError) -> str:
    """Why no waiting helps, and what to do; empty: another kind of error."""
    if isinstance(error, MovedError):
        return _CLUSTER
    text = str(error).removeprefix("ERR ")
    return next((words for begin, words in _USELESS.items() if text.startswith(begin)), "")


def _passes(error: redis.RedisError) -> bool:
    """Whether the server may serve later without anybody asking in another way."""
    if isinstance(error, _PASSING):
        return True
    return isinstance(error, redis.ResponseError) and bool(_PASSING_CODE.search(str(error)))


def _advice(error: redis.RedisError) -> str:
    if str(error).startswith(("OOM", "command not allowed when used memory")):
        return "It has no memory left: raise its maxmemory."
    return "Is the address right (broker.url)?"


def _words(error: Exception) -> str:
    """What went wrong, to be followed by a full stop: redis-py sets one too."""
    return str(error).rstrip(".")
