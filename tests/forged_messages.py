"""Messages as a stranger may write them to the broker: each field of a real one has another value.

`json.dumps` writes what JSON lacks (NaN, halves of characters) in the way that parsers accept.
"""

from __future__ import annotations

import base64
import copy
import json
import random
from collections.abc import Iterator
from typing import Any

from ringhaul.ledger.labels import TRACE_LABEL
from tasks.messages import Unfit, fit
from tasks.names import TaskNames

#: Of every type: empty, zero, false, of the wrong kind, too large, and what no one can encode.
VALUES: tuple[Any, ...] = (
    *(None, "", 0, False, True, [], {}, 1, -1, 0.0, 1.5, "x", "0", [None], [[]], {"a": 1}),
    *(float("nan"), float("inf"), 1e308, 10**18, 10**4000, "\0", "\ud800", "x" * 20_000),
    *("2026-01-01T00:00:00", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59.999999"),
    {"__type__": "datetime", "__value__": "0001-01-01T00:00:00"},
    {"__type__": "uuid", "__value__": {"hex": "0" * 32}},
    {"__type__": "decimal", "__value__": "NaN"},
    ["ringhaul.load", "celery@host"],
    {"exchange": "x", "routing_key": "y"},
)
#: Values that no JSON has.
GARBAGE = (
    *(b"{", b"[]", b"7", b"null", b'"x"', b"\xff\xfe", b'{"a": 1}', b"x" * 3000, b"[" * 5000),
    *(b"1" * 10_000, b'{"body": "', b"\0", b"{}"),
)
#: Where a value goes: a path in the message, in which `body` is still an object.
_HEADERS = (
    *("task", "id", "eta", "expires", "retries", "timelimit", "callbacks", "errbacks", "chain"),
    *("chord", "group", "group_index", "root_id", "parent_id", "origin", "argsrepr", "kwargsrepr"),
    *("lang", "ignore_result", "stamps", "stamped_headers", "shadow", "replaced_task_nesting"),
    *("redelivered", "compression", "clock", "hostname", TRACE_LABEL, "args", "unknown"),
)
_PROPERTIES = (
    *("correlation_id", "reply_to", "delivery_mode", "delivery_info", "priority"),
    *("body_encoding", "delivery_tag", "unknown"),
)
_DELIVERY = ("exchange", "routing_key", "redelivered", "consumer_tag")
_OUTER = ("body", "content-encoding", "content-type", "headers", "properties")
_CONTROL = ("method", "arguments", "destination", "pattern", "matcher", "ticket", "reply_to")
_UNIT_PLACES: tuple[tuple[Any, ...], ...] = (
    *((name,) for name in _OUTER),
    *(("headers", name) for name in _HEADERS),
    *(("properties", name) for name in _PROPERTIES),
    *(("properties", "delivery_info", name) for name in _DELIVERY),
    *(("body", number) for number in range(3)),
    *(("body", 1, name) for name in ("job", "unit", "epoch", "more")),
    *(("body", 2, name) for name in ("callbacks", "errbacks", "chain", "chord", "id")),
)
_CONTROL_PLACES: tuple[tuple[Any, ...], ...] = (
    *((name,) for name in _OUTER),
    *(("headers", name) for name in ("clock", "expires", "compression", "ticket")),
    *(("properties", name) for name in _PROPERTIES),
    *(("body", name) for name in _CONTROL),
    *(("body", "arguments", name) for name in ("with_defaults", "safe", "n")),
    *(("body", "reply_to", name) for name in ("exchange", "routing_key")),
)


def unit_message(queue: str) -> dict[str, Any]:
    """A unit's message as Celery sends it, of a job that does not exist. Its body is an object."""
    return {
        "body": [
            [],
            {"job": "ld-forged", "unit": 3, "epoch": 1},
            {"callbacks": None, "errbacks": None, "chain": None, "chord": None},
        ],
        "content-encoding": "utf-8",
        "content-type": "application/json",
        "headers": {
            **{"lang": "py", "task": TaskNames.LOAD_UNIT, "id": "1-a", "root_id": "1-a"},
            **{"shadow": None, "eta": None, "expires": None, "group": None, "group_index": None},
            **{"retries": 0, "timelimit": [None, None], "parent_id": None, "argsrepr": "()"},
            **{"kwargsrepr": "{}", "origin": "gen1@h", "ignore_result": None},
            **{"replaced_task_nesting": 0, "stamped_headers": None, "stamps": {}},
        },
        "properties": _properties("", queue),
    }


def control_message(method: str, **arguments: Any) -> dict[str, Any]:
    """A remote control command as Celery sends it. Its body is an object."""
    return {
        "body": {
            **{"method": method, "arguments": arguments, "destination": None, "pattern": None},
            **{"matcher": None, "ticket": "1-c"},
            "reply_to": {"exchange": "reply.celery.pidbox", "routing_key": "1-d"},
        },
        "content-encoding": "utf-8",
        "content-type": "application/json",
        "headers": {"clock": 1, "expires": 0},
        "properties": _properties("celery.pidbox", ""),
    }


def _properties(exchange: str, routing_key: str) -> dict[str, Any]:
    return {
        **{"correlation_id": "1-a", "reply_to": "1-b", "delivery_mode": 2, "priority": 0},
        **{"body_encoding": "base64", "delivery_tag": "1-t"},
        "delivery_info": {"exchange": exchange, "routing_key": routing_key},
    }


def encoded(message: dict[str, Any]) -> bytes:
    """Return a message as it is in Redis."""
    body = message["body"]
    if not isinstance(body, str):
        body = base64.b64encode(json.dumps(body).encode()).decode()
    return json.dumps({**message, "body": body}).encode()


def forged_units(queue: str) -> Iterator[bytes]:
    """Messages for a queue of units: every value in every place."""
    yield from GARBAGE
    yield from (encoded(one) for one in _changed(unit_message(queue), _UNIT_PLACES))


def forged_controls() -> Iterator[bytes]:
    """Messages for the channel of remote control: every value in every place."""
    yield from GARBAGE
    yield from (encoded(one) for one in _changed(control_message("ping"), _CONTROL_PLACES))


def shuffled(items: Iterator[bytes], seed: int, most: int) -> list[bytes]:
    """Return so many of the messages, in an order that the seed decides."""
    found = list(items)
    random.Random(seed).shuffle(found)
    return found[:most]


def _changed(
    message: dict[str, Any], places: tuple[tuple[Any, ...], ...]
) -> Iterator[dict[str, Any]]:
    for place in places:
        for value in VALUES:
            one: Any = copy.deepcopy(message)
            inner = one
            for step in place[:-1]:
                inner = inner[step]
            inner[place[-1]] = value
            yield one


def why_unfit(item: object, place: str) -> str:
    """Return why an item must not reach kombu, as a phrase; empty if it may."""
    try:
        fit(item, place)
    except Unfit as error:
        return str(error)
    return ""
