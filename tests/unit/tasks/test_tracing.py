"""Traces without a collector: what is imported, what is refused, and what has no span."""

from __future__ import annotations

import builtins
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from config.settings import Settings, load_settings
from ringhaul.errors import UsageError
from ringhaul.ledger.labels import TRACE_LABEL
from tasks import tracing
from tasks.tracing import job_trace, open_provider, unit_trace

SECRET = "Kx9-secret"
OUTER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def on() -> Settings:
    return load_settings({"tracing.enabled": True}).settings


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """What the process of a test sends."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(tracing, "_opened", [provider])
    monkeypatch.delenv("TRACEPARENT", raising=False)
    yield exporter


def test_without_traces_nothing_is_imported() -> None:
    code = (
        "import sys, tasks.tracing, tasks.units, producer.run.load, producer.run.job\n"
        "from config.settings import load_settings\n"
        "settings = load_settings().settings\n"
        "with tasks.tracing.job_trace(settings, 'ld-1', 'load') as trace:\n"
        "    assert trace.labels == {} and trace.ended(0) == 0\n"
        "with tasks.tracing.unit_trace(settings, {'traceparent': 'x'}, 'ld-1', 0) as unit:\n"
        "    unit.ended({'rows': 1})\n"
        "tasks.tracing.close_tracing()\n"
        "assert not [name for name in sys.modules if name.startswith('opentelemetry')]\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_without_the_extra_the_setting_is_refused(
    on: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def missing(name: str, *rest: Any) -> Any:
        if name.startswith("opentelemetry.sdk"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(tracing, "_opened", [])
    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(UsageError, match=r"pip install 'ringhaul\[otel\]'"):
        open_provider(on)


def test_a_unit_is_below_its_job_and_that_below_the_command_s_caller(
    on: Settings, spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEPARENT", OUTER)
    with job_trace(on, "ld-1", "load") as trace:
        with unit_trace(on, trace.labels, "ld-1", 3) as unit:
            unit.ended({"unit": 3, "rows": 10, "rejected": 1})
        assert trace.ended(1) == 1
    first, job = spans.get_finished_spans()
    assert (first.name, job.name) == ("ringhaul unit", "ringhaul load")
    assert first.parent is not None and first.parent.span_id == job.context.span_id
    assert job.parent is not None
    assert f"{job.parent.trace_id:032x}-{job.parent.span_id:016x}" == OUTER[3:-3]
    assert dict(job.attributes or {}) == {
        "ringhaul.job": "ld-1",
        "ringhaul.kind": "load",
        "ringhaul.exit_code": 1,
    }
    attributes = dict(first.attributes or {})
    assert attributes.pop("process.pid")
    assert attributes == {
        "ringhaul.job": "ld-1",
        "ringhaul.unit": 3,
        "ringhaul.rows": 10,
        "ringhaul.rejected": 1,
        "ringhaul.end": "done",
    }


@pytest.mark.parametrize(
    ("result", "end", "is_error"),
    [
        ({"failed": SECRET}, "failed", True),
        ({"released": SECRET}, "released", True),
        ({"stopped": "PAUSE"}, "stopped", False),
        ({"left": SECRET}, "left", False),
    ],
)
def test_how_a_unit_ended_without_its_reason(
    on: Settings, spans: InMemorySpanExporter, result: dict[str, str], end: str, is_error: bool
) -> None:
    with unit_trace(on, {TRACE_LABEL: OUTER}, "ld-1", 0) as unit:
        unit.ended(result)
    (span,) = spans.get_finished_spans()
    assert (span.attributes or {})["ringhaul.end"] == end
    assert (span.status.status_code.name == "ERROR") is is_error
    assert SECRET not in span.to_json()


def test_an_error_of_the_command_leaves_no_text(on: Settings, spans: InMemorySpanExporter) -> None:
    with pytest.raises(ValueError), job_trace(on, "ld-1", "load"):
        raise ValueError(SECRET)
    (span,) = spans.get_finished_spans()
    assert SECRET not in span.to_json()


def test_what_has_no_span(on: Settings, spans: InMemorySpanExporter) -> None:
    with unit_trace(on, {}, "ld-1", 0) as unit:  # of a command that does not trace
        unit.ended({"rows": 1})
    with unit_trace(on, {TRACE_LABEL: OUTER}, "ld-1", 0) as unit:  # another worker has it
        unit.ended({"unit": 0, "skipped": "BUSY"})
    assert spans.get_finished_spans() == ()
