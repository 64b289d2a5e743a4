"""Connect to the ledger's Redis, and retry while it is unavailable.

Every script may be sent again if its response was lost, because each changes something only the
first time: a unit is committed once, a lease is bound to its token, appended units have numbers, a
resume names the epoch that it leaves. The two exceptions are harmless: an `issue` whose response is
lost leaves units issued and unpublished, which the sweep finds after `unclaimed_ms`; a repeated
`take` from a rate limit only slows a job down a little.
"""

import hashlib
import re
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import redis
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    ClusterCrossSlotError,
    ClusterDownError,
    InvalidResponse,
    MovedError,
    NoPermissionError,
    NoScriptError,
    OutOfMemoryError,
    ReadOnlyError,
    TryAgainError,
)
from redis.retry import Retry

from ringhaul.backoff import pause_s, spread
from ringhaul.errors import EXIT_FATAL, LedgerUnavailable, Terminal
from ringhaul.ledger.scripts import read_scripts
from ringhaul.ledger.stranger import what_answers

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
#: Temporary conditions: the server is unreachable, loading its log, failing over, or full.
_PASSING = (
    redis.ConnectionError,
    redis.TimeoutError,
    OutOfMemoryError,
    ReadOnlyError,
    TryAgainError,
    ClusterDownError,  # and MASTERDOWN
)
#: The same by server code, since redis-py has no types for a disk that cannot be written (MISCONF),
#: replicas that are unreachable, and a script that blocks the server. In an aborted transaction the
#: code follows other text.
_PASSING_CODE = re.compile(
    r"(?:^|caused error: |because of: )"
    r"(?:MISCONF|NOREPLICAS|BUSY|LOADING|READONLY|CLUSTERDOWN|MASTERDOWN)\b"
)


_CLUSTER = "it is a node of a Redis Cluster; set a server that is not part of one in broker.url"
#: Errors of a server that is unsuitable, by the beginning of their text; and what to do.
_USELESS = {
    "DB index is out of range": "it has no database with the number in broker.url; use one that "
    "it has, such as 0: redis://HOST:PORT/0",
    "invalid DB index": "the database in broker.url is invalid; use 0: redis://HOST:PORT/0",
    "SELECT is not allowed in cluster mode": _CLUSTER,
    "unknown command": "it does not know, or does not allow, a required command; Redis 7.2 "
    "or later and Valkey do",
}


class LedgerRefused(Terminal):
    """Redis is up, but does not accept this user."""

    exit_code = EXIT_FATAL


class ServerUnusable(LedgerRefused):
    """Redis is up, but its configuration makes it unusable."""


def connect(
    url: str,
    *,
    password: str | None = None,
    tls_ca: str | None = None,
    tls_cert: str | None = None,
    tls_key: str | None = None,
    timeout_s: float = SOCKET_TIMEOUT_S,
) -> redis.Redis:
    """Return a client for `url` (`redis://`, `rediss://` or `unix://`) with bounded waits.

    It connects at the first command, and its pool reconnects after a fork. `password` takes
    precedence over one in the URL. `timeout_s`: how long it waits for an answer, and at most for a
    connection. Retries are `Caller`'s task, so the client makes none.
    """
    options: dict[str, Any] = {}
    if password is not None:
        options["password"] = password
    if url.startswith("rediss://"):
        options |= {"ssl_ca_certs": tls_ca, "ssl_certfile": tls_cert, "ssl_keyfile": tls_key}
    if not url.startswith("unix://"):
        options["socket_keepalive"] = True
        options["socket_connect_timeout"] = min(CONNECT_TIMEOUT_S, timeout_s)
    return redis.Redis.from_url(
        url,
        socket_timeout=timeout_s,
        health_check_interval=PING_IDLE_S,
        retry=Retry(NoBackoff(), 0),
        decode_responses=False,
        **options,
    )


class Caller:
    """Runs scripts and commands, retrying for a limited time while the server is unavailable."""

    def __init__(
        self,
        client: redis.Redis,
        *,
        patience_ms: int = PATIENCE_MS,
        scripts: Mapping[str, str] | None = None,
    ) -> None:
        """`client` must return replies as bytes.

        `patience_ms`: no new try starts after this long; a try itself may take the client's socket
        timeout. `scripts` replaces the text of scripts (tests set the clock or break one).
        """
        if client.get_connection_kwargs().get("decode_responses"):
            raise ValueError("the ledger needs a client with decode_responses=False")
        self.client = client
        self._execute: Callable[..., Any] = client.execute_command
        self.patience_ms = patience_ms
        self._texts = {**read_scripts(), **(scripts or {})}
        # Redis names scripts by SHA-1; it does not have to be secure.
        self._digests = {
            name: hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
            for name, text in self._texts.items()
        }

    def script(self, name: str, key: str, *arguments: str | int | bytes) -> Any:
        """Return the response of script `name` on `key`; strings in it are bytes.

        Raises:
          LedgerUnavailable: no response within `patience_ms`.
          LedgerRefused: the server does not accept this user.
        """
        return self._script("", name, key, *arguments)

    def reading_script(self, name: str, key: str, *arguments: str | int | bytes) -> Any:
        """Run a script that changes nothing, as `script` does, but also for a read-only user."""
        return self._script("_RO", name, key, *arguments)

    def _script(self, how: str, name: str, key: str, *arguments: str | int | bytes) -> Any:
        def run() -> Any:
            try:
                return self._execute(f"EVALSHA{how}", self._digests[name], 1, key, *arguments)
            except NoScriptError:  # the server restarted, or this is the first use
                return self._execute(f"EVAL{how}", self._texts[name], 1, key, *arguments)

        return self.insist(run)

    def command(self, *words: str | int) -> Any:
        """Return the response to a command, which must be idempotent. Raises as `script`."""
        return self.insist(lambda: self._execute(*words))

    def insist(self, operation: Callable[[], T]) -> T:
        """Return the result of `operation`, which may run several times. Raises as `script`."""
        give_up_at = time.monotonic() + self.patience_ms / 1000
        tries = 0
        while True:
            try:
                return operation()
            except _REFUSALS as error:  # some of them are ConnectionErrors too
                raise LedgerRefused(
                    f"Redis at {self.address()} refuses: {_words(error)}. Check the user, password "
                    "and access rules of the broker's settings."
                ) from error
            except (InvalidResponse, ValueError) as error:
                # redis-py raises the second for a number that is none.
                raise self._not_redis(_words(error)) from error
            except redis.RedisError as error:
                if reason := _refusal(error):
                    raise ServerUnusable(
                        f"Redis at {self.address()} cannot be used: {reason} ({_words(error)})."
                    ) from error
                if not _passes(error):
                    raise
                if not tries and (answer := self._strange_answer(error)):
                    raise self._not_redis(answer) from error
                tries += 1
                wait_s = spread(pause_s(tries, first_s=_PAUSE_FIRST_S, max_s=_PAUSE_MAX_S))
                if time.monotonic() + wait_s > give_up_at:
                    raise LedgerUnavailable(
                        f"Redis at {self.address()} did not serve for "
                        f"{self.patience_ms / 1000:.0f} s: {_words(error)}. {_advice(error)} "
                        "Jobs continue when it is back."
                    ) from error
            time.sleep(wait_s)

    def _strange_answer(self, error: redis.RedisError) -> str:
        if not isinstance(error, redis.ConnectionError):
            return ""
        return what_answers(self.client.get_connection_kwargs())

    def _not_redis(self, answer: str) -> ServerUnusable:
        return ServerUnusable(
            f"What answers at {self.address()} is not Redis: {answer}. Set the address and port of "
            "Redis in broker.url."
        )

    def address(self) -> str:
        """Return the server's address, without user or password."""
        options = self.client.get_connection_kwargs()
        if "path" in options:
            return str(options["path"])
        return f"{options.get('host', 'localhost')}:{options.get('port', 6379)}"


def _refusal(error: redis.RedisError) -> str:
    """Return why waiting does not help, and what to do; empty for other errors."""
    if isinstance(error, MovedError | ClusterCrossSlotError):
        return _CLUSTER
    text = str(error).removeprefix("ERR ")
    return next((words for begin, words in _USELESS.items() if text.startswith(begin)), "")


def _passes(error: redis.RedisError) -> bool:
    """Return whether the server may serve later without any change."""
    if isinstance(error, _PASSING):
        return True
    return isinstance(error, redis.ResponseError) and bool(_PASSING_CODE.search(str(error)))


def _advice(error: redis.RedisError) -> str:
    if str(error).startswith(("OOM", "command not allowed when used memory")):
        return "It has no memory left: raise its maxmemory."
    return "Is the address right (broker.url)?"


def _words(error: Exception) -> str:
    """Return the error's text without the full stop that redis-py adds."""
    return str(error).rstrip(".")
