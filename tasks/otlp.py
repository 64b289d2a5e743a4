"""Send spans to a collector of OpenTelemetry, by OTLP over HTTP in JSON.

A span for each job and unit is little, and this is all that it takes. OpenTelemetry's SDK would add
ten packages, which redis-py imports as soon as they are there: 40 ms for each command.

If the collector is unavailable, spans are dropped, and the log says so. Nothing else is affected.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from ringhaul import __version__
from ringhaul.web_client import exchange

log = logging.getLogger(__name__)

#: Spans that wait; more are dropped, the oldest first.
SPANS_MAX = 2048
#: How often spans are sent, and how long one request may take.
SEND_EVERY_S = 1.0
REQUEST_S = 3.0
#: How often the log mentions an unavailable collector.
SAY_EVERY_S = 60.0
_ERROR = 2  #: STATUS_CODE_ERROR
_INTERNAL = 1  #: SPAN_KIND_INTERNAL

Value = str | int


@dataclass(kw_only=True)
class Span:
    """A span as long as it is open, and then until it is sent."""

    name: str
    trace_id: str  #: 32 hexadecimal digits
    span_id: str  #: 16
    parent_id: str = ""  #: 16; empty: the span begins its trace.
    start_ns: int = field(default_factory=time.time_ns)
    end_ns: int = 0
    attributes: dict[str, Value] = field(default_factory=dict)
    failed: bool = False

    def to_json(self) -> dict[str, object]:
        """Return the span as OTLP has it in JSON: 64-bit numbers are texts."""
        found: dict[str, object] = {
            "traceId": self.trace_id,
            "spanId": self.span_id,
            "name": self.name,
            "kind": _INTERNAL,
            "startTimeUnixNano": str(self.start_ns),
            "endTimeUnixNano": str(self.end_ns),
            "attributes": _attributes(self.attributes),
            "status": {"code": _ERROR} if self.failed else {},
        }
        if self.parent_id:
            found["parentSpanId"] = self.parent_id
        return found


class Sender:
    """Sends spans in a thread, which starts with the first span."""

    def __init__(
        self, endpoint: str, headers: Mapping[str, str], resource: Mapping[str, Value]
    ) -> None:
        """`endpoint`: URL of the collector, such as `http://collector:4318`. `headers`: HTTP
        headers of each request; they may hold a secret. `resource`: attributes of this process."""
        self._url = endpoint.rstrip("/") + "/v1/traces"
        self._headers = {**headers, "Content-Type": "application/json"}
        self._resource = _attributes(resource)
        self._waiting: deque[Span] = deque(maxlen=SPANS_MAX)
        self._lock, self._wake, self._idle = threading.Lock(), threading.Event(), threading.Event()
        self._idle.set()
        self._thread: threading.Thread | None = None
        self._said_at: float | None = None

    def put(self, span: Span) -> None:
        """Send a span that has ended, soon."""
        with self._lock:
            self._idle.clear()
            self._waiting.append(span)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="spans", daemon=True)
            self._thread.start()

    def flush(self, timeout_s: float) -> None:
        """Send what waits now, and return when it is sent or the time is up."""
        self._wake.set()
        self._idle.wait(timeout_s)

    def _run(self) -> None:
        while True:
            self._wake.wait(SEND_EVERY_S)
            self._wake.clear()
            with self._lock:
                spans = list(self._waiting)
                self._waiting.clear()
            if spans:
                self._send(spans)
            with self._lock:
                if not self._waiting:
                    self._idle.set()

    def _send(self, spans: list[Span]) -> None:
        scope = {"name": "ringhaul", "version": __version__}
        body = {
            "resourceSpans": [
                {
                    "resource": {"attributes": self._resource},
                    "scopeSpans": [{"scope": scope, "spans": [one.to_json() for one in spans]}],
                }
            ]
        }
        try:
            answer = exchange(
                "POST",
                self._url,
                timeout_s=REQUEST_S,
                headers=self._headers,
                body=json.dumps(body).encode(),
                by_proxy=True,
            )
            if not 200 <= answer.status < 300:
                raise OSError(f"HTTP Error {answer.status}: {answer.reason}")
        except Exception as error:  # whatever happens here, units are what matters
            now = time.monotonic()
            if self._said_at is None or now - self._said_at >= SAY_EVERY_S:
                self._said_at = now
                log.warning("%d spans were not sent to %s: %s", len(spans), self._url, error)


def _attributes(values: Mapping[str, Value]) -> list[dict[str, object]]:
    return [
        {
            "key": name,
            "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value},
        }
        for name, value in values.items()
    ]
