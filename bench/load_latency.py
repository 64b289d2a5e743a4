"""Claim: distance costs little. At 10 ms each way 0.8 of the rate next to the node, at 100 ms 0.5.

A load and an unload of small rows through a proxy that delays bytes by 0, 10 and 100 ms each way,
interleaved; the rate at 0 ms through the same proxy is the measure.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from bench.contest import PROCESSES
from bench.data import SMALL
from bench.delays import Distant, at_distances
from bench.harness import Median, Run, System, claim, interleave, medians, report, save
from bench.read_systems import unload
from bench.site import Site, make_site
from bench.stage import stage
from bench.systems import ours

ROWS = 1_000_000
#: Milliseconds each way -> share of the rate without a delay that is claimed.
CLAIMS = {10.0: 0.8, 100.0: 0.5}


def run(rows: int, rounds: int) -> None:
    """Run the bench and print its table."""
    delays_ms = (0.0, *CLAIMS)
    with stage() as running, at_distances(running, delays_ms, PROCESSES) as (proxy, distant):
        site = make_site(running, SMALL, rows, worker_pid=0)
        runs: dict[str, list[Run]] = {}
        systems: list[System] = []
        before_s = proxy.cpu_s()
        for choose in (_loads, _unloads):
            chosen = choose(site, distant)
            for system in chosen:  # the server compiles its code under load
                system.reset()
                system.run()
            runs |= interleave(chosen, rounds)
            systems += chosen
        proxy_s = proxy.cpu_s() - before_s
    lines = medians(systems, runs)
    title = f"{rows:,} small rows at a distance, median of {rounds}"
    print(report(title, lines))
    transfers = len(systems) * (rounds + 1)
    print(f"the proxy used {proxy_s / transfers / rows * 1e6:.2f} us of CPU a row")
    print("\nclaims")
    for what in ("load", "unload"):
        for delay_ms, share in CLAIMS.items():
            ratio = _rate(lines, what, delay_ms) / _rate(lines, what, 0.0)
            print(claim(f"{what} at {delay_ms:g} ms each way, of that at 0", ratio, at_least=share))
    path = save("load_latency", title, lines, runs)
    print(f"\nkept in {path} and {path.with_suffix('.svg').name}", flush=True)


def _name(what: str, delay_ms: float) -> str:
    return f"ringhaul {what}, {delay_ms:g} ms each way"


def _rate(lines: Sequence[Median], what: str, delay_ms: float) -> float:
    return next(line.rows_s for line in lines if line.name == _name(what, delay_ms))


def _at(site: Site, one: Distant) -> Site:
    return Site(one.stage, site.table, site.path, site.rows, one.worker_pid)


def _loads(site: Site, distant: dict[float, Distant]) -> list[System]:
    return [ours(_at(site, one), name=_name("load", ms)) for ms, one in distant.items()]


def _unloads(site: Site, distant: dict[float, Distant]) -> list[System]:
    """Return the readers of the table that the last load filled."""
    return [
        unload(_at(site, one), kind="csv")._replace(name=_name("unload", ms))
        for ms, one in distant.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.load_latency", description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS, help=f"default {ROWS:,}")
    parser.add_argument("--rounds", type=int, default=3, help="default 3")
    options = parser.parse_args()
    run(options.rows, options.rounds)


if __name__ == "__main__":
    main()
