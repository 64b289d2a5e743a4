"""Each way of the census bench, and ours, fill both tables alike, at a small size."""

from __future__ import annotations

import importlib.util
import random
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import load_zip
from bench.census import COUNTS, GEO, GEO_CHARACTERS, WIDE_ITEMS, dictionary_rows, geo_lines
from bench.census_seeds import HOWS, WAYS, Census, make_census, ours, way
from bench.census_ways import parse_geo, parse_wide, rows_of
from bench.data import SEED
from bench.load_memory import PRODUCER_MB_MAX, WORKER_MB_MAX
from bench.stage import KEYSPACE, stage_at
from producer.local.stack import Endpoints

GEO_RECORDS, WIDE_RECORDS = 60, 2
#: Of the zip archive, unpacked.
SIZE_BYTES = 20 << 20
#: The benches install it, the product does not need it.
NO_GEVENT = importlib.util.find_spec("gevent") is None
#: Both ways to insert are tried by threads, which all other ways share or resemble.
RUNS = [("threads", "rows"), ("threads", "helper"), ("asyncio", "helper"), ("gevent", "rows")]


@pytest.fixture(scope="module")
def census(endpoints: Endpoints, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Census]:
    folder = tmp_path_factory.mktemp("census")
    with stage_at(endpoints, folder) as stage:
        yield make_census(stage, folder, GEO_RECORDS, WIDE_RECORDS)
        stage.session.execute(f"DROP KEYSPACE IF EXISTS {KEYSPACE}", timeout=60)


def empty(census: Census) -> None:
    for table in (GEO, COUNTS):
        census.stage.session.execute(f"TRUNCATE {KEYSPACE}.{table.name}", timeout=60)


def check(census: Census) -> None:
    """Compare every row of both tables with the archives."""
    session = census.stage.session
    with zipfile.ZipFile(census.geo.path) as archive:
        lines = archive.read("ny2010.sf1").decode().splitlines()
    assert {len(line) for line in lines} == {GEO_CHARACTERS}
    found = session.execute(f"SELECT {', '.join(GEO.columns)} FROM {KEYSPACE}.geo")
    assert sorted(map(tuple, found)) == sorted(map(parse_geo, lines))
    with zipfile.ZipFile(census.wide.path) as archive:
        wide = archive.read("ny2010.sf1").decode().splitlines()
    expected = [row for line in wide for row in rows_of(parse_wide(line), dictionary_rows())]
    assert len(expected) == WIDE_RECORDS * len(WIDE_ITEMS)
    found = session.execute(f"SELECT {', '.join(COUNTS.columns)} FROM {KEYSPACE}.counts")
    assert sorted(map(tuple, found)) == sorted(expected)
    # And by an index
    counties = session.execute(f"SELECT logrecno FROM {KEYSPACE}.geo WHERE county = '001'")
    number = GEO.columns.index("county")
    assert len(list(counties)) == sum(parse_geo(line)[number] == "001" for line in lines)


@pytest.mark.parametrize(("name", "how"), RUNS)
def test_a_way_fills_both_tables(census: Census, name: str, how: str) -> None:
    assert {run[0] for run in RUNS} == {*WAYS} and {run[1] for run in RUNS} == {*HOWS}
    if name == "gevent" and NO_GEVENT:
        pytest.skip("gevent comes with `make bench`")
    empty(census)
    figures = way(census, name, 7, how, GEO_RECORDS, WIDE_RECORDS)
    check(census)
    assert figures["census_geo"].rows == GEO_RECORDS
    rest = [run for key, run in figures.items() if key != "census_geo"]
    assert rest and all(run.work_s > 0 and run.cpu_s > 0 for run in figures.values())


def test_ours_fills_both_tables(census: Census) -> None:
    empty(census)
    figures = ours(census)
    check(census)
    assert [run.rows for run in figures.values()] == [GEO_RECORDS, *[WIDE_RECORDS * 200] * 2]


def test_a_zip_loads_within_the_bounds_of_memory(census: Census, tmp_path: Path) -> None:
    """The bench that loads 3 GB, with 20 MB; tests/unit/formats/test_zip.py reads more."""
    empty(census)
    with census.stage.worker(1):
        measured = load_zip.measure(census.stage, tmp_path, size_bytes=SIZE_BYTES)
    rows = SIZE_BYTES // (GEO_CHARACTERS + 1)
    assert measured.rows == rows
    lines = geo_lines(rows, random.Random(SEED))
    found = census.stage.session.execute(f"SELECT {', '.join(GEO.columns)} FROM {KEYSPACE}.geo")
    assert sorted(map(tuple, found)) == sorted(map(parse_geo, lines))
    assert measured.worker_mb < WORKER_MB_MAX
    assert measured.producer_mb < PRODUCER_MB_MAX
