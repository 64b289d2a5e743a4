"""Run the benches: the short form takes under ten minutes, `--full` all of them some hours."""

from __future__ import annotations

import argparse
import shutil

from bench import (
    coordination,
    count_small,
    exec_seeds,
    flower_pages,
    latency_seeds,
    load_kb1,
    load_latency,
    load_locality,
    load_memory,
    load_seeds,
    load_small,
    load_wide,
    lookup_small,
    query_small,
    remote_parquet,
    scale_out,
    transform_census,
    unload_memory,
    unload_small,
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--full", action="store_true", help="all benches, more rounds")
    if not parser.parse_args().full:
        load_small.run(load_small.ROWS, rounds=3, short=True)
        load_memory.run(size_bytes=128 << 20)
        return
    load_small.run(load_small.ROWS, rounds=5)
    load_small.run(5 * load_small.ROWS, rounds=5)
    load_kb1.run(load_kb1.ROWS, rounds=5)
    load_wide.run(load_wide.ROWS, rounds=5)
    load_seeds.run(load_seeds.ROWS, rounds=5)
    load_locality.run(load_locality.ROWS, rounds=3)
    load_memory.run(size_bytes=2 << 30)
    unload_small.run(unload_small.ROWS, rounds=5)
    unload_small.run(5 * unload_small.ROWS, rounds=5)
    unload_memory.run(unload_memory.WIDE_ROWS, unload_memory.TINY_ROWS)
    count_small.run(count_small.ROWS, rounds=5)
    query_small.run(5 * query_small.ROWS, rounds=5)
    lookup_small.run(lookup_small.ROWS, rounds=5)
    exec_seeds.run(exec_seeds.ROWS, rounds=5)
    transform_census.run(transform_census.RECORDS, rounds=5)
    remote_parquet.run(remote_parquet.MIB, rounds=5)
    flower_pages.run(flower_pages.UNITS, flower_pages.JOBS)
    coordination.run(coordination.BY_UNITS, coordination.BY_WORKERS)
    if shutil.which("cargo"):  # for the proxy that delays and the bounded server
        load_latency.run(load_latency.ROWS, rounds=3)
        latency_seeds.run(latency_seeds.ROWS, rounds=3)
        scale_out.run(scale_out.SIZES)


if __name__ == "__main__":
    main()
