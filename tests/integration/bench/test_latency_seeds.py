"""Each way of the latency bench inserts every row, at a small size."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.data import PEOPLE, data_file
from bench.far_celery import celery_gevent
from bench.far_seeds import people_of
from bench.harness import System
from bench.latency_seeds import PATTERNS, pattern_at
from bench.site import Site
from bench.stage import KEYSPACE, Stage, stage_at
from producer.local.stack import Endpoints

ROWS = 60
#: The benches install it, the product does not need it.
NO_GEVENT = importlib.util.find_spec("gevent") is None


@pytest.fixture
def site(endpoints: Endpoints, tmp_path: Path) -> Iterator[Site]:
    with stage_at(endpoints, tmp_path) as stage:
        yield site_of(stage, tmp_path)
        stage.session.execute(f"DROP KEYSPACE {KEYSPACE}", timeout=60)


def site_of(stage: Stage, folder: Path) -> Site:
    stage.create(PEOPLE)
    return Site(stage, PEOPLE, data_file(folder, PEOPLE, rows=ROWS), ROWS, worker_pid=0)


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.name)
def test_a_pattern_inserts_the_records_of_the_file(site: Site, pattern) -> None:  # type: ignore[no-untyped-def]
    if "green" in pattern.module and NO_GEVENT:
        pytest.skip("gevent comes with `make test`")
    check(site, pattern_at(site, pattern, "it", ROWS), ROWS)


@pytest.mark.skipif(NO_GEVENT, reason="gevent comes with `make test`")
def test_celery_with_green_threads_inserts_the_records_of_the_file(site: Site) -> None:
    # The first one opens the session of the worker and is not measured.
    check(site, celery_gevent(site, "it", people_of(site.path, ROWS)), ROWS - 1)


def check(site: Site, system: System, rows: int) -> None:
    run = system.run()
    assert run.rows == rows
    assert run.work_s > 0 and run.cpu_s > 0
    found = site.stage.session.execute(f"SELECT {', '.join(PEOPLE.columns)} FROM {site.name}")
    assert sorted(map(tuple, found)) == sorted(people_of(site.path, ROWS))
