"""Claim: what an article finds fastest for census records is far slower than ringhaul.

Geographic records of fixed width go into a table with two indexes, wide records become 200 rows
each with a look-up in a dictionary; both are in zip archives (`bench.census`). Threads, gevent and
asyncio with 15 to 350 workers, row by row and with the driver's concurrent helper, against one
`ringhaul load` for each archive. The article has three figures, and so has this: geographic
records (`census_geo`), rows of wide records while another process still fills the queue
(`census_wide`), and after that (`census_ways`).
"""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from bench.census import (
    COUNTS,
    DICTIONARY,
    GEO,
    GEO_INDEXED,
    WIDE_HEAD,
    WIDE_ITEMS,
    dictionary_file,
    dictionary_rows,
    geo_layout,
    zip_file,
)
from bench.harness import DRIVER, OURS, Run, median, report, save
from bench.site import Site
from bench.stage import KEYSPACE, Stage, stage
from bench.tools import run_program, run_ringhaul
from config.sections import cache_dir_default

GEO_RECORDS, WIDE_RECORDS = 200_000, 5_000
WORKERS = (15, 50, 150, 350)
WAYS = ("threads", "gevent", "asyncio")
#: How the 200 rows of a record are inserted -> its name.
HOWS = {"rows": "row by row", "helper": "concurrent helper"}
#: The driver's helper hung in green threads whenever it was tried with 15 workers.
NOT_RUN = {("gevent", "helper")}
#: Figures of a run: saved result -> title, and the least rows that make a figure.
RESULTS = {
    "census_geo": "geographic records into a table with two indexes",
    "census_wide": "200 rows of each wide record, while the queue is filled",
    "census_ways": "200 rows of each wide record, once the queue is filled",
}
ROWS_MIN = 200
#: What the ways load of it: a run takes about 15 s, and a minute with 350 workers, each of which is
#: to have several wide records.
PART_OF_GEO, PART_OF_WIDE = 40, 50
WIDE_OF_WORKER = 2
MODULE = """from ringhaul.transform.examples import split_wide

split = split_wide(["logrecno"], dictionary={path!r})
"""


@dataclass(frozen=True)
class Census:
    """The archives, and the tables that they fill."""

    stage: Stage
    folder: Path
    geo: Site
    wide: Site

    def reset(self) -> None:
        """Empty the tables."""
        self.stage.truncate(GEO)
        self.stage.truncate(COUNTS)


#: Saved result -> the run's figure; missing: it had too few rows to be one.
Figures = dict[str, Run]


def make_census(stage: Stage, folder: Path, geo_records: int, wide_records: int) -> Census:
    """Create the tables, write the archives if they are missing, and allow the transform."""
    for table in (GEO, COUNTS, DICTIONARY):
        stage.create(table)
    for column in GEO_INDEXED:
        stage.session.execute(f"CREATE INDEX ON {KEYSPACE}.{GEO.name} ({column})", timeout=60)
    insert = stage.session.prepare(
        f"INSERT INTO {KEYSPACE}.{DICTIONARY.name} (segment, item, matrix) VALUES ('01', ?, ?)"
    )
    for row in dictionary_rows():
        stage.session.execute(insert, row)
    geo_layout(stage.folder)
    (stage.folder / "census_split.py").write_text(
        MODULE.format(path=str(dictionary_file(stage.folder)))
    )
    env = stage.env_embedded | {
        "RINGHAUL_TRANSFORM_ALLOWED": "census_split:split",
        "RINGHAUL_TRANSFORM_PATH": str(stage.folder),
    }
    here = replace(stage, env_embedded=env)
    geo, wide = (
        Site(here, table, zip_file(folder, table, records), rows, worker_pid=0)
        for table, records, rows in (
            (GEO, geo_records, geo_records),
            (COUNTS, wide_records, wide_records * len(WIDE_ITEMS)),
        )
    )
    return Census(here, folder, geo, wide)


def way(census: Census, name: str, workers: int, how: str, geo: int, wide: int) -> Figures:
    """Run a way of the article over the first records of both archives."""
    module = "bench.census_green" if name == "gevent" else "bench.census_ways"
    result, done = run_program(
        *(census.stage, module, name, str(workers), how),
        *(str(census.geo.path), str(census.wide.path), str(geo), str(wide)),
    )
    census.geo.check(geo)
    census.wide.check(wide * len(WIDE_ITEMS))
    found = {}
    for key, part in zip(RESULTS, ("geo", "filling", "filled"), strict=True):
        figures = result[part]
        site = census.geo if part == "geo" else census.wide
        if figures["rows"] >= min(ROWS_MIN, site.rows):
            found[key] = Run(
                rows=figures["rows"],
                bytes_count=site.bytes_of(figures["rows"]),
                work_s=figures["work_s"],
                whole_s=figures["work_s"],
                cpu_s=figures["cpu_s"],
                rss_bytes_max=done.rss_bytes_max,
            )
    return found


def ours(census: Census) -> Figures:
    """Load each archive with one command."""
    geo = _load(
        census.geo, "--format", "fixed", "--layout", str(census.stage.folder / "geo.layout")
    )
    fields = ",".join((*WIDE_HEAD, *WIDE_ITEMS))
    wide = _load(
        *(census.wide, "--format", "csv", "--no-header", "--columns", fields),
        *("--transform", "census_split:split"),
    )
    return dict(zip(RESULTS, (geo, wide, wide), strict=True))


def _load(site: Site, *options: str) -> Run:
    job = run_ringhaul(site, "load", str(site.path), "-t", site.name, *options, embedded=True)
    rows = int(job.summary["rows"])
    site.check(rows)
    return Run(
        rows=rows,
        bytes_count=site.path.stat().st_size,
        work_s=job.summary["elapsed_s"],
        whole_s=job.done.whole_s,
        cpu_s=job.cpu_s,
        worker_cpu_s=job.summary["cpu_us_per_row"] * rows / 1e6,
        rss_bytes_max=job.summary["worker_rss_bytes_max"],
    )


def label(name: str, workers: int, how: str) -> str:
    """Return the name of a way's line."""
    return f"S4b {name}, {workers} workers, {HOWS[how]}"


def run(geo_records: int, wide_records: int, rounds: int, workers: Sequence[int] = WORKERS) -> None:
    """Run the bench and print a table for each figure."""
    with stage() as running:
        lines_of = measure(running, geo_records, wide_records, rounds, workers)
    show(lines_of, rounds)


def measure(
    running: Stage, geo_records: int, wide_records: int, rounds: int, workers: Sequence[int]
) -> dict[str, dict[str, list[Run]]]:
    """Return the runs of each system, for each figure: a run of a way gives up to three."""
    ways = [name for name in WAYS if name != "gevent" or importlib.util.find_spec("gevent")]
    lines_of: dict[str, dict[str, list[Run]]] = {key: {} for key in RESULTS}
    census = make_census(running, cache_dir_default() / "bench", geo_records, wide_records)
    geo, wide = geo_records // PART_OF_GEO, wide_records // PART_OF_WIDE
    census.reset()
    ours(census)  # the server compiles its code under load
    for number in range(rounds):
        census.reset()
        _note(lines_of, number, "ringhaul load", ours(census))
        for name, count, how in product(ways, workers, HOWS):
            if (name, how) in NOT_RUN:
                continue
            census.reset()
            try:
                found = way(census, name, count, how, geo, max(wide, WIDE_OF_WORKER * count))
            except RuntimeError as error:
                # The hours of the others would be lost with it.
                print(
                    f"  round {number + 1}  {label(name, count, how)} FAILED: {error}", flush=True
                )
                continue
            _note(lines_of, number, label(name, count, how), found)
    return lines_of


def show(lines_of: dict[str, dict[str, list[Run]]], rounds: int) -> None:
    """Print a table for each figure, and save it."""
    for key, title in RESULTS.items():
        runs = lines_of[key]
        if len(runs) < 2:
            print(f"\n{title}: the queue was filled before a way had inserted {ROWS_MIN} rows")
            continue
        lines = [
            median(name, OURS if name.startswith("ringhaul") else DRIVER, made)
            for name, made in runs.items()
        ]
        title = f"{title}, median of {rounds}"
        print(report(title, lines))
        path = save(key, title, lines, runs)
        print(f"kept in {path} and {path.with_suffix('.svg').name}", flush=True)


def _note(
    lines_of: dict[str, dict[str, list[Run]]], number: int, name: str, found: Figures
) -> None:
    for key, one in found.items():
        lines_of[key].setdefault(name, []).append(one)
    rates = ", ".join(f"{one.rows / one.work_s:,.0f}" for one in found.values())
    print(f"  round {number + 1}  {name:<46} {rates} rows/s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.census_seeds", description=__doc__)
    parser.add_argument("--geo-records", type=int, default=GEO_RECORDS)
    parser.add_argument("--wide-records", type=int, default=WIDE_RECORDS)
    parser.add_argument("--rounds", type=int, default=3, help="default 3")
    parser.add_argument("--workers", type=int, action="append", help="default 15, 50, 150, 350")
    options = parser.parse_args()
    workers = options.workers or WORKERS
    run(options.geo_records, options.wide_records, options.rounds, workers)


if __name__ == "__main__":
    main()
