"""Traces, if the settings name a collector: a span for each job and for each unit.

A job's span begins in the command that makes the job; its context is one of the job's labels, goes
with each message, and is the parent of the units' spans. Statements have none: there are millions.
"""

from __future__ import annotations

import os
import re
import secrets
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from config.known_secrets import remember
from ringhaul.ledger.labels import TRACE_LABEL

if TYPE_CHECKING:
    from config.settings import Settings
    from tasks.otlp import Sender, Span

#: How long spans may take to leave at the end of a process; what is left then is lost.
FLUSH_S = 3.0
#: Environment variable of a command: the span that it is part of, as other tools set it.
PARENT_VARIABLE = "TRACEPARENT"
#: OpenTelemetry's own: `name=value,...` for a collector that wants a key, and the service's name.
HEADERS_VARIABLE = "OTEL_EXPORTER_OTLP_HEADERS"
NAME_VARIABLE = "OTEL_SERVICE_NAME"
#: What a unit's task returns of its work, and what it says about its end.
_FIGURES = ("rows", "rejected", "bytes")
_ENDS = ("stopped", "released", "failed", "left")
_TRACEPARENT = re.compile(r"00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})")


class Parent(NamedTuple):
    """The context of a span, by W3C's Trace Context."""

    trace_id: str
    span_id: str
    sampled: bool

    @classmethod
    def parse(cls, text: object) -> Parent | None:
        """Return the context of a traceparent; None if it is invalid."""
        found = _TRACEPARENT.fullmatch(text) if isinstance(text, str) else None
        if found is None:
            return None
        return cls(found[1], found[2], bool(int(found[3], 16) & 1))


class JobTrace:
    """The span of a job, as long as its command follows it."""

    def __init__(self, span: Span | None) -> None:
        self._span = span

    @property
    def labels(self) -> dict[str, str]:
        """Labels for the job in the ledger; none without traces."""
        if self._span is None:
            return {}
        return {TRACE_LABEL: f"00-{self._span.trace_id}-{self._span.span_id}-01"}

    def ended(self, exit_code: int) -> int:
        """Note the exit code of the command, and return it."""
        if self._span is not None:
            self._span.attributes["ringhaul.exit_code"] = exit_code
        return exit_code


@contextmanager
def job_trace(settings: Settings, job: str, kind: str) -> Iterator[JobTrace]:
    """Trace a job within this context, at whose end the span is sent."""
    parent = Parent.parse(os.environ.get(PARENT_VARIABLE))
    sender = _sender(settings)
    if sender is None or (parent is not None and not parent.sampled):
        yield JobTrace(None)
        return
    span = _new_span(f"ringhaul {kind}", parent, {"ringhaul.job": job, "ringhaul.kind": kind})
    try:
        yield JobTrace(span)
    except BaseException:
        span.failed = True
        raise
    finally:
        _end(sender, span)
        sender.flush(FLUSH_S)


class UnitTrace:
    """The span of one attempt of a unit."""

    def __init__(self, span: Span | None) -> None:
        self._span = span
        self.worked = True  #: Whether there was a unit to work on.

    def ended(self, result: Mapping[str, Any]) -> None:
        """Note what the task returns. The reason of a failure is in the log and in the ledger, not
        here: it may quote a server."""
        self.worked = "skipped" not in result
        if self._span is None:
            return
        for name in _FIGURES:
            if isinstance(result.get(name), int):
                self._span.attributes[f"ringhaul.{name}"] = result[name]
        end = next((word for word in _ENDS if word in result), "done")
        self._span.attributes["ringhaul.end"] = end
        self._span.failed = end in ("failed", "released")


@contextmanager
def unit_trace(settings: Settings, request: Any, job: str, unit: int) -> Iterator[UnitTrace]:
    """Trace a unit within this context. `request`: Celery's, with the headers of the message; a
    unit of a job that is not traced has no span."""
    parent = Parent.parse(request.get(TRACE_LABEL))
    sender = _sender(settings) if parent is not None else None
    if sender is None:
        yield UnitTrace(None)
        return
    attributes: dict[str, str | int] = {
        "ringhaul.job": job,
        "ringhaul.unit": unit,
        "process.pid": os.getpid(),
    }
    span = _new_span("ringhaul unit", parent, attributes)
    trace = UnitTrace(span)
    try:
        yield trace
    finally:
        if trace.worked:
            _end(sender, span)


def close_tracing() -> None:
    """Send the spans of this process that have not left yet, for at most `FLUSH_S`."""
    for sender in _opened.values():
        sender.flush(FLUSH_S)


#: The sender of this process, by its process id: a fork has no thread.
_opened: dict[int, Sender] = {}


def _sender(settings: Settings) -> Sender | None:
    """Return this process's sender; None if the settings name no collector."""
    if not settings.tracing.endpoint:
        return None
    if os.getpid() not in _opened:
        from tasks.otlp import Sender

        pairs = (pair.partition("=") for pair in os.environ.get(HEADERS_VARIABLE, "").split(","))
        headers = {name.strip(): unquote(value.strip()) for name, _, value in pairs if name.strip()}
        for value in headers.values():
            remember(value)
        resource = {
            "service.name": os.environ.get(NAME_VARIABLE, "ringhaul"),
            "host.name": socket.gethostname(),
        }
        _opened.clear()
        _opened[os.getpid()] = Sender(settings.tracing.endpoint, headers, resource)
    return _opened[os.getpid()]


def _new_span(name: str, parent: Parent | None, attributes: dict[str, str | int]) -> Span:
    from tasks.otlp import Span

    return Span(
        name=name,
        trace_id=secrets.token_hex(16) if parent is None else parent.trace_id,
        span_id=secrets.token_hex(8),
        parent_id="" if parent is None else parent.span_id,
        attributes=attributes,
    )


def _end(sender: Sender, span: Span) -> None:
    span.end_ns = time.time_ns()
    sender.put(span)
