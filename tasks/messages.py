"""Validation of broker messages before kombu decodes them. Pure.

Celery and kombu trust what they find in a queue: an item that is not JSON ends the worker, and a
header can have a compressed body of any size unpacked. Our messages are small, JSON and never
compressed, so anything else is dropped. If it stood for a unit, the sweep issues that unit again.
"""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import kombu.utils.json

from config.celery_config import QUEUE_LOAD
from ringhaul.errors import UsageError
from ringhaul.ledger.keys import job_key
from ringhaul.ledger.labels import TRACE_LABEL
from tasks.names import TaskNames

#: Messages of units have about 1,200 bytes, workers' replies to Flower about 10,000.
MESSAGE_BYTES_MAX = 1 << 20

#: Kombu has no types.
loads: Any = kombu.utils.json.loads

_TASKS = frozenset(
    {TaskNames.LOAD_UNIT, TaskNames.VERIFY_UNIT, TaskNames.READ_UNIT, TaskNames.ASK_UNIT}
)
#: Headers that Celery acts on and that our messages leave empty.
_EMPTY = ("eta", "expires", "group", "chord", "stamped_headers", "shadow", "retries")
_TEXTS = ("root_id", "parent_id", "argsrepr", "kwargsrepr", "origin", "lang")
_NUMBER_MAX = 10**15
#: The context of a span, by W3C.
_TRACEPARENT = re.compile(r"00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


def why_unfit(item: object, queue: str) -> str:
    """Return why an item of `queue` must not reach kombu, as a phrase; empty if it may."""
    if not isinstance(item, bytes | str):
        return "it is not text"
    if len(item) > MESSAGE_BYTES_MAX:
        return f"it is longer than {MESSAGE_BYTES_MAX:,} bytes"
    try:
        message = loads(item)
        body = _body(message)
        if queue.startswith(QUEUE_LOAD):
            _check_unit(message["headers"], body)
    except _Unfit as error:
        return str(error)
    except Exception as error:  # hostile input may make a parser raise anything
        return f"it cannot be read ({type(error).__name__})"
    return ""


class _Unfit(Exception):
    """The item is not one of our messages; carries the reason."""


def _body(message: Any) -> Any:
    """Return the decoded body of a message in kombu's format. Raises `_Unfit`."""
    if not isinstance(message, dict):
        raise _Unfit("it is not a JSON object")
    properties, headers = message.get("properties"), message.get("headers")
    if not isinstance(properties, dict) or not isinstance(headers, dict):
        raise _Unfit("it has no properties or headers")
    place = properties.get("delivery_info")
    if not isinstance(place, dict) or not all(
        isinstance(place.get(name), str) for name in ("exchange", "routing_key")
    ):
        raise _Unfit("it names no exchange and routing key")
    if not isinstance(properties.get("delivery_tag"), str):
        raise _Unfit("it has no delivery tag")
    if headers.get("compression") or message.get("content-type") != "application/json":
        raise _Unfit("it is compressed, or not JSON")
    if message.get("content-encoding") not in ("utf-8", "UTF-8"):
        raise _Unfit("it is not UTF-8")
    body, encoding = message.get("body"), properties.get("body_encoding")
    if not isinstance(body, str) or encoding not in ("base64", None):
        raise _Unfit("its body is not encoded in base64")
    text = base64.b64decode(body, validate=True) if encoding else body.encode()
    loads(text)  # including the objects that kombu builds from typed JSON
    found = json.loads(text)
    if not isinstance(found, dict | list):
        raise _Unfit("its body is neither a JSON object nor a list")
    return found


def _check_unit(headers: dict[str, Any], body: Any) -> None:
    """Raise `_Unfit` if this is not the message of a unit."""
    task, task_id = headers.get("task"), headers.get("id")
    if not isinstance(task, str) or task not in _TASKS or not isinstance(task_id, str):
        raise _Unfit("it is not about a unit")
    limited = headers.get("timelimit") not in (None, [None, None])
    if limited or any(headers.get(name) for name in _EMPTY):
        raise _Unfit("it has headers that messages of units do not have")
    if not all(isinstance(headers.get(name), str | None) for name in _TEXTS):
        raise _Unfit("it has headers that messages of units do not have")
    traceparent = headers.get(TRACE_LABEL)
    if traceparent is not None and not _TRACEPARENT.fullmatch(str(traceparent)):
        raise _Unfit("it has headers that messages of units do not have")
    if not isinstance(body, list) or len(body) != 3:
        raise _Unfit("it is not about a unit")
    args, facts, embedded = body
    if args != [] or not isinstance(facts, dict) or not isinstance(embedded, dict):
        raise _Unfit("it is not about a unit")
    if any(embedded.values()) or facts.keys() != {"job", "unit", "epoch"}:
        raise _Unfit("it is not about a unit")
    numbers = (facts["unit"], facts["epoch"])
    if not all(type(number) is int and 0 <= number < _NUMBER_MAX for number in numbers):
        raise _Unfit("its unit or epoch is not a number")
    try:
        job_key(facts["job"], "meta")
    except (UsageError, TypeError):
        raise _Unfit("its job is not a job id") from None
