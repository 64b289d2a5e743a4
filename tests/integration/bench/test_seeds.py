"""Each way of the first and the third article does all of its work, at a small size."""

from __future__ import annotations

import csv
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bench import exec_sweep, load_locality, load_sweep, work_units
from bench.data import SMALL, Table, data_file, local_table, same_file
from bench.exec_seeds import STATEMENT
from bench.harness import COPY, DRIVER, OURS, System
from bench.peers import cqlsh_copy, driver_pattern
from bench.read_peers import select_pattern
from bench.read_systems import execute
from bench.sessions import count_connections, watched
from bench.site import Site
from bench.stage import KEYSPACE, Stage, stage_at
from bench.sweep import Crew
from bench.systems import fill
from producer.local.stack import Endpoints
from tests.acceptance.command import wait_until
from tests.services import patient_cluster

ROWS = 600


@pytest.fixture(scope="module")
def stage(endpoints: Endpoints, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with stage_at(endpoints, tmp_path_factory.mktemp("stage")) as stage:
        yield stage
        stage.session.execute(f"DROP KEYSPACE {KEYSPACE}", timeout=60)


@pytest.fixture(scope="module")
def crew(stage: Stage) -> Iterator[Crew]:
    apart = stage.apart("crew", 6)
    with apart.worker(1) as pid:
        yield Crew(apart, pid)


def site_of(stage: Stage, table: Table) -> Site:
    stage.create(table)
    path = data_file(stage.folder, table, rows=ROWS)
    return Site(stage, table, path, ROWS, worker_pid=0)


@pytest.fixture
def site(stage: Stage) -> Site:
    return site_of(stage, SMALL)


def check(site: Site, system: System, family: str = DRIVER) -> None:
    """Run a system that loads, and compare every row with the file."""
    run = system.run()
    assert (run.rows, system.family) == (ROWS, family)
    assert run.work_s > 0 and run.cpu_s >= 0  # the kernel counts hundredths of a second
    found = site.stage.session.execute(f"SELECT id, seq, sensor, humidity FROM {site.name}")
    with site.path.open(newline="") as file:
        expected = [(r[0], int(r[1]), r[4], float(r[3])) for r in [*csv.reader(file)][1:]]
    assert sorted(map(tuple, found)) == sorted(expected)


@pytest.mark.parametrize(
    ("pattern", "processes", "in_flight"),
    [("S0a", 0, 0), ("S3a", 0, 0), ("S3b", 0, 0), ("S3c", 0, 0), ("S0a", 3, 128), ("S3c", 3, 128)],
)
def test_a_way_writes_every_row(site: Site, pattern: str, processes: int, in_flight: int) -> None:
    check(
        site,
        driver_pattern(site, pattern, pattern, rows=ROWS, processes=processes, in_flight=in_flight),
    )


def test_copy_writes_every_row(site: Site) -> None:
    check(site, cqlsh_copy(site, processes=1), COPY)


@pytest.mark.parametrize("pattern", ["S0a", "S0b", "S0c"])
def test_a_way_gets_the_answer_to_each_query(site: Site, pattern: str, tmp_path: Path) -> None:
    values = same_file(tmp_path, "key", "local", ROWS)

    system = select_pattern(
        site, pattern, pattern, statement=STATEMENT, values=values, rows=ROWS, processes=2
    )

    system.reset()
    assert system.run().rows == ROWS  # it raises if an answer is missing


def test_ours_answers_as_many(site: Site, crew: Crew) -> None:
    values = same_file(site.stage.folder, "key", "local", ROWS)
    system = execute(crew.at(site), STATEMENT, values, ROWS)
    system.reset()
    assert system.run().rows == ROWS


def test_a_file_a_task(site: Site, crew: Crew) -> None:
    ours, theirs = work_units.file_systems(crew.at(site))
    check(site, theirs)
    site.stage.session.execute(f"TRUNCATE {site.name}", timeout=60)
    check(site, ours, OURS)


def test_a_bucket_a_task(stage: Stage, crew: Crew) -> None:
    site = crew.at(site_of(stage, work_units.BUCKETED))
    fill(site)
    for system in work_units.bucket_systems(site):
        system.reset()
        assert system.run().rows == ROWS  # it raises if a row is missing


def test_locality_has_every_way_and_each_writes_every_row(stage: Stage, crew: Crew) -> None:
    # Some rows share a partition with the row before, so each batch has rows of one partition.
    site = crew.at(site_of(stage, local_table(40)))
    systems = load_locality.systems_at(site, 40)
    assert [system.family for system in systems] == [OURS] * 3 + [DRIVER] * 3
    site = replace(site, rows=ROWS)
    pattern = systems[-1]
    assert pattern.name.startswith("S3d 40 %: S3c")
    assert pattern.run().rows == ROWS // 2
    stage.session.execute(f"TRUNCATE {site.name}", timeout=60)
    assert systems[0].run().rows == ROWS


def test_the_sweeps_have_every_number_of_processes_and_bound(site: Site, tmp_path: Path) -> None:
    crews = {count: Crew(site.stage, 0) for count in (1, 2, 4)}
    loads = [system.name for system in load_sweep.systems(site, crews)]
    reads = [system.name for system in exec_sweep.systems(site, crews, tmp_path / "p", ROWS)]
    assert len(set(loads)) == len(loads) == 3 + 3 * 3 * 3
    assert len(set(reads)) == len(reads) == 3 + (3 + 1 + 3) * 3
    assert "S3a async single statements, 4 proc., 8000" in loads
    assert "S0b pool of queries, 2 proc., no bound" in reads
    assert loads[0] == reads[0] == "ringhaul, 1 proc., no bound"


def test_the_server_lists_connections_while_a_session_is_open(
    stage: Stage, endpoints: Endpoints
) -> None:
    def run_it() -> None:
        with patient_cluster(endpoints.contact_points, port=endpoints.port) as cluster:
            cluster.connect().execute("SELECT key FROM system.local")
            time.sleep(0.5)

    def is_quiet() -> bool:
        before = count_connections(stage.session)
        time.sleep(1)
        return count_connections(stage.session) == before

    wait_until(is_quiet, "the end of the connections of earlier tests")
    seen = watched(stage.session, run_it)

    assert seen.most >= 1
    assert seen.left == 0
