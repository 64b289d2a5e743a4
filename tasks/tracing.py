"""Traces by OpenTelemetry, if the settings want them: a span for each job and for each unit.

A job's span begins in the command that makes the job; its context is one of the job's labels, goes
with each message, and is the parent of the units' spans. Statements have none: there are millions.
Where spans go, and as which service, say OpenTelemetry's own variables (`OTEL_...`). The SDK is the
extra `otel`, imported on first use: without traces nothing of it is needed.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from ringhaul.errors import UsageError
from ringhaul.ledger.labels import TRACE_LABEL

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span

    from config.settings import Settings

#: How long spans may take to leave at the end of a process; what is left then is lost.
FLUSH_MS = 3000
#: Environment variable of a command: the span that it is part of, as other tools set it.
_PARENT_VARIABLE = "TRACEPARENT"
#: What a unit's task returns of its work, and what it says about its end.
_FIGURES = ("rows", "rejected", "bytes")
_ENDS = ("stopped", "released", "failed", "left")


class JobTrace:
    """The span of a job, as long as its command follows it."""

    def __init__(self, span: Span | None) -> None:
        self._span = span

    @property
    def labels(self) -> dict[str, str]:
        """Labels for the job in the ledger; none without traces."""
        if self._span is None:
            return {}
        carrier: dict[str, str] = {}
        from opentelemetry.trace import set_span_in_context

        _propagator().inject(carrier, set_span_in_context(self._span))
        return {TRACE_LABEL: carrier["traceparent"]}

    def ended(self, exit_code: int) -> int:
        """Note the exit code of the command, and return it."""
        if self._span is not None:
            self._span.set_attribute("ringhaul.exit_code", exit_code)
        return exit_code


@contextmanager
def job_trace(settings: Settings, job: str, kind: str) -> Iterator[JobTrace]:
    """Trace a job within this context, at whose end the spans are sent."""
    provider = open_provider(settings)
    if provider is None:
        yield JobTrace(None)
        return
    tracer = provider.get_tracer("ringhaul")
    parent = _context_of(os.environ.get(_PARENT_VARIABLE))
    attributes = {"ringhaul.job": job, "ringhaul.kind": kind}
    try:
        with tracer.start_as_current_span(
            f"ringhaul {kind}", parent, attributes=attributes, record_exception=False
        ) as span:
            yield JobTrace(span)
    finally:
        provider.force_flush(FLUSH_MS)


class UnitTrace:
    """The span of one attempt of a unit."""

    def __init__(self, span: Span | None) -> None:
        self._span = span
        self.worked = True  #: Whether there was a unit to work on.

    def ended(self, result: Mapping[str, Any]) -> None:
        """Note what the task returns. The reason of a failure is in the log and in the ledger, not
        here: it may quote a server."""
        self.worked = "skipped" not in result
        if self._span is None or not self.worked:
            return
        for name in _FIGURES:
            if isinstance(result.get(name), int):
                self._span.set_attribute(f"ringhaul.{name}", result[name])
        end = next((word for word in _ENDS if word in result), "done")
        self._span.set_attribute("ringhaul.end", end)
        if end in ("failed", "released"):
            from opentelemetry.trace import Status, StatusCode

            self._span.set_status(Status(StatusCode.ERROR))


@contextmanager
def unit_trace(settings: Settings, request: Any, job: str, unit: int) -> Iterator[UnitTrace]:
    """Trace a unit within this context. `request`: Celery's, with the headers of the message; a
    unit of a job that is not traced has no span."""
    traceparent = request.get(TRACE_LABEL)
    provider = open_provider(settings) if traceparent else None
    if provider is None:
        yield UnitTrace(None)
        return
    span = provider.get_tracer("ringhaul").start_span(
        "ringhaul unit",
        _context_of(traceparent),
        attributes={"ringhaul.job": job, "ringhaul.unit": unit, "process.pid": os.getpid()},
    )
    trace = UnitTrace(span)
    try:
        yield trace
    finally:
        if trace.worked:  # a span that does not end is not sent
            span.end()


def close_tracing() -> None:
    """Send the spans of this process that have not left yet, for at most `FLUSH_MS`."""
    for provider in _opened:
        provider.force_flush(FLUSH_MS)


#: The provider of this process, once it is open.
_opened: list[TracerProvider] = []


def open_provider(settings: Settings) -> TracerProvider | None:
    """Return this process's provider of traces; None if the settings want none.

    Raises `UsageError` if the extra is missing.
    """
    if not settings.tracing.enabled:
        return None
    if not _opened:
        _opened.append(_new_provider())
    return _opened[0]


def _new_provider() -> TracerProvider:
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise UsageError(
            "tracing.enabled needs the extra otel: pip install 'ringhaul[otel]', "
            "or set tracing.enabled to false"
        ) from error
    names = {"host.name": socket.gethostname()}
    if "OTEL_SERVICE_NAME" not in os.environ:
        names["service.name"] = "ringhaul"
    provider = TracerProvider(resource=Resource.create(names), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


def _context_of(traceparent: object) -> Context | None:
    """Return the context of a traceparent; None, which begins a new trace, if it is malformed."""
    return _propagator().extract({"traceparent": traceparent}) if traceparent else None


@cache
def _propagator() -> Any:
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    return TraceContextTextMapPropagator()
