"""Units as pages show them: bounded for any number of units, and nothing lost in sums."""

from __future__ import annotations

import random

import pytest

from producer.figures.unit_detail import (
    BARS_MAX,
    LANES_MAX,
    UnitFact,
    UnitFacts,
    host_work,
    timeline_of,
)
from producer.figures.unit_place import UnitPlaces
from ringhaul.ledger.job_status import Live, UnitAtWork
from ringhaul.records.unit import TO_THE_END, LoadUnit
from ringhaul.scan.ranges import TokenRange, pack_ranges
from tests.loads import load_job, load_source, table_schema
from tests.unit.producer.figures.test_scan_summary import job as scan_job

TABLE = table_schema({"id": "int"}, ["id"])


def facts_of(units: int, hosts: int, slots: int) -> tuple[UnitFacts, list[int]]:
    """Units of about a second, one after the other on each process; and their ends."""
    made = random.Random(7)
    free = {f"host{h}:{4000 + s}": 0 for h in range(hosts) for s in range(slots)}
    facts, ends = UnitFacts(), []
    for unit in range(units):
        worker = min(free, key=lambda name: free[name])
        elapsed_ms = made.randint(500, 1500)
        free[worker] += elapsed_ms
        fact = UnitFact(unit, worker, elapsed_ms, 1 + (unit % 97 == 5), 100, unit % 2)
        facts.by_bucket.setdefault(unit // 256, []).append(fact)
        ends.append(free[worker])
    return facts, ends


@pytest.mark.parametrize(
    ("units", "hosts", "slots", "lanes"),
    [(1, 1, 1, 1), (300, 2, 4, 8), (5000, 5, 4, 20), (5000, 6, 8, 6), (5000, 70, 2, LANES_MAX)],
)
def test_the_timeline_is_bounded_and_complete(
    units: int, hosts: int, slots: int, lanes: int
) -> None:
    facts, ends = facts_of(units, hosts, slots)
    found = timeline_of(facts, ends, [], max(ends) / 1000)
    assert len(found.lanes) == lanes
    assert 0 < len(found.bars) <= BARS_MAX
    assert (found.units, found.summed) == (units, units > BARS_MAX or hosts * slots > LANES_MAX)
    processes = [hosts * slots / lanes] * lanes if lanes < LANES_MAX else []
    if found.summed and processes:  # the same work, apart from rounded heights
        drawn = sum((b.end_s - b.start_s) * b.share * processes[b.lane] for b in found.bars)
        worked = sum(fact.elapsed_ms for fact in facts.all()) / 1000
        assert drawn == pytest.approx(worked, rel=0.1)
    for bar in found.bars:
        assert 0 <= bar.lane < lanes
        assert 0 <= bar.start_s < bar.end_s <= found.seconds + 1e-6
        assert 0 < bar.share <= 1


def test_units_without_times_are_left_out_and_running_ones_last_until_now() -> None:
    facts, ends = facts_of(10, 1, 1)
    running = UnitAtWork(
        job="j", unit=11, worker="celery@host9:1", attempt=1, seconds=2.0, live=Live()
    )
    assert timeline_of(facts, [], [running], 20).bars == ()
    assert timeline_of(facts, [0] * 10, [], 20).bars == ()
    found = timeline_of(facts, ends[:5], [running], 20)
    assert (found.units, found.lanes) == (6, ("host0:4000", "host9:1"))
    assert (found.bars[-1].start_s, found.bars[-1].end_s) == (18.0, 20.0)


def test_hosts_add_up() -> None:
    facts, _ = facts_of(1000, 3, 2)
    hosts = host_work(facts)
    assert [host.processes for host in hosts] == [2, 2, 2]
    assert sum(host.units for host in hosts) == 1000
    assert sum(host.rows for host in hosts) == 100_000
    assert sum(host.rejected for host in hosts) == 500
    assert sum(host.repeated for host in hosts) == 11
    assert [host.units for host in hosts] == sorted((host.units for host in hosts), reverse=True)


@pytest.mark.parametrize(
    ("unit", "place"),
    [
        (LoadUnit(0, 0, 1000, 0, 1, 9).pack(), "/data/a.csv, bytes 0 to 1,000"),
        (LoadUnit(1, 5, TO_THE_END, 0, 1, -1).pack(), "https://h/b.csv.gz, from byte 5 to its end"),
        (LoadUnit(7, 0, 1, 0, 1, 1).pack(), ""),  # there is no such source
        ("nonsense", ""),
        (None, ""),
    ],
)
def test_a_unit_of_a_file_lies_in_its_bytes(unit: str | None, place: str) -> None:
    paths = ("/data/a.csv", "https://user:pw@h/b.csv.gz")
    job = load_job(TABLE, *(load_source(["id"], path=path) for path in paths))
    assert UnitPlaces("ld-1", job).place(unit) == place


def test_a_unit_of_a_read_lies_in_its_ranges() -> None:
    places = UnitPlaces("ul-1", scan_job())
    ranges = [TokenRange(-5, 7), TokenRange(9, 12)]
    assert places.place(pack_ranges(ranges[:1])) == "tokens -5 to 7"
    assert places.place(pack_ranges(ranges)) == "tokens -5 to 7 and 1 more ranges"
