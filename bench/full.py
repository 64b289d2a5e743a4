"""The line-up of `python -m bench`: the commands of the short form and of `--full`.

A new bench needs a line here; `articles` says which row of an article it answers.
"""

from __future__ import annotations

from typing import NamedTuple


class Bench(NamedTuple):
    """What follows `python -m bench.`, the names of its saved results, the programs it needs.

    A bench that only prints has no results.
    """

    command: str
    results: tuple[str, ...]
    needs: tuple[str, ...] = ()


#: In ten minutes.
SHORT = (
    Bench("load_small --short --rounds 3", ("load_small_short",)),
    Bench("load_memory --bytes 134217728", ("load_memory_short",)),
)
#: In some hours.
FULL = (
    Bench("exec_seeds", ("exec_seeds",)),
    Bench("exec_sweep", ("exec_sweep", "exec_sweep_runs")),
    Bench("work_units", ("work_units",)),
    Bench("sessions", ("sessions",)),
    Bench("load_small", ("load_small",)),
    Bench("load_small --rows 5000000", ("load_small_more",)),
    Bench("load_kb1", ("load_kb1",)),
    Bench("load_wide", ("load_wide",)),
    Bench("load_sstables", ("load_sstables", "load_sstables_cpu")),
    Bench(
        "load_sstables --table kb1 --rows 300000",
        ("load_sstables_kb1", "load_sstables_kb1_cpu"),
    ),
    Bench(
        "load_sstables --table series --rows 2000000",
        ("load_sstables_series", "load_sstables_series_cpu"),
    ),
    Bench("latency_seeds", ("latency_seeds",), ("cargo",)),
    Bench("load_latency", ("load_latency",), ("cargo",)),
    Bench("compression", ("compression",)),
    Bench("load_seeds", ("load_seeds",)),
    Bench("load_sweep", ("load_sweep", "load_sweep_runs")),
    Bench("load_locality", ("load_locality", "load_locality_rates")),
    Bench("load_ring", ("load_ring",)),
    Bench("census_seeds", ("census_geo", "census_wide", "census_ways")),
    Bench("transform_census", ()),
    Bench("scale_out", ("scale_out",), ("cargo",)),
    Bench("coordination", ("coordination",)),
    Bench("tune_grid", ("tune_grid",)),
    Bench("pools", ("pools", "pool_loads")),
    Bench("unload_small", ("unload_small",)),
    Bench("unload_small --rows 5000000", ("unload_small_more",)),
    Bench("count_small", ("count_small",)),
    Bench("query_small --rows 5000000", ("query_small",)),
    Bench("lookup_small", ("lookup_small",)),
    Bench("remote_parquet", ()),
    Bench("load_memory", ("load_memory",)),
    Bench("load_zip", ("load_zip",)),
    Bench("sstable_memory", ("sstable_memory",)),
    Bench("unload_memory --full", ()),
    Bench("flower_pages", ()),
)


def command_of(result: str) -> str:
    """Return the command that writes a result. Raises `KeyError` if no bench does."""
    for bench in (*FULL, *SHORT):
        if result in bench.results:
            return f"python -m bench.{bench.command}"
    raise KeyError(f"no bench in bench/full.py has the result {result!r}")
