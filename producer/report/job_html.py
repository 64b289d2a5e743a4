"""A job as HTML: the body that a report and the page in Flower share, and the whole report.

Whatever comes from outside is escaped twice: control characters become visible, as on a terminal,
and markup becomes text. There is no script in it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib import resources

from tornado.escape import xhtml_escape
from tornado.template import DictLoader

from config.secrets import mask
from producer.report.charts import Line, Point, line_chart, progress_bar, rates, timeline
from producer.report.job_detail import JobDetail
from producer.text import bytes_text, ms_text, rate_text, time_text
from ringhaul.ledger.history import JobEvent
from ringhaul.plain_text import as_line

#: Of more events, the first and the last are shown.
EVENTS_MAX = 60
#: A unit's time is shown with a tenth of a second below this.
_TENTHS_BELOW_S = 60
#: Class and mark of each state: what the colour says, the mark and the word say too.
_STATES: Mapping[str, tuple[str, str]] = {
    "RUNNING": ("", "\u25b6"),
    "PAUSED": ("warn", "\u2016"),
    "COMPLETE": ("good", "\u2713"),
    "PARTIAL": ("warn", "!"),
    "STOPPED": ("bad", "\u2715"),
    "QUARANTINED": ("bad", "\u2715"),
    "FAILED": ("bad", "\u2715"),
    "CANCELLED": ("", "\u2013"),
}
_PREPOSITIONS = {"load": "into", "verify": "against", "exec": ""}  # an exec has its verb


def job_body(detail: JobDetail) -> str:
    """Return the job as an HTML element of class `rh`; it needs `job_style` on its page."""
    snapshot, status = detail.snapshot, detail.status
    tone, mark = _STATES.get(snapshot.state, ("", "?"))
    processes = sum(host.processes for host in detail.hosts)
    return _render(
        "job_body.html",
        detail=detail,
        tone=tone,
        mark=mark,
        preposition=_PREPOSITIONS.get(detail.kind, "of"),
        share=f"{snapshot.share:.4f}",
        percent=f"{snapshot.share:.0%}",
        progress=progress_bar(snapshot.share, title="Progress"),
        processes=processes if status.finished else status.leased,
        hosts=len(detail.hosts) if status.finished else snapshot.hosts,
        rows_chart=_rows_chart(detail),
        latency_chart=_latency_chart(detail),
        timeline=timeline(
            detail.timeline.bars,
            detail.timeline.lanes,
            title="Units over time",
            seconds=detail.timeline.seconds,
        ),
        lanes_are="processes" if ":" in "".join(detail.timeline.lanes) else "hosts",
        repeated_bars=any(bar.repeated for bar in detail.timeline.bars),
        events=_shown_events(detail.events),
    )


def job_style() -> str:
    """Return the style sheet for `job_body`; all its rules are for class `rh`."""
    return _text("job.css")


def job_report(detail: JobDetail) -> str:
    """Return the job as one HTML document that needs nothing else, not even a network."""
    return _render(
        "report.html",
        title=f"{detail.job} {detail.snapshot.state}",
        style=job_style(),
        body=job_body(detail),
    )


def _rows_chart(detail: JobDetail) -> str:
    start_ms = detail.status.created_ms
    rows = [Point((s.at_ms - start_ms) / 1000, s.rows + s.rejected) for s in detail.samples]
    line = Line(name="rows/s", points=rates(rows))
    return line_chart([line], title="Rows per second over time", unit="rows/s")


def _latency_chart(detail: JobDetail) -> str:
    start_ms = detail.status.created_ms
    times = [(s.at_ms - start_ms) / 1000 for s in detail.samples]
    lines = [
        Line(
            name="p99",
            points=[Point(at, s.p99_ms) for at, s in zip(times, detail.samples, strict=True)],
        ),
        Line(
            name="p50",
            points=[Point(at, s.p50_ms) for at, s in zip(times, detail.samples, strict=True)],
        ),
    ]
    return line_chart(lines, title="Latency of requests over time", unit="ms")


def _shown_events(events: Sequence[JobEvent]) -> Sequence[JobEvent]:
    if len(events) <= EVENTS_MAX:
        return events
    half = EVENTS_MAX // 2
    return [*events[:half], *events[-half:]]


def _render(name: str, **values: object) -> str:
    made = (
        _loader()
        .load(name)
        .generate(
            **values,
            shown=_shown,
            count=_count,
            size=bytes_text,
            rate=rate_text,
            ms=ms_text,
            duration=time_text,
            duration_of=_duration_of,
            exact=_exact,
            figure=_figure,
            when=_when,
            clock=_clock,
        )
    )
    return made.decode()


@cache
def _loader() -> DictLoader:
    names = ("job_body.html", "report.html")
    return DictLoader({name: _text(name) for name in names}, autoescape="shown")


def _text(name: str) -> str:
    return resources.files(__package__).joinpath("templates", name).read_text(encoding="utf-8")


def _shown(value: bytes) -> str:
    """Escape a value for a page; every expression of the templates goes through it."""
    return xhtml_escape(as_line(mask(value.decode())))


def _count(value: int) -> str:
    return f"{value:,}"


def _duration_of(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return f"{seconds:.1f} s" if seconds < _TENTHS_BELOW_S else time_text(seconds)


def _exact(value: float | str | None) -> str:
    """Return a value as `status --json` has it, so that programs can compare."""
    return value if isinstance(value, str) else json.dumps(value)


def _figure(value: float | str | None) -> str:
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if isinstance(value, float) and not value.is_integer():
        return f"{value:,.3f}" if math.isfinite(value) else "-"
    return f"{value:,.0f}"


def _when(at_ms: int) -> str:
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    return f'<time datetime="{at:%Y-%m-%dT%H:%M:%SZ}">{at:%Y-%m-%d %H:%M:%S} UTC</time>'


def _clock(at_ms: int) -> str:
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    return f'<time datetime="{at:%Y-%m-%dT%H:%M:%SZ}">{at:%H:%M:%S}</time>'
