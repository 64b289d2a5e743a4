"""What a message in the broker must look like to be taken. Pure.

Celery and kombu trust what they find in a queue: an item that is no JSON ends the worker, and a
header unpacks a compressed body of any size. Ours are small, JSON, and never compressed, so that
anything else is dropped before kombu decodes it. The unit that it may have stood for is issued
again by the sweep.
"""

from __future__ import annotations

import base64
import json
from typing import Any

import kombu.utils.json

from config.celery_config import QUEUE_LOAD
from ringhaul.errors import UsageError
from ringhaul.ledger.keys import job_key
from tasks.names import TaskNames

#: Those of units have some 1,200 bytes; what workers answer to Flower's questions has some 10,000.
MESSAGE_BYTES_MAX = 1 << 20

#: Kombu has no types.
loads: Any = kombu.utils.json.loads

_TASKS = frozenset(
    {TaskNames.LOAD_UNIT, TaskNames.VERIFY_UNIT, TaskNames.READ_UNIT, TaskNames.ASK_UNIT}
)
#: Headers that Celery acts on and that ours leave empty.
_EMPTY = ("eta", "expires", "group", "chord", "stamped_headers", "shadow", "retries")
_TEXTS = ("root_id", "parent_id", "argsrepr", "kwargsrepr", "origin", "lang")
_NUMBER_MAX = 10**15


def why_unfit(item: object, queue: str) -> str:
    """Why an item of `queue` is not to be given to kombu, in words; empty: it may be."""
    if not isinstance(item, bytes | str):
        return "it is no text"
    if len(item) > MESSAGE_BYTES_MAX:
        return f"it is longer than {MESSAGE_BYTES_MAX:,} bytes"
    try:
        message = loads(item)
        body = _body(message)
        if queue.startswith(QUEUE_LOAD):
            _check_unit(message["headers"], body)
    except _Unfit as error:
        return str(error)
    except Exception as error:  # whatever a hostile text makes a parser raise
        return f"it cannot be read ({type(error).__name__})"
    return ""


class _Unfit(Exception):
    """Not a message of ours, with the reason."""


def _body(message: Any) -> Any:
    """The decoded body of a message of kombu's form."""
    if not isinstance(message, dict):
        raise _Unfit("it is no object")
    properties, headers = message.get("properties"), message.get("headers")
    if not isinstance(properties, dict) or not isinstance(headers, dict):
        raise _Unfit("it has no properties or headers")
    place = properties.get("delivery_info")
    if not isinstance(place, dict) or not all(
        isinstance(place.get(name), str) for name in ("exchange", "routing_key")
    ):
        raise _Unfit("it does not say where it goes")
    if not isinstance(properties.get("delivery_tag"), str):
        raise _Unfit("it has no tag")
    if headers.get("compression") or message.get("content-type") != "application/json":
        raise _Unfit("it is compressed, or not JSON")
    if message.get("content-encoding") not in ("utf-8", "UTF-8"):
        raise _Unfit("it is not UTF-8")
    body, encoding = message.get("body"), properties.get("body_encoding")
    if not isinstance(body, str) or encoding not in ("base64", None):
        raise _Unfit("its body has another encoding")
    text = base64.b64decode(body, validate=True) if encoding else body.encode()
    loads(text)  # with what kombu makes of objects that name a type
    found = json.loads(text)
    if not isinstance(found, dict | list):
        raise _Unfit("its body is no object")
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
    if not isinstance(body, list) or len(body) != 3:
        raise _Unfit("it is not about a unit")
    args, facts, embedded = body
    if args != [] or not isinstance(facts, dict) or not isinstance(embedded, dict):
        raise _Unfit("it is not about a unit")
    if any(embedded.values()) or facts.keys() != {"job", "unit", "epoch"}:
        raise _Unfit("it is not about a unit")
    numbers = (facts["unit"], facts["epoch"])
    if not all(type(number) is int and 0 <= number < _NUMBER_MAX for number in numbers):
        raise _Unfit("its unit or epoch is no number")
    try:
        job_key(facts["job"], "meta")
    except (UsageError, TypeError):
        raise _Unfit("its job is no job id") from None
