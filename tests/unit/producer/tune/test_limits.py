"""What limits a load, by what was measured."""

from __future__ import annotations

from dataclasses import replace

import pytest

from producer.tune.limits import Evidence, Limit, SourceRate, evidence_lines, judge

#: Four workers that wait for a server: 100,000 rows/s at 4 us.
WAITING = Evidence(
    rate=100_000,
    bytes_s=10e6,
    workers=4,
    cpu_us_per_row=4.0,
    p50_ms=20.0,
    p99_ms=80.0,
    round_trip_ms=0.5,
    source=SourceRate(rows_s=4e6, encoded_rows_s=500_000, bytes_s=400e6),
    cores=8,
    busy=0.3,
)


@pytest.mark.parametrize(
    ("limit", "found"),
    [
        (Limit.SERVER, WAITING),
        (Limit.CLIENT_CPU, replace(WAITING, cpu_us_per_row=35.0)),
        (Limit.CLIENT_CPU, replace(WAITING, busy=0.99)),
        (Limit.NETWORK, replace(WAITING, p50_ms=110.0, round_trip_ms=100.0)),
        # A far server that is busy
        (Limit.SERVER, replace(WAITING, p50_ms=400.0, round_trip_ms=100.0)),
        (Limit.SOURCE, replace(WAITING, source=replace(WAITING.source, rows_s=30_000))),
        # One compressed file: three of four processes have nothing to read
        (
            Limit.SOURCE,
            replace(WAITING, source=replace(WAITING.source, rows_s=120_000, streams_max=1)),
        ),
        # Standing workers: nothing is known of their hosts
        (Limit.SERVER, replace(WAITING, busy=None, cores=None)),
    ],
)
def test_what_limits(limit: Limit, found: Evidence) -> None:
    verdict = judge(found)
    assert verdict.limit is limit
    assert verdict.reason and verdict.advice


def test_an_idle_core_is_not_the_limit_of_busy_neighbours() -> None:
    assert judge(replace(WAITING, busy=0.89)).limit is Limit.SERVER
    assert judge(replace(WAITING, busy=0.91)).limit is Limit.CLIENT_CPU


def test_the_evidence_names_each_of_the_four_in_lines_that_fit() -> None:
    lines = evidence_lines(replace(WAITING, rate=12_345_678, busy=1.0))
    assert [line.split("  ")[0] for line in lines] == ["server", "client CPU", "network", "source"]
    assert all(len(line) <= 68 for line in lines), lines
    assert any("p50 20 ms" in line for line in lines)
