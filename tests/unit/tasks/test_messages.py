"""Which items of a queue are passed to kombu."""

import base64
import json
from typing import Any

import pytest

from tasks.messages import MESSAGE_BYTES_MAX, why_unfit

QUEUE = "ringhaul.load"


def message(**changes: Any) -> dict[str, Any]:
    """A unit's message as Celery sends it; `body`: the body before it is encoded."""
    facts = {"job": "ld-1", "unit": 3, "epoch": 1}
    embedded = {"callbacks": None, "errbacks": None, "chain": None, "chord": None}
    body = changes.pop("body", [[], facts, embedded])
    text = json.dumps(body) if not isinstance(body, str) else body
    headers = {"task": "ringhaul.records.unit", "id": "x", "timelimit": [None, None], "retries": 0}
    made = {
        "body": base64.b64encode(text.encode()).decode(),
        "content-encoding": "utf-8",
        "content-type": "application/json",
        "headers": headers | changes.pop("headers", {}),
        "properties": {
            "delivery_tag": "t",
            "delivery_info": {"exchange": "", "routing_key": QUEUE},
            "body_encoding": "base64",
        }
        | changes.pop("properties", {}),
    }
    return made | changes


def test_messages_of_celery_are_valid() -> None:
    from tasks.names import TaskNames

    made = message(headers={"task": TaskNames.LOAD_UNIT, "parent_id": None, "origin": "gen1@h"})
    assert why_unfit(json.dumps(made).encode(), QUEUE) == ""
    assert why_unfit(json.dumps(message(body={"method": "ping"})), "reply.celery.pidbox") == ""


UNFIT: dict[str, Any] = {
    "empty": b"",
    "no JSON": b"{",
    "no UTF-8": b"\xff\xfe",
    "a number": b"7",
    "null": b"null",
    "a list": b"[]",
    "an empty object": b"{}",
    "deep": b"[" * 100_000,
    "a long number": b"1" * 10_000,
    "long": b" " * (MESSAGE_BYTES_MAX + 1),
    "no headers": {**message(), "headers": None},
    "no properties": {**message(), "properties": []},
    "no tag": message(properties={"delivery_tag": None}),
    "no place": message(properties={"delivery_info": None}),
    "a place of numbers": message(properties={"delivery_info": {"exchange": 1, "routing_key": 2}}),
    "gzip": message(headers={"compression": "application/x-gzip"}),
    "bzip2": message(headers={"compression": "application/x-bz2"}),
    "pickle": {**message(), "content-type": "application/x-python-serialize"},
    "another encoding": {**message(), "content-encoding": "binary"},
    "a body that is no base64": {**message(), "body": "!"},
    "a body that is no text": {**message(), "body": [1]},
    "a body of another encoding": message(properties={"body_encoding": "rot13"}),
    "a body that is no JSON": message(body="{"),
    "a number as body": message(body=7),
    "another task": message(headers={"task": "celery.backend_cleanup"}),
    "a task of no text": message(headers={"task": ["x"]}),
    "no id": message(headers={"id": None}),
    "an eta": message(headers={"eta": "x"}),
    "a time limit": message(headers={"timelimit": 5}),
    "arguments": message(body=[[1], {"job": "a", "unit": 1, "epoch": 1}, {}]),
    "an unknown fact": message(body=[[], {"job": "a", "unit": 1, "epoch": 1, "x": 1}, {}]),
    "a callback": message(
        body=[[], {"job": "a", "unit": 1, "epoch": 1}, {"callbacks": [{"task": "x"}]}]
    ),
    "a unit of no number": message(body=[[], {"job": "a", "unit": "1", "epoch": 1}, {}]),
    "a unit below 0": message(body=[[], {"job": "a", "unit": -1, "epoch": 1}, {}]),
    "a huge unit": message(body=[[], {"job": "a", "unit": 10**30, "epoch": 1}, {}]),
    "a job of no id": message(body=[[], {"job": "a b", "unit": 1, "epoch": 1}, {}]),
    "a job of no text": message(body=[[], {"job": None, "unit": 1, "epoch": 1}, {}]),
}


@pytest.mark.parametrize("name", UNFIT)
def test_other_messages_are_invalid(name: str) -> None:
    from tasks.names import TaskNames

    item = UNFIT[name]
    if isinstance(item, dict):
        headers = item["headers"]
        if headers and headers.get("task") == "ringhaul.records.unit":
            item = {**item, "headers": {**headers, "task": TaskNames.LOAD_UNIT}}
        item = json.dumps(item).encode()
    assert why_unfit(item, QUEUE)
