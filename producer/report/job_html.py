"""A job as HTML: the body that a report and the page in Flower share, and the whole report.

Whatever comes from outside is escaped twice: control characters become visible, as on a terminal,
and markup becomes text. There is no script in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import resources
from pathlib import Path

from tornado.template import DictLoader

from producer.figures.job_detail import JobDetail
from producer.report.charts import Line, Point, line_chart, progress_bar, rates, timeline
from producer.report.html_values import FUNCTIONS
from ringhaul.ledger.history import JobEvent

#: If there are more events, the first and the last are shown.
EVENTS_MAX = 60
#: File of the style sheet, in the folder of templates.
STYLE = "job.css"


def job_body(detail: JobDetail, *, live: bool = False, actions: str = "") -> str:
    """Return the job as an HTML element of class `rh`; it needs `job_style` on its page.

    `live`: the page is kept up to date, so it does not show when this was read. `actions`: HTML
    below the figures.
    """
    snapshot, status = detail.snapshot, detail.status
    processes = sum(host.processes for host in detail.hosts)
    return _render(
        "job_body.html",
        detail=detail,
        live=live,
        actions=actions,
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
    return _text(STYLE)


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
    return _loader().load(name).generate(**FUNCTIONS, **values).decode()


@cache
def _loader() -> DictLoader:
    names = ("job_body.html", "report.html")
    return DictLoader({name: _text(name) for name in names}, autoescape="shown")


def template_folder() -> Path:
    """Return the folder with templates and the style sheet."""
    return Path(str(resources.files(__package__).joinpath("templates")))


def _text(name: str) -> str:
    return (template_folder() / name).read_text(encoding="utf-8")
