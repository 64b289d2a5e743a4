"""`ringhaul top` fits its screen, and drops the least important lines first."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console, ConsoleDimensions

from producer.figures.speed import recent_snapshot
from producer.report.top_view import UNITS_SHOWN, Host, View, as_document, as_screen, hosts_of
from ringhaul.ledger.formats import Readable
from ringhaul.ledger.job_status import JobStatus, Live, UnitAtWork
from ringhaul.ledger.pace import Limits, Pace
from ringhaul.ledger.states import JobState
from ringhaul.ledger.workers import Worker
from tests.unit.producer.statuses import STARTED_MS, status

LIMITED = Pace.of(Limits(1000, 0, 8), ("08:00-18:00",), "Europe/Berlin")


def unit(number: int, host: str) -> UnitAtWork:
    return UnitAtWork(
        job="ld-91c0d2",
        unit=number,
        worker=f"celery@{host}:{number}",
        attempt=1,
        seconds=100.0 - number,
        live=Live(rows=number * 1000),
    )


def view() -> View:
    """A running load, a paused unload, and a finished count."""
    statuses: list[JobStatus] = [
        status(
            10,
            job="ld-91c0d2",
            leased=14,
            labels={"kind": "load", "table": "shop.items"},
            totals={"rows": 41_204_118, "rejected": 37},
        ),
        status(
            10,
            job="ul-19be02",
            labels={"kind": "unload", "table": "a_keyspace_with_a_long_name.and_its_table"},
            paused_ms=STARTED_MS + 5000,
            pace=LIMITED,
            priority="low",
        ),
        status(
            10,
            job="nightly-2026-11-20T01:00:00Z",
            state=JobState.QUARANTINED,
            finished_ms=STARTED_MS + 9000,
            labels={"kind": "count", "table": "shop.orders"},
        ),
    ]
    versions = [
        ("h0", "1.0", Readable(1, 1)),
        ("h0", "1.1", Readable(1, 2)),
        ("h1", "", Readable()),
    ]
    workers = [
        Worker(host, number, 8, version=version, readable=readable)
        for number, (host, version, readable) in enumerate(versions)
    ]
    return View(
        jobs=[(found, recent_snapshot(found, [])) for found in statuses],
        workers=workers,
        units=[unit(number, ("h0", "h1", "gone")[number % 3]) for number in range(14)],
    )


def drawn(width: int, height: int, **options: Any) -> list[str]:
    out = io.StringIO()
    console = Console(width=width, height=height, file=out)
    console.print(as_screen(view(), size=ConsoleDimensions(width, height), **options))
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_hosts_are_summed_and_a_silent_one_is_marked() -> None:
    both = (("1.0", Readable(1, 1)), ("1.1", Readable(1, 2)))
    assert hosts_of(view()) == [
        *(Host("gone", 0, 4), Host("h0", 16, 5, both), Host("h1", 8, 5, (("", Readable()),))),
    ]


def test_the_versions_of_hosts_are_shown() -> None:
    lines = [" ".join(line.split()) for line in drawn(80, 40)]
    assert "HOST SLOTS BUSY VERSION" in lines
    assert {"gone 0 4", "h0 16 5 1.0, 1.1", "h1 8 5 unknown"} <= set(lines)


@pytest.mark.parametrize("size", [(80, 24), (100, 30), (160, 50), (60, 20)])
def test_the_view_fits_the_screen(size: tuple[int, int]) -> None:
    lines = drawn(*size)
    assert len(lines) <= size[1]
    assert max(map(cell_len, lines)) <= size[0]
    text = "\n".join(lines)
    for word in ("JOB", "STATE", "PAUSED", "QUARANTINED", "ROWS/S", "LIMITS", "SLOWEST UNITS"):
        assert word in text
    assert "10 of 24 slots busy" in lines[0]
    # The slowest unit is shown even on a small screen
    assert any(line.split()[:2] == ["ld-91c0d2", "0"] for line in lines)


def test_nothing_is_cut_on_a_large_screen() -> None:
    text = "\n".join(drawn(220, 60))
    assert "…" not in text
    assert "1,000 rows/s, 8 in flight, 08:00-18:00 Europe/Berlin" in text
    assert "a_keyspace_with_a_long_name.and_its_table" in text


def test_long_names_that_differ_at_their_end_are_told_apart() -> None:
    jobs = [status(10, job=f"nightly-20261125T0200Z-{step}") for step in (1, 2, 3)]
    looks = View(jobs=[(one, recent_snapshot(one, [])) for one in jobs], workers=[], units=[])
    for width in (60, 80, 120):
        out = io.StringIO()
        size = ConsoleDimensions(width, 24)
        Console(width=width, file=out).print(as_screen(looks, size=size))
        names = [line.split()[0] for line in out.getvalue().splitlines() if "nightly" in line]
        assert len(set(names)) == 3, names
        assert all(name.startswith("night") and name[-1] in "123" for name in names)
        # Columns that say the same of all jobs take no room from them
        assert "PRIORITY" not in out.getvalue() and "LIMITS" not in out.getvalue()


def test_a_pipe_gets_all_units_whatever_its_height() -> None:
    assert sum(line.startswith("ld-91c0d2") for line in drawn(120, 5, whole=True)) == 11


def test_a_dead_fleet_has_a_line_of_its_own() -> None:
    line = "no worker has been alive for 2:30: start one with `ringhaul worker`"
    out = io.StringIO()
    size = ConsoleDimensions(80, 24)
    Console(width=80, height=24, file=out).print(
        as_screen(replace(view(), no_worker=line), size=size)
    )
    lines = [one.rstrip() for one in out.getvalue().splitlines()]
    assert lines[1] == line
    assert len(lines) <= 24


def test_the_last_view_stays_while_redis_is_away() -> None:
    assert "Redis is away" in drawn(120, 30, away="Redis is away")[0]


def test_json_has_the_same_content() -> None:
    document = as_document(view())
    jobs = {job["job"]: job for job in document["jobs"]}
    assert jobs["ld-91c0d2"]["units_running"] == 14
    assert jobs["ul-19be02"]["state"] == "PAUSED"
    assert jobs["ul-19be02"]["limits"] == LIMITED.to_json()
    assert jobs["ld-91c0d2"]["limits"] is None
    assert document["hosts"][1:] == [
        {
            "host": "h0",
            "slots": 16,
            "busy": 5,
            "versions": [
                {"ringhaul": "1.0", "job_formats": [1, 1]},
                {"ringhaul": "1.1", "job_formats": [1, 2]},
            ],
        },
        {
            "host": "h1",
            "slots": 8,
            "busy": 5,
            "versions": [{"ringhaul": None, "job_formats": [1, 1]}],
        },
    ]
    assert len(document["units"]) == UNITS_SHOWN
    assert document["units"][0]["host"] == "h0"
