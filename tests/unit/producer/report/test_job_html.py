"""The report: small, of one piece, readable by programs, and only text where text is."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from producer.figures.job_detail import Figure, JobDetail, JobEnd
from producer.figures.job_settings import Setting
from producer.figures.reject_groups import (
    GROUPS_MAX,
    REASON_CHARS_MAX,
    RECORD_CHARS_MAX,
    SAMPLES_MAX,
    RejectGroup,
    RejectGroups,
    RejectSample,
)
from producer.figures.speed import recent_snapshot
from producer.figures.unit_detail import LISTED_MAX, Timeline, UnitLine, host_work, timeline_of
from producer.report.job_html import EVENTS_MAX, job_body, job_report, job_style
from ringhaul.ledger.history import EventKind, JobEvent, Sample
from ringhaul.ledger.job_status import Live
from ringhaul.ledger.keys import EVENTS_MAX as EVENTS_KEPT
from ringhaul.ledger.keys import SAMPLES_MAX as SAMPLES_KEPT
from ringhaul.ledger.states import JobState
from tests.unit.producer.figures.test_unit_detail import facts_of
from tests.unit.producer.statuses import STARTED_MS, status

HOSTILE = '<img src=x onerror="alert(1)">\x1b]0;owned\x07\u202e</style>'
REPORT_BYTES_MAX = 300_000


def detail(units: int = 0, **facts: object) -> JobDetail:
    """A job of `units` units over 5 hosts, with as much of everything as is ever shown."""
    looked = status(
        100,
        state=JobState.PARTIAL,
        units=units,
        done=units,
        pending=0,
        finished_ms=STARTED_MS + 100_000,
        totals={"rows": 100 * units, "rejected": units // 2},
        live=Live(),
    )
    tally, ends = facts_of(units, 5, 4)
    lines = tuple(
        UnitLine(unit=n, state="done", attempts=1, place="/p" * 60, note="n" * 200)
        for n in range(LISTED_MAX if units else 0)
    )
    sample = RejectSample(
        place="/p" * 60, reason="r" * REASON_CHARS_MAX, record="d" * RECORD_CHARS_MAX
    )
    group = RejectGroup(
        stage="cast", column="c" * 48, reason="a reason", count=7, samples=(sample,) * SAMPLES_MAX
    )
    return replace(
        JobDetail(
            job=looked.job,
            kind="load",
            table="shop.orders",
            status=looked,
            snapshot=recent_snapshot(looked, []),
            end=JobEnd(
                exit_code=1,
                figures=(Figure(name="rows", value=100 * units), Figure(name="p99_ms", value=None)),
                verdict=("complete with rejects",),
                next_commands=(f"ringhaul errors {looked.job}",),
            ),
            samples=tuple(
                Sample(at_ms=STARTED_MS + n * 123_456, rows=n * 7_654_321, p50_ms=1.25, p99_ms=n)
                for n in range(SAMPLES_KEPT if units else 0)
            ),
            events=tuple(
                JobEvent(at_ms=STARTED_MS + n, kind=EventKind.RETRIED, text="t" * 200, by="h" * 40)
                for n in range(EVENTS_KEPT if units else 0)
            ),
            rejects=RejectGroups(groups=(group,) * (GROUPS_MAX if units else 0), read=7),
            slowest=lines,
            failing=lines,
            hosts=host_work(tally),
            timeline=timeline_of(tally, ends, [], max(ends) / 1000) if units else Timeline(),
            command="ringhaul load x.csv",
            settings=(Setting(name="consistency", value="LOCAL_QUORUM"),),
            environment=(Setting(name="python", value="3.11"),),
            show_data=True,
            units_read=True,
            at_ms=STARTED_MS,
        ),
        **facts,  # type: ignore[arg-type]
    )


def test_a_report_of_10_000_units_is_small() -> None:
    page = job_report(detail(10_000))
    assert 50_000 < len(page.encode()) < REPORT_BYTES_MAX
    assert page.count("<svg") == page.count("</svg>") == 4


@pytest.mark.parametrize("units", [0, 1, 2])
def test_a_report_of_a_job_that_has_hardly_begun(units: int) -> None:
    page = job_report(detail(units))
    assert not re.search(r"\b(nan|inf|None)\b", page.replace("default-src 'none'", ""))


def test_figures_are_attributes() -> None:
    page = job_body(detail(20))
    for attribute in (
        *('data-rows="2000"', 'data-rejected="10"', 'data-state="PARTIAL"'),
        *('data-exit-code="1"', 'data-figure="rows" data-value="2000"'),
        *('data-figure="p99_ms" data-value="null"', 'data-job="ld-7f3a9c"'),
    ):
        assert page.count(attribute) == 1, attribute


def test_text_from_outside_is_text() -> None:
    plain = detail(2)
    sample = RejectSample(place=HOSTILE, reason=HOSTILE, record=HOSTILE)
    group = RejectGroup(stage=HOSTILE, column=HOSTILE, reason=HOSTILE, count=1, samples=(sample,))
    line = UnitLine(unit=1, state="done", attempts=2, worker=HOSTILE, place=HOSTILE, note=HOSTILE)
    hostile = replace(
        plain,
        table=HOSTILE,
        end=replace(plain.end, verdict=(HOSTILE,), next_commands=(HOSTILE,)),
        rejects=RejectGroups(groups=(group,), read=1),
        slowest=(line,),
        failing=(line,),
        hosts=tuple(replace(one, host=HOSTILE) for one in plain.hosts),
        timeline=replace(plain.timeline, lanes=(HOSTILE, HOSTILE)),
        events=(JobEvent(at_ms=1, kind=EventKind.ENDED, text=HOSTILE, by=HOSTILE),),
        command=HOSTILE,
        settings=(Setting(name=HOSTILE, value=HOSTILE),),
        environment=(Setting(name=HOSTILE, value=HOSTILE),),
    )
    page = job_report(hostile)
    assert "<img" not in page
    assert not set(page) & {"\x1b", "\x07", "\u202e"}
    assert page.count("</style>") == 1
    assert page.count("&lt;img") > 15
    assert page.count("\\x1b]0;owned\\x07\\u202e") == page.count("&lt;img")


def test_passwords_of_urls_are_masked() -> None:
    page = job_body(detail(1, command="ringhaul load https://joe:hunter2@h/x.csv?sig=hunter2"))
    assert "joe:***@h" in page
    assert "hunter2" not in page


def test_a_page_needs_nothing_else() -> None:
    page = job_report(detail(300))
    assert (
        re.search(r"""\b(src|href|action|on\w+)=|@import|url\(|<script|<link|<iframe""", page)
        is None
    )
    assert "content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\"" in page
    assert page.startswith("<!DOCTYPE html>")


def test_the_style_stays_with_its_element() -> None:
    """Flower's pages have their own styles."""
    rules = re.sub(r"@media[^{]*\{|/\*.*?\*/", "", job_style())
    selectors = re.findall(r"([^{}]+)\{[^{}]*\}", rules)
    assert len(selectors) > 40
    for selector in ",".join(selectors).split(","):
        assert selector.strip().startswith(".rh"), selector
    assert "prefers-color-scheme: dark" in job_style()


def test_of_many_events_the_first_and_the_last_are_shown() -> None:
    events = tuple(
        JobEvent(at_ms=STARTED_MS, kind=EventKind.RETRIED, text=f"event-{n}.") for n in range(400)
    )
    page = job_body(detail(1, events=events))
    assert page.count("event-") == EVENTS_MAX
    assert "event-0." in page and "event-399." in page and "event-200." not in page
    assert "The first and the last of 400" in page
