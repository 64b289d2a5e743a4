"""Validation of broker messages before kombu decodes them.

Celery and kombu trust what they find in a queue or hear on a channel: an item that is not JSON ends
the worker, so does an `eta` of the wrong type, and a header can have a compressed body of any size
unpacked. So each item is compared with what ringhaul and Flower send, by type and by value: Celery
distinguishes absent values (`is None`), and what is empty, zero or false is not absent. An item
that differs is dropped. If it stood for a unit, the sweep issues that unit again.

Names that are not listed here never reach Celery: a fit message is rewritten without them. A
later version may therefore send more headers than this one knows.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

import kombu.utils.json

from ringhaul.errors import UsageError
from ringhaul.ledger.keys import job_key
from tasks.message_fields import (
    CONTROL,
    CONTROL_FIELDS,
    CONTROL_HEADERS,
    DELIVERY,
    EMBEDDED,
    EVENT_FIELDS,
    EVENT_HEADERS,
    EVENTS,
    PROPERTIES,
    REPLIES,
    REPLY_HEADERS,
    UNIT_HEADERS,
    UNIT_HEADERS_NEEDED,
    Check,
    is_count,
    is_other_task,
    is_text,
)

#: Messages of units have about 1,200 bytes, workers' replies to Flower about 10,000.
MESSAGE_BYTES_MAX = 1 << 20
#: Kombu has no types.
loads: Any = kombu.utils.json.loads
dumps: Any = kombu.utils.json.dumps


class Unfit(Exception):
    """The item is not one of our messages; carries the reason, as a phrase."""


class OtherTask(Unfit):
    """The message is about a unit, for a task that another version of ringhaul has."""

    def __init__(self, task: str, job: str, unit: int, epoch: int) -> None:
        super().__init__(f"this version has no task {task}")
        self.task, self.job, self.unit, self.epoch = task, job, unit, epoch


def fit(item: object, place: str) -> bytes:
    """Return an item for kombu: with what is listed here, and nothing else.

    `place`: the queue or channel it comes from, without prefixes. Raises `Unfit`, and `OtherTask`
    for a unit that workers of another version may process.
    """
    if not isinstance(item, bytes | str):
        raise Unfit("it is not text")
    if len(item) > MESSAGE_BYTES_MAX:
        raise Unfit(f"it is longer than {MESSAGE_BYTES_MAX:,} bytes")
    try:
        return _fit(loads(item), place)
    except Unfit:
        raise
    except Exception as error:  # hostile input may make a parser raise anything
        raise Unfit(f"it cannot be read ({type(error).__name__})") from None


def _fit(message: Any, place: str) -> bytes:
    if not isinstance(message, dict):
        raise Unfit("it is not a JSON object")
    properties, headers = message.get("properties"), message.get("headers")
    if not isinstance(properties, dict) or not isinstance(headers, dict):
        raise Unfit("it has no properties or headers")
    if "compression" in headers or message.get("content-type") != "application/json":
        raise Unfit("it is compressed, or not JSON")
    if message.get("content-encoding") not in ("utf-8", "UTF-8"):
        raise Unfit("it is not UTF-8")
    body = _body(message.get("body"), properties.get("body_encoding"))
    origin: dict[str, str] = {}
    if place.endswith(REPLIES):
        kept = _known(headers, REPLY_HEADERS, "reply")
        _check_reply(body)
    elif place.endswith(CONTROL):
        kept = _known(headers, CONTROL_HEADERS, "remote control command")
        _check_control(body)
    elif EVENTS in place:
        kept = _known(headers, EVENT_HEADERS, "event")
        _check_events(body)
    else:
        _check_unit(body)
        task = headers.get("task")
        if isinstance(task, str) and is_other_task(task):
            raise OtherTask(task, **body[1])
        kept = _known(headers, UNIT_HEADERS, "message of a unit", UNIT_HEADERS_NEEDED)
        origin = {"exchange": "", "routing_key": place}
    facts = _known(properties, PROPERTIES, "message", ("delivery_tag", "delivery_info"))
    route = _known(facts["delivery_info"], DELIVERY, "message", ("exchange", "routing_key"))
    if origin and not origin.items() <= route.items():
        raise Unfit("it was sent to another queue")  # kombu would put it there if it is not done
    return json.dumps(
        {
            "body": message["body"],
            "content-encoding": "utf-8",
            "content-type": "application/json",
            "headers": kept,
            "properties": facts | {"delivery_info": route},
        }
    ).encode()


def _body(body: Any, encoding: Any) -> Any:
    """Return the decoded body of a message. Raises `Unfit`."""
    if not isinstance(body, str) or encoding not in ("base64", None):
        raise Unfit("its body is not encoded in base64")
    text = base64.b64decode(body, validate=True) if encoding else body.encode()
    loads(text)  # including the objects that kombu builds from typed JSON
    found = json.loads(text)
    if not isinstance(found, dict | list):
        raise Unfit("its body is neither a JSON object nor a list")
    return found


def _known(
    values: Mapping[str, Any], checks: Mapping[str, Check], kind: str, needed: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Return the values with a check. Raises `Unfit` if one fails or is missing."""
    for name in needed:
        if name not in values:
            raise Unfit(f"it has no {name!r}")
    for name, check in checks.items():
        if name in values and not check(values[name]):
            raise Unfit(f"no {kind} has this {name!r}")
    return {name: values[name] for name in checks if name in values}


def _check_unit(body: Any) -> None:
    """Raise `Unfit` if this is not the body of a unit's message."""
    if not isinstance(body, list) or len(body) != 3:
        raise Unfit("it is not about a unit")
    args, facts, embedded = body
    if args != [] or not isinstance(facts, dict) or not isinstance(embedded, dict):
        raise Unfit("it is not about a unit")
    if facts.keys() != {"job", "unit", "epoch"} or not embedded.keys() <= EMBEDDED.keys():
        raise Unfit("it is not about a unit")
    _known(embedded, EMBEDDED, "message of a unit")
    if not is_count(facts["unit"]) or not is_count(facts["epoch"]):
        raise Unfit("its unit or epoch is not a number")
    try:
        job_key(facts["job"], "meta")
    except (UsageError, TypeError):
        raise Unfit("its job is not a job id") from None


def _check_control(body: Any) -> None:
    """Raise `Unfit` if this is not a remote control command that workers obey."""
    if not isinstance(body, dict) or not body.keys() <= CONTROL_FIELDS.keys():
        raise Unfit("it is no remote control command")
    _known(body, CONTROL_FIELDS, "remote control command for our workers", ("method",))


def _check_reply(body: Any) -> None:
    """Raise `Unfit` if this is not a reply to a remote control command: worker -> what it says."""
    if not isinstance(body, dict) or not all(map(is_text, body)):
        raise Unfit("it is no reply to a remote control command")


def _check_events(body: Any) -> None:
    """Raise `Unfit` if this is not an event or a list of events."""
    for event in body if isinstance(body, list) else [body]:
        if not isinstance(event, dict):
            raise Unfit("it is not about events")
        _known(event, EVENT_FIELDS, "event", ("type", "hostname", "timestamp"))
        if event["type"].startswith("task-") and "uuid" not in event:
            raise Unfit("it is an event of no task")
