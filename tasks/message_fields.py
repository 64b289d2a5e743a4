"""What each header, property and field of a broker message may be.

Each table maps a name to a check of its value: by type first, since to Python False is 0 and to
Celery neither is absent. `messages` drops a message with a value that fails, and names without a
check never reach Celery.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from ringhaul.ledger.labels import TRACE_LABEL
from tasks.names import TaskNames

#: The channel of remote control, the queues of its replies, and the channels of events, without
#: their prefixes.
CONTROL = "celery.pidbox"
REPLIES = ".reply.celery.pidbox"
EVENTS = "celeryev"
#: Remote control commands that a worker obeys: they look, or announce the worker to Flower. Celery
#: has others that stop a worker, its processes or its queues; whoever may publish could send them.
CONTROL_METHODS = frozenset(
    {"active", "active_queues", "clock", "conf", "enable_events", "heartbeat", "ping"}
    | {"registered", "report", "reserved", "revoked", "scheduled", "stats"}
)
#: Their arguments, all optional: switches, but for a list of names.
_SWITCHES = frozenset({"with_defaults", "safe", "builtins"})
_NAMES = "taskinfoitems"

_TASKS = frozenset(
    {TaskNames.LOAD_UNIT, TaskNames.VERIFY_UNIT, TaskNames.READ_UNIT, TaskNames.ASK_UNIT}
)
#: Names that tasks of other versions of ringhaul may have.
_OTHER_TASK = re.compile(r"ringhaul\.[a-z_.]{1,60}")
_NUMBER_MAX = 10**15
_TEXT_CHARACTERS_MAX = 10_000
#: Ids and tags become keys and members in Redis; Celery's are UUIDs.
_ID = re.compile(r"[!-~]{1,200}")
#: The context of a span, by W3C.
_TRACEPARENT = re.compile(r"00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")

Check = Callable[[Any], bool]


def is_text(value: Any) -> bool:
    return type(value) is str and len(value) <= _TEXT_CHARACTERS_MAX and _encodes(value)


def _encodes(text: str) -> bool:
    """Return whether a text is Unicode: JSON may contain halves of characters, which no one can
    write to Redis or a log."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _id(value: Any) -> bool:
    return type(value) is str and _ID.fullmatch(value) is not None


def is_other_task(name: str) -> bool:
    """Return whether this is the name of a task of ringhaul, but of no task of this version."""
    return name not in _TASKS and bool(_OTHER_TASK.fullmatch(name))


def is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < _NUMBER_MAX


def _number(value: Any) -> bool:
    if type(value) not in (int, float):
        return False
    return math.isfinite(value) and abs(value) < _NUMBER_MAX


def _flag(value: Any) -> bool:
    return type(value) is bool


def _none(value: Any) -> bool:
    return value is None


def _zero(value: Any) -> bool:
    return type(value) is int and value == 0


def _or_none(check: Check) -> Check:
    return lambda value: value is None or check(value)


UNIT_HEADERS: Mapping[str, Check] = {
    "task": lambda value: type(value) is str and value in _TASKS,
    "id": _id,
    "root_id": _or_none(_id),
    "parent_id": _or_none(_id),
    "lang": _or_none(is_text),
    "argsrepr": _or_none(is_text),
    "kwargsrepr": _or_none(is_text),
    "origin": _or_none(is_text),
    "ignore_result": _or_none(_flag),
    "redelivered": _flag,  # set by kombu
    TRACE_LABEL: lambda value: type(value) is str and bool(_TRACEPARENT.fullmatch(value)),
    # What Celery acts on, and our messages leave as it is by default.
    "eta": _none,
    "expires": _none,
    "shadow": _none,
    "group": _none,
    "group_index": _none,
    "chord": _none,
    "retries": _zero,
    "replaced_task_nesting": _zero,
    "timelimit": lambda value: value is None or value == [None, None],
    "stamped_headers": lambda value: value is None or value == [],
    "stamps": lambda value: value is None or value == {},
}
UNIT_HEADERS_NEEDED = ("task", "id")
CONTROL_HEADERS: Mapping[str, Check] = {"clock": is_count, "expires": _number}
REPLY_HEADERS: Mapping[str, Check] = {"clock": is_count, "ticket": _id, "expires": _number}
EVENT_HEADERS: Mapping[str, Check] = {"hostname": is_text}
PROPERTIES: Mapping[str, Check] = {
    "delivery_tag": _id,
    "delivery_info": lambda value: isinstance(value, dict),
    "delivery_mode": lambda value: type(value) is int and value in (1, 2),
    "priority": lambda value: type(value) is int and 0 <= value <= 9,
    "correlation_id": _or_none(_id),
    "reply_to": _or_none(_id),
    "body_encoding": _or_none(is_text),
}
DELIVERY: Mapping[str, Check] = {"exchange": is_text, "routing_key": is_text, "redelivered": _flag}
EMBEDDED: Mapping[str, Check] = dict.fromkeys(("callbacks", "errbacks", "chain", "chord"), _none)
CONTROL_FIELDS: Mapping[str, Check] = {
    "method": lambda value: type(value) is str and value in CONTROL_METHODS,
    "arguments": lambda value: isinstance(value, dict) and all(map(_argument, value.items())),
    "destination": lambda value: value is None or _texts(value),
    # A pattern could take for ever to match.
    "pattern": _none,
    "matcher": _none,
    "ticket": _or_none(_id),
    "reply_to": lambda value: value is None or (isinstance(value, dict) and _return(value)),
}
EVENT_FIELDS: Mapping[str, Check] = {
    "type": is_text,
    "hostname": is_text,
    "clock": is_count,
    "timestamp": _number,
    "utcoffset": _number,
    "pid": is_count,
    "uuid": _id,
    "name": _or_none(is_text),
    "runtime": _or_none(_number),
    "active": _or_none(is_count),
    "processed": _or_none(is_count),
    "retries": _or_none(is_count),
    "freq": _or_none(_number),
    "loadavg": lambda value: (
        value is None or (isinstance(value, list) and all(map(_number, value)))
    ),
}


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(is_text, value))


def _argument(item: tuple[str, Any]) -> bool:
    name, value = item
    return value is None or (
        _texts(value) if name == _NAMES else name in _SWITCHES and _flag(value)
    )


def _return(address: Mapping[str, Any]) -> bool:
    """Return whether a reply is wanted where Celery's senders wait for it."""
    exchange, key = address.get("exchange"), address.get("routing_key")
    return len(address) == 2 and exchange == REPLIES.removeprefix(".") and _id(key)
