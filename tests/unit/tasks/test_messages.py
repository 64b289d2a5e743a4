"""Which items of a queue are passed to kombu."""

import base64
import copy
import json
from typing import Any

import pytest
from celery.worker.control import Panel

from tasks.message_fields import CONTROL_METHODS, UNIT_HEADERS
from tasks.messages import MESSAGE_BYTES_MAX, OtherTask, Unfit, fit
from tasks.transport import HANDED_BACK, _fit_or_dropped
from tests.cases import each
from tests.forged_messages import control_message, encoded, forged_units, unit_message, why_unfit

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
    reply = message(body={"w@h": {"ok": "pong"}}, headers={"clock": 3, "ticket": "x"})
    assert why_unfit(json.dumps(reply), "1-a.reply.celery.pidbox") == ""


def test_a_unit_for_a_task_of_another_version_is_handed_back() -> None:
    HANDED_BACK.take()
    later = encoded(message(headers={"task": "ringhaul.copy.unit"}))
    with pytest.raises(OtherTask, match=r"this version has no task ringhaul\.copy\.unit"):
        fit(later, QUEUE)
    # A message that comes twice stands for one unit
    assert [_fit_or_dropped(later, QUEUE) for _ in range(2)] == [None, None]
    assert HANDED_BACK.take() == {("ld-1", 3, 1): "ringhaul.copy.unit"}
    assert HANDED_BACK.take() == {}


@each(
    "changes",
    [
        {"headers": {"task": "celery.backend_cleanup"}},
        {"headers": {"task": "ringhaul." + 100 * "a"}},
        {"headers": {"task": "ringhaul.copy.unit"}, "body": [[], {"job": "x"}, {}]},
        {"headers": {"task": ["ringhaul.copy.unit"]}},
    ],
    ids=str,
)
def test_what_is_about_no_unit_of_ours_is_dropped(changes: dict[str, Any]) -> None:
    with pytest.raises(Unfit) as unfit:
        fit(encoded(message(**changes)), QUEUE)
    assert not isinstance(unfit.value, OtherTask)


def test_what_no_one_knows_does_not_reach_celery() -> None:
    made = unit_message(QUEUE)
    later = copy.deepcopy(made)
    later["more"] = 1
    later["headers"]["more"] = later["properties"]["more"] = {"a": [1]}
    later["properties"]["delivery_info"]["consumer_tag"] = "x"
    assert json.loads(fit(encoded(later), QUEUE)) == json.loads(fit(encoded(made), QUEUE))
    assert json.loads(fit(encoded(made), QUEUE)) == json.loads(encoded(made))


def test_celery_reads_what_it_expects_of_every_message_that_is_fit() -> None:
    """Every value in every place: what is not dropped has these headers only, with these values."""
    kept = 0
    for item in forged_units(QUEUE):
        try:
            headers = json.loads(fit(item, QUEUE))["headers"]
        except Unfit:
            continue
        kept += 1
        assert headers.keys() <= UNIT_HEADERS.keys()
        for name in ("eta", "expires", "shadow", "group", "group_index"):
            assert headers.get(name) is None
        assert type(headers["id"]) is str and type(headers["task"]) is str
        assert headers.get("retries", 0) == 0 and headers.get("retries") is not False
        assert headers.get("timelimit") in (None, [None, None])
        assert headers.get("stamps") in (None, {}) and headers.get("stamped_headers") in (None, [])
    assert 100 < kept < 400


@pytest.mark.parametrize("queue", ["ringhaul.load", "ringhaul.load.dc1", "ringhaul.own.ld-1", "x"])
def test_every_queue_is_checked_alike(queue: str) -> None:
    assert why_unfit(encoded(unit_message(queue)), queue) == ""
    assert why_unfit(encoded(unit_message("another")), queue) == "it was sent to another queue"
    forged = unit_message(queue)
    forged["headers"]["eta"] = ""
    assert why_unfit(encoded(forged), queue) == "no message of a unit has this 'eta'"


CHANNEL = "/0.celery.pidbox"


def test_only_questions_of_remote_control_are_fit() -> None:
    for method in CONTROL_METHODS:
        assert why_unfit(encoded(control_message(method)), CHANNEL) == ""
    assert why_unfit(encoded(control_message("conf", with_defaults=True)), CHANNEL) == ""
    known = set(Panel.data) - CONTROL_METHODS
    assert {"shutdown", "pool_restart", "revoke", "add_consumer", "rate_limit"} <= known
    for method in known:
        assert why_unfit(encoded(control_message(method)), CHANNEL)
    pattern = control_message("ping")
    pattern["body"]["pattern"], pattern["body"]["matcher"] = "(a+)+$", "pcre"
    assert why_unfit(encoded(pattern), CHANNEL)


@pytest.mark.parametrize("clock", [-1, True, 1.5, "1", 10**15, 10**4000, float("nan"), None])
def test_a_clock_that_a_worker_would_take_over_is_a_count(clock: object) -> None:
    forged = control_message("ping")
    forged["headers"]["clock"] = clock
    assert why_unfit(encoded(forged), CHANNEL)


@pytest.mark.parametrize(
    "change",
    [
        {"type": None},
        {"hostname": 1},
        {"timestamp": "now"},
        {"timestamp": float("inf")},
        {"utcoffset": float("nan")},
        {"clock": 10**20},
        {"uuid": 5},
        {"loadavg": 1},
    ],
    ids=str,
)
def test_an_event_has_values_of_their_types(change: dict[str, Any]) -> None:
    event = {"type": "worker-heartbeat", "hostname": "w@h", "timestamp": 1.5, "clock": 3}
    for body in (event, [event, event]):
        made = control_message("ping") | {"headers": {"hostname": "w@h"}, "body": body}
        assert why_unfit(encoded(made), "/0.celeryev/worker.heartbeat") == ""
    for body in (event | change, [event, event | change], [1], [[event]]):
        made = control_message("ping") | {"headers": {"hostname": "w@h"}, "body": body}
        assert why_unfit(encoded(made), "/0.celeryev/worker.heartbeat")


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


@each("name", UNFIT)
def test_other_messages_are_invalid(name: str) -> None:
    from tasks.names import TaskNames

    item = UNFIT[name]
    if isinstance(item, dict):
        headers = item["headers"]
        if headers and headers.get("task") == "ringhaul.records.unit":
            item = {**item, "headers": {**headers, "task": TaskNames.LOAD_UNIT}}
        item = json.dumps(item).encode()
    assert why_unfit(item, QUEUE)
