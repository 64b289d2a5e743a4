"""Traces: what is sent to a collector, and what is not."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from config.settings import Settings, load_settings
from ringhaul.ledger.labels import TRACE_LABEL
from tasks import otlp, tracing
from tasks.otlp import Sender, Span
from tasks.tracing import Parent, close_tracing, job_trace, unit_trace
from tests.collector import Collector, running_collector

SECRET = "Kx9-secret"
OUTER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
UNSAMPLED = OUTER[:-2] + "00"


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    for name in (tracing.PARENT_VARIABLE, tracing.HEADERS_VARIABLE, tracing.NAME_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(tracing, "_opened", {})
    with running_collector() as found:
        yield found


@pytest.fixture
def on(collector: Collector) -> Settings:
    return load_settings({"tracing.endpoint": collector.endpoint}).settings


def test_without_an_endpoint_nothing_is_imported_and_no_thread_runs() -> None:
    code = (
        "import sys, threading, tasks.tracing\n"
        "from config.settings import load_settings\n"
        "settings = load_settings().settings\n"
        "with tasks.tracing.job_trace(settings, 'ld-1', 'load') as trace:\n"
        "    assert trace.labels == {} and trace.ended(0) == 0\n"
        f"with tasks.tracing.unit_trace(settings, {{'traceparent': '{OUTER}'}}, 'ld-1', 0) as it:\n"
        "    it.ended({'rows': 1})\n"
        "tasks.tracing.close_tracing()\n"
        "assert not {'tasks.otlp', 'urllib.request'} & sys.modules.keys()\n"
        "assert threading.active_count() == 1\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_unit_is_below_its_job_and_that_below_the_caller_of_the_command(
    on: Settings, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEPARENT", OUTER)
    before = time.time_ns()
    with job_trace(on, "ld-1", "load") as trace:
        with unit_trace(on, trace.labels, "ld-1", 3) as unit:
            unit.ended({"unit": 3, "rows": 10, "rejected": 1})
        assert trace.ended(1) == 1
    # The end of the job has sent both
    first, job = collector.spans
    assert (first["name"], job["name"]) == ("ringhaul unit", "ringhaul load")
    assert first["traceId"] == job["traceId"] == OUTER[3:35]
    assert job["parentSpanId"] == OUTER[36:52]
    assert first["parentSpanId"] == job["spanId"] != first["spanId"]
    start, end = int(job["startTimeUnixNano"]), int(job["endTimeUnixNano"])
    assert before <= start <= int(first["startTimeUnixNano"])
    assert int(first["endTimeUnixNano"]) <= end <= time.time_ns()
    assert job["attributes"] == {
        "ringhaul.job": "ld-1",
        "ringhaul.kind": "load",
        "ringhaul.exit_code": 1,
    }
    assert first["attributes"].pop("process.pid")
    assert first["attributes"] == {
        "ringhaul.job": "ld-1",
        "ringhaul.unit": 3,
        "ringhaul.rows": 10,
        "ringhaul.rejected": 1,
        "ringhaul.end": "done",
    }
    assert job["resource"]["service.name"] == "ringhaul"
    assert job["status"] == first["status"] == {}


@pytest.mark.parametrize(
    ("result", "end", "failed"),
    [
        ({"failed": SECRET}, "failed", True),
        ({"released": SECRET}, "released", True),
        ({"stopped": "PAUSE"}, "stopped", False),
        ({"left": SECRET}, "left", False),
    ],
)
def test_how_a_unit_ended_without_its_reason(
    on: Settings, collector: Collector, result: dict[str, str], end: str, failed: bool
) -> None:
    with unit_trace(on, {TRACE_LABEL: OUTER}, "ld-1", 0) as unit:
        unit.ended(result)
    close_tracing()
    (span,) = collector.spans
    assert span["attributes"]["ringhaul.end"] == end
    assert span["status"] == ({"code": 2} if failed else {})
    assert SECRET not in collector.bodies[0]


def test_an_error_of_the_command_leaves_no_text(on: Settings, collector: Collector) -> None:
    with pytest.raises(ValueError), job_trace(on, "ld-1", "load"):
        raise ValueError(SECRET)
    assert collector.spans[0]["status"] == {"code": 2}
    assert SECRET not in collector.bodies[0]


def test_what_has_no_span(
    on: Settings, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    for header in (None, "x", UNSAMPLED[:-1], OUTER.upper()):  # the job is not traced
        with unit_trace(on, {TRACE_LABEL: header}, "ld-1", 0) as unit:
            unit.ended({"rows": 1})
    with unit_trace(on, {TRACE_LABEL: OUTER}, "ld-1", 0) as unit:  # another worker has it
        unit.ended({"unit": 0, "skipped": "BUSY"})
    monkeypatch.setenv("TRACEPARENT", UNSAMPLED)  # the caller keeps no trace
    with job_trace(on, "ld-1", "load") as trace:
        assert trace.labels == {}
    close_tracing()
    assert collector.spans == []


def test_the_collector_s_key_and_the_name_of_the_service(
    on: Settings, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", f"x-key={SECRET}%3D, x-team = etl")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "nightly")
    with job_trace(on, "ld-1", "load"):
        pass
    (headers,) = collector.headers
    assert {name.lower(): value for name, value in headers.items()}["x-key"] == f"{SECRET}="
    assert collector.spans[0]["resource"]["service.name"] == "nightly"
    assert SECRET not in collector.bodies[0]


@pytest.mark.parametrize("text", ["", None, 7, "00-" + "0" * 32 + OUTER[35:], OUTER + "0"])
def test_what_is_no_context(text: object) -> None:
    assert Parent.parse(text) is None
    assert Parent.parse(OUTER) == (OUTER[3:35], OUTER[36:52], True)


def new_span(number: int = 0) -> Span:
    return Span(name=f"s{number}", trace_id="1" * 32, span_id="2" * 16)


def test_a_collector_that_is_away_costs_spans_and_says_so_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otlp, "SEND_EVERY_S", 0.01)
    sender = Sender("http://127.0.0.1:1", {"x-key": SECRET}, {})
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            sender.put(new_span())
            sender.flush(5)
    assert caplog.text.count("spans were not sent to http://127.0.0.1:1/v1/traces") == 1
    assert SECRET not in caplog.text


def test_a_collector_that_refuses_says_so(caplog: pytest.LogCaptureFixture) -> None:
    with running_collector(status=401) as refusing, caplog.at_level(logging.WARNING):
        sender = Sender(refusing.endpoint, {}, {})
        sender.put(new_span())
        sender.flush(5)
    assert "401" in caplog.text


def test_spans_that_wait_are_bounded_and_sent_together(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otlp, "SPANS_MAX", 10)
    monkeypatch.setattr(otlp, "SEND_EVERY_S", 60.0)
    sender = Sender(collector.endpoint, {}, {})
    for number in range(25):
        sender.put(new_span(number))
    sender.flush(5)
    assert [span["name"] for span in collector.spans] == [f"s{n}" for n in range(15, 25)]
    assert len(collector.bodies) == 1
